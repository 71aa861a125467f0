"""aioquic as a file server and as a downloader over `hq-interop`.

`server` runs until it is killed; `client` prints one JSON object about its connection and exits
non-zero if anything went wrong. The options are those of the quinn programs beside this file.
"""

import argparse
import asyncio
import json
import socket
import sys
import time
from pathlib import Path, PurePosixPath
from urllib.parse import urlsplit

from aioquic.asyncio import QuicConnectionProtocol, serve
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.connection import QuicConnection
from aioquic.quic.events import (
    ConnectionTerminated,
    HandshakeCompleted,
    StreamDataReceived,
    StreamReset,
)
from aioquic.tls import CipherSuite

ALPN = "hq-interop"
# Stream error code for whatever can't be served.
NOT_FOUND = 404
# Between the key updates of a side that was told to make some, seconds.
KEY_UPDATE_EVERY = 0.1
# A client gives up when it hears nothing for this long, seconds.
IDLE = 10.0

SUITES = {
    "aes128": CipherSuite.AES_128_GCM_SHA256,
    "aes256": CipherSuite.AES_256_GCM_SHA384,
    "chacha20": CipherSuite.CHACHA20_POLY1305_SHA256,
}


def configuration(arguments, is_client):
    settings = QuicConfiguration(is_client=is_client, alpn_protocols=[ALPN], idle_timeout=IDLE)
    if arguments.suite != "any":
        settings.cipher_suites = [SUITES[arguments.suite]]
    return settings


class Rekeyer:
    """Asks for a key update every KEY_UPDATE_EVERY while the connection lasts.

    The pause lets the peer answer in the new phase first: RFC 9001, section 6.1, forbids a second
    update before that, and aioquic doesn't guard against it.
    """

    def __init__(self, protocol, wanted):
        self.protocol = protocol
        self.wanted = wanted
        self.updates = 0
        self.timer = None

    def start(self):
        if self.wanted and self.timer is None:
            self.update()

    def stop(self):
        if self.timer is not None:
            self.timer.cancel()
        self.wanted = False

    def update(self):
        self.protocol.request_key_update()
        self.updates += 1
        print("key update", self.updates, file=sys.stderr, flush=True)
        self.timer = asyncio.get_running_loop().call_later(KEY_UPDATE_EVERY, self.update)


class FileServer(QuicConnectionProtocol):
    """Answers the requests of one connection."""

    def __init__(self, quic, stream_handler=None, root=None, key_update=False):
        super().__init__(quic, stream_handler)
        self.root = root
        self.requests = {}
        self.rekeyer = Rekeyer(self, key_update)

    def quic_event_received(self, event):
        if isinstance(event, HandshakeCompleted):
            print("connection, ALPN", event.alpn_protocol, flush=True)
        elif isinstance(event, StreamDataReceived) and event.stream_id % 4 == 0:
            request = self.requests.setdefault(event.stream_id, bytearray())
            request += event.data
            if event.end_stream:
                self.answer(event.stream_id, bytes(self.requests.pop(event.stream_id)))
        elif isinstance(event, ConnectionTerminated):
            self.rekeyer.stop()
            print("connection ended:", hex(event.error_code), event.reason_phrase, flush=True)

    def answer(self, stream_id, request):
        print("request", request, flush=True)
        content = self.requested(request)
        if content is None:
            self._quic.reset_stream(stream_id, NOT_FOUND)
        else:
            self._quic.send_stream_data(stream_id, content, end_stream=True)
            self.rekeyer.start()
        self.transmit()

    def requested(self, request):
        method, _, path = request.rstrip(b"\r\n").decode("ascii", "replace").partition(" /")
        parts = PurePosixPath(path).parts
        if method != "GET" or ".." in parts or path.startswith("/"):
            return None
        try:
            return self.root.joinpath(*parts).read_bytes()
        except OSError:
            return None


class Downloader(QuicConnectionProtocol):
    """Collects the answers of one connection."""

    def __init__(self, quic, stream_handler=None, key_update=False):
        super().__init__(quic, stream_handler)
        self.answers = {}
        self.rekeyer = Rekeyer(self, key_update)

    def get(self, path):
        """The file at `path`, as a future."""
        stream_id = self._quic.get_next_available_stream_id()
        self._quic.send_stream_data(stream_id, f"GET {path}\r\n".encode(), end_stream=True)
        done = asyncio.get_running_loop().create_future()
        self.answers[stream_id] = (bytearray(), done)
        return done

    def quic_event_received(self, event):
        if isinstance(event, StreamDataReceived) and event.stream_id in self.answers:
            content, done = self.answers[event.stream_id]
            content += event.data
            self.rekeyer.start()
            if event.end_stream:
                done.set_result(bytes(content))
        elif isinstance(event, StreamReset) and event.stream_id in self.answers:
            self.answers[event.stream_id][1].set_exception(
                ConnectionError(f"the server reset the stream with code {event.error_code}")
            )
        elif isinstance(event, ConnectionTerminated):
            self.rekeyer.stop()
            reason = f"code {event.error_code:#x}, frame {event.frame_type}, {event.reason_phrase!r}"
            for _, done in self.answers.values():
                if not done.done():
                    done.set_exception(ConnectionError(f"connection ended: {reason}"))


async def run_server(arguments):
    settings = configuration(arguments, is_client=False)
    settings.load_cert_chain(arguments.cert, arguments.key)
    if arguments.quic_version:
        settings.supported_versions = [arguments.quic_version]
    host, _, port = arguments.listen.rpartition(":")

    def protocol(quic, stream_handler=None):
        return FileServer(quic, stream_handler, Path(arguments.dir), arguments.key_update)

    host = host.strip("[]")
    await serve(
        host, int(port), configuration=settings, create_protocol=protocol, retry=arguments.retry
    )
    print("listening on", arguments.listen, flush=True)
    await asyncio.Event().wait()


async def run_client(arguments):
    urls = [urlsplit(url) for url in arguments.urls]
    settings = configuration(arguments, is_client=True)
    settings.load_verify_locations(cafile=arguments.ca)
    settings.server_name = urls[0].hostname
    if arguments.quic_version:
        settings.original_version = arguments.quic_version
        settings.supported_versions = [arguments.quic_version, *settings.supported_versions]
    family, _, _, _, address = socket.getaddrinfo(
        urls[0].hostname, urls[0].port, type=socket.SOCK_DGRAM
    )[0]
    _, protocol = await asyncio.get_running_loop().create_datagram_endpoint(
        lambda: Downloader(
            QuicConnection(configuration=settings), key_update=arguments.key_update
        ),
        family=family,
        local_addr=("::" if family == socket.AF_INET6 else "0.0.0.0", 0),
    )
    start = time.monotonic()
    protocol.connect(address)
    await protocol.wait_connected()
    handshake = time.monotonic() - start
    answers = [protocol.get(url.path) for url in urls]
    protocol.transmit()
    size = 0
    for url, answer in zip(urls, answers):
        content = await answer
        size += len(content)
        Path(arguments.out, PurePosixPath(url.path).name).write_bytes(content)
    elapsed = time.monotonic() - start
    protocol.close()
    await protocol.wait_closed()
    report = {
        "files": len(urls),
        "bytes": size,
        "handshake_ms": handshake * 1e3,
        "seconds": elapsed,
        "key_updates": protocol.rekeyer.updates,
    }
    print(json.dumps(report))


def parse():
    parser = argparse.ArgumentParser(description=__doc__)
    roles = parser.add_subparsers(dest="role", required=True)
    server = roles.add_parser("server", help="serve the files of a directory")
    server.add_argument("--dir", required=True)
    server.add_argument("--listen", required=True, metavar="HOST:PORT")
    server.add_argument("--cert", required=True, help="certificate chain, PEM")
    server.add_argument("--key", required=True, help="private key, PEM")
    server.add_argument("--retry", action="store_true", help="validate addresses with Retry")
    client = roles.add_parser("client", help="download files over one connection")
    client.add_argument("urls", nargs="+", metavar="URL")
    client.add_argument("--out", required=True, help="where to put the files")
    client.add_argument("--ca", required=True, help="trusted certificates, PEM")
    for role in (server, client):
        role.add_argument("--suite", default="any", choices=["any", *SUITES])
        role.add_argument("--key-update", action="store_true", help="update keys again and again")
        role.add_argument("--quic-version", type=lambda text: int(text, 16), metavar="HEX")
    return parser.parse_args()


def main():
    arguments = parse()
    run = run_server if arguments.role == "server" else run_client
    try:
        asyncio.run(run(arguments))
    except (ConnectionError, OSError) as error:
        sys.exit(f"{type(error).__name__}: {error}")


if __name__ == "__main__":
    main()
