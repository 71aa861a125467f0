"""Hostile servers against `get`."""

import contextlib
import datetime
import gzip
import socket
import ssl
import threading
import time
from dataclasses import dataclass

from aioquic.quic.configuration import QuicConfiguration
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from . import bounds, quic

SERVERS = []


@dataclass
class HostileServer:
    """A server that misbehaves, and how `get` is called."""

    serve: callable
    flags: list
    # `get` ends by itself, before --max-time.
    ends_itself: bool
    memory: int = bounds.MEMORY_OF_GET
    over_quic: bool = False

    @property
    def name(self):
        return "get-" + self.serve.__name__.replace("_", "-")

    @property
    def help(self):
        return " ".join(self.serve.__doc__.split())


def server(*flags, ends_itself=False, **options):
    def add(serve):
        SERVERS.append(HostileServer(serve, list(flags), ends_itself, **options))
        return serve

    return add


def identity(directory):
    """A certificate for localhost and its key, PEM files."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.timezone.utc)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=10))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    paths = directory / "cert.pem", directory / "key.pem"
    paths[0].write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    paths[1].write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    return paths


class TcpServer:
    """Accepts TLS connections and lets `serve` answer each once its request's head is there."""

    def __init__(self, serve, paths):
        self.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.tls.load_cert_chain(*paths)
        self.tls.set_alpn_protocols(["http/1.1"])
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.serve = serve
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                raw, _ = self.listener.accept()
                threading.Thread(target=self._answer, args=(raw,), daemon=True).start()

    def _answer(self, raw):
        with contextlib.suppress(OSError), self.tls.wrap_socket(raw, server_side=True) as connection:
            head = b""
            while b"\r\n\r\n" not in head:
                data = connection.recv(65536)
                if not data:
                    return
                head += data
            self.serve(connection)

    def close(self):
        self.listener.close()


class QuicServer:
    """Accepts one QUIC connection after the other and lets `serve` act once a request's first bytes came."""

    def __init__(self, serve, paths):
        self.configuration = QuicConfiguration(is_client=False, alpn_protocols=["h3"])
        self.configuration.load_cert_chain(*paths)
        self.socket = socket.socket(type=socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 0))
        self.socket.settimeout(0.05)
        self.port = self.socket.getsockname()[1]
        self.serve = serve
        self.over = threading.Event()
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self):
        from aioquic.quic import events
        from aioquic.quic.packet import pull_quic_header
        from aioquic.buffer import Buffer

        connection = None
        while not self.over.is_set():
            try:
                data, peer = self.socket.recvfrom(65536)
            except TimeoutError:
                data = None
            except OSError:
                return
            now = time.monotonic()
            if data and (connection is None or connection._state.name in ("TERMINATED", "DRAINING", "CLOSING")):
                if not data[0] & 0x80:
                    continue
                header = pull_quic_header(Buffer(data=data), host_cid_length=8)
                connection = quic.Transport(
                    configuration=self.configuration,
                    original_destination_connection_id=header.destination_cid,
                )
            if connection is None:
                continue
            if data:
                connection.receive_datagram(data, peer, now=now)
            timer = connection.get_timer()
            if timer is not None and timer <= now:
                connection.handle_timer(now=now)
            while (event := connection.next_event()) is not None:
                if isinstance(event, events.StreamDataReceived) and event.stream_id == 0:
                    self.flush(connection, peer)
                    for payload in self.serve(connection):
                        self.socket.sendto(connection.sealed(payload), peer)
            self.flush(connection, peer)

    def flush(self, connection, peer):
        for data, _ in connection.datagrams_to_send(now=time.monotonic()):
            with contextlib.suppress(OSError):
                self.socket.sendto(data, peer)

    def close(self):
        self.over.set()
        self.socket.close()


HEAD = b"HTTP/1.1 200 OK\r\n"


@server("--protocol", "h3", over_quic=True, ends_itself=True)
def part_of_a_head_and_the_end(connection):
    """One packet with the beginning of a response and the end of the connection"""
    # As a server opens its control stream first.
    yield bytes.fromhex("0a0303000400")
    yield bytes.fromhex("0a00020120") + bytes.fromhex("1d410000")


@server("--protocol", "h3", over_quic=True, ends_itself=True)
def gap_and_the_end(connection):
    """One packet with a byte of a response after a gap, and a frame that ends the connection"""
    yield bytes.fromhex("0e00010141") + b"\x21"


@server("--protocol", "h3", over_quic=True)
def nothing_after_the_request_over_h3(connection):
    """A request over HTTP/3 that is never answered"""
    return iter(())


@server("--protocol", "http1.1")
def nothing_after_the_request(connection):
    """A request over HTTP/1.1 that is never answered"""
    time.sleep(30)


@server("--protocol", "http1.1")
def stop_in_the_middle(connection):
    """Content that stops half way, on a connection that stays"""
    connection.sendall(HEAD + b"Content-Length: 100\r\n\r\nhalf of it")
    time.sleep(30)


@server("--protocol", "http1.1")
def a_byte_at_a_time(connection):
    """Content that comes a byte at a time, without end"""
    connection.sendall(HEAD + b"Content-Length: 1000000\r\n\r\n")
    while True:
        connection.sendall(b"x")
        time.sleep(0.05)


@server("--protocol", "http1.1")
def early_hints(connection):
    """Two hundred thousand informational responses"""
    for _ in range(2000):
        connection.sendall(b"HTTP/1.1 103 Early Hints\r\nLink: </x>; rel=preload\r\n\r\n" * 100)
    time.sleep(30)


@server("--protocol", "http1.1")
def endless_head(connection):
    """A head that never ends"""
    connection.sendall(HEAD)
    while True:
        connection.sendall(b"".join(b"X-%d: %s\r\n" % (n, b"y" * 1000) for n in range(100)))


@server("--protocol", "http1.1", "--compressed")
def decompression_bomb(connection):
    """A gigabyte of zeros in a megabyte, as one file"""
    bomb = gzip.compress(bytes(64 << 20), 9) * 16
    connection.sendall(HEAD + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(bomb) + bomb)
    time.sleep(30)


@server("--protocol", "http1.1", "-L", ends_itself=True)
def redirects_in_a_circle(connection):
    """A redirect to itself"""
    connection.sendall(b"HTTP/1.1 302 Found\r\nLocation: /again\r\nContent-Length: 0\r\n\r\n")
    time.sleep(0.2)


@server("--protocol", "http1.1", "-L", ends_itself=True)
def redirect_to_a_file(connection):
    """A redirect to file: and to http:"""
    connection.sendall(b"HTTP/1.1 302 Found\r\nLocation: file:///etc/passwd\r\nContent-Length: 0\r\n\r\n")
    time.sleep(0.2)


@server("--protocol", "http1.1", ends_itself=True)
def two_different_lengths(connection):
    """Two lengths that differ"""
    connection.sendall(HEAD + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello")
    time.sleep(0.2)


@server("--protocol", "http1.1", ends_itself=True)
def garbage(connection):
    """No HTTP at all"""
    connection.sendall(bytes(range(256)) * 100)
    time.sleep(0.2)
