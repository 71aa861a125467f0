"""HTTP/2 by hand: frames as bytes, over TLS. Field sections are literals without an index."""

import contextlib
import functools
import socket
import ssl
import struct
import time

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = range(10)
END_STREAM, END_HEADERS, ACK = 0x1, 0x4, 0x1
INITIAL_WINDOW_SIZE = 4


def frame(kind, flags=0, stream=0, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def settings(**values):
    names = {"initial_window": INITIAL_WINDOW_SIZE}
    payload = b"".join(struct.pack(">HI", names[name], value) for name, value in values.items())
    return frame(SETTINGS, payload=payload)


def literal(text):
    if len(text) < 127:
        return bytes([len(text)]) + text
    rest, out = len(text) - 127, bytearray([127])
    while rest >= 128:
        out.append(rest & 127 | 128)
        rest >>= 7
    return bytes(out) + bytes([rest]) + text


def section(fields):
    return b"".join(b"\x00" + literal(name) + literal(value) for name, value in fields)


def request(stream, path, method=b"GET", authority=b"localhost", extra=(), end=True):
    fields = [(b":method", method), (b":scheme", b"https"), (b":authority", authority), (b":path", path), *extra]
    flags = END_HEADERS | (END_STREAM if end else 0)
    return frame(HEADERS, flags, stream, section(fields))


@functools.cache
def context(protocols=("h2",)):
    """Trusts every certificate, so that no authorities need to be read."""
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    tls.check_hostname = False
    tls.verify_mode = ssl.CERT_NONE
    tls.set_alpn_protocols(list(protocols))
    return tls


def connect(address, protocols=("h2",), timeout=5, source=None, receive_buffer=None):
    """A TLS connection to the server."""
    raw = socket.socket()
    raw.settimeout(timeout)
    if receive_buffer:
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    if source:
        raw.bind((source, 0))
    raw.connect(address)
    raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return context(protocols).wrap_socket(raw, server_hostname="localhost")


class Connection:
    """A connection of HTTP/2 that says what it likes."""

    def __init__(self, address, initial_window=65535, **options):
        self.socket = connect(address, **options)
        self.stream = 1
        self.received = bytearray()
        self.send(PREFACE + settings(initial_window=initial_window))

    def send(self, data):
        self.socket.sendall(data)

    def get(self, path, **options):
        """Sends a request; its stream."""
        stream, self.stream = self.stream, self.stream + 2
        self.send(request(stream, path, **options))
        return stream

    def frames(self, until):
        """The frames that come until a moment, seconds of the monotonic clock."""
        while True:
            while len(self.received) >= 9:
                length = int.from_bytes(self.received[:3], "big")
                if len(self.received) < 9 + length:
                    break
                kind, flags = self.received[3], self.received[4]
                stream = int.from_bytes(self.received[5:9], "big") & 0x7FFFFFFF
                payload = bytes(self.received[9 : 9 + length])
                del self.received[: 9 + length]
                yield kind, flags, stream, payload
            left = until - time.monotonic()
            if left <= 0:
                return
            self.socket.settimeout(left)
            try:
                data = self.socket.recv(65536)
            except (TimeoutError, ssl.SSLWantReadError):
                return
            if not data:
                return
            self.received += data

    def skim(self):
        """Throws away what has come; False if the connection is over."""
        self.socket.settimeout(0.001)
        try:
            while True:
                if not self.socket.recv(65536):
                    return False
        except (TimeoutError, ssl.SSLWantReadError):
            return True
        except OSError:
            return False

    def close(self):
        with contextlib.suppress(OSError):
            self.socket.close()


def status(payload):
    """The status in a response's head, as far as static entries and plain literals say; None otherwise."""
    known = {0x88: 200, 0x89: 204, 0x8A: 206, 0x8B: 304, 0x8C: 400, 0x8D: 404, 0x8E: 500}
    if payload[:1] and payload[0] in known:
        return known[payload[0]]
    # A literal whose name is the entry `:status`, digits plain or by Huffman's code (RFC 7541, appendix B).
    if len(payload) > 2 and payload[0] & 0x0F == 8 | payload[0] & 0x07 and payload[0] >> 6 in (0, 1):
        size = payload[1] & 0x7F
        value = payload[2 : 2 + size]
        return huffman_digits(value) if payload[1] & 0x80 else int(value)
    return None


def huffman_digits(data):
    """A number of three digits in Huffman's code: 0 to 2 have five bits, the others six."""
    bits = "".join(f"{byte:08b}" for byte in data)
    codes = {f"{n:05b}": str(n) for n in range(3)} | {f"{0x19 - 3 + n:06b}": str(n) for n in range(3, 10)}
    out = ""
    while len(out) < 3:
        for size in (5, 6):
            if bits[:size] in codes:
                out += codes[bits[:size]]
                bits = bits[size:]
                break
        else:
            return None
    return int(out)
