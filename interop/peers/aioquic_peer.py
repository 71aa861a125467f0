"""aioquic as a file server and as a downloader over `hq-interop`.

`server` runs until it is killed; `client` prints one JSON object about its connections and exits with
1 if anything went wrong. Both exit with 3, and a last line that begins with "unsupported:", if aioquic
can't do what was asked. The options are those of the other peers.
"""

import argparse
import asyncio
import contextlib
import ipaddress
import json
import socket
import sys
import time
from dataclasses import dataclass, field
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
from aioquic.quic.logger import QuicFileLogger
from aioquic.quic.packet import QuicProtocolVersion
from aioquic.tls import CipherSuite, SessionTicket

ALPN = "hq-interop"
# Stream error code for requests that can't be served.
NOT_FOUND = 404
# Between the key updates of a side that was told to make some, seconds.
KEY_UPDATE_EVERY = 0.25
# A client gives up when it hears nothing for this long, seconds.
IDLE = 30.0
# How long a session ticket may take after the first file, seconds.
TICKET_WAIT = 3.0
# A client that is to migrate does so when it has received this many bytes.
MIGRATE_AFTER = 200_000
# The exit code for what aioquic can't do at all.
UNSUPPORTED = 3
# A client's first Destination Connection ID has at least this many bytes (RFC 9000, section 7.2).
# aioquic makes it as long as its own IDs.
SHORTEST_FIRST_CID = 8
# The range of sizes that may be sent, bytes.
SMALLEST_PAYLOAD = 1200
LARGEST_PAYLOAD = 65527
VERSION_1 = QuicProtocolVersion.VERSION_1
VERSION_2 = QuicProtocolVersion.VERSION_2

SUITES = {
    "aes128": CipherSuite.AES_128_GCM_SHA256,
    "aes256": CipherSuite.AES_256_GCM_SHA384,
    "chacha20": CipherSuite.CHACHA20_POLY1305_SHA256,
}


class Unsupported(Exception):
    """aioquic can't do this."""


def check(arguments):
    if arguments.streams is not None:
        raise Unsupported("aioquic's limit of 128 streams is fixed")
    length = 8 if arguments.cid_length is None else arguments.cid_length
    if arguments.role == "client" and length < SHORTEST_FIRST_CID:
        raise Unsupported("aioquic's client has connection IDs of 8 bytes or more")
    if length == 0:
        raise Unsupported("aioquic's server needs connection IDs")


def configuration(arguments, is_client):
    check(arguments)
    settings = QuicConfiguration(is_client=is_client, alpn_protocols=[ALPN], idle_timeout=IDLE)
    if arguments.suite != "any":
        settings.cipher_suites = [SUITES[arguments.suite]]
    if arguments.v2:
        settings.supported_versions = [VERSION_2, VERSION_1]
    if arguments.window is not None:
        settings.max_data = settings.max_stream_data = arguments.window
    if arguments.cid_length is not None:
        settings.connection_id_length = arguments.cid_length
    if arguments.max_udp_payload is not None:
        settings.max_datagram_size = arguments.max_udp_payload
    if arguments.qlog is not None:
        settings.quic_logger = QuicFileLogger(arguments.qlog)
    if arguments.keylog is not None:
        settings.secrets_log_file = open(arguments.keylog, "a", buffering=1)
    return settings


class Rekeyer:
    """Asks for a key update every KEY_UPDATE_EVERY while the connection lasts.

    Before each one it waits for the acknowledgement of a PING: RFC 9001 forbids an update before the
    handshake is confirmed (section 6) and before a packet of the current phase is acknowledged (section
    6.1), and aioquic guards against neither. A pause alone is not enough: on an overloaded machine the
    peer doesn't answer within it.
    """

    def __init__(self, protocol, wanted):
        self.protocol = protocol
        self.wanted = wanted
        self.updates = 0
        self.task = None

    def start(self):
        if self.wanted and self.task is None:
            self.task = asyncio.get_running_loop().create_task(self.run())

    def stop(self):
        if self.task is not None:
            self.task.cancel()
        self.wanted = False

    async def run(self):
        # The connection may end while a PING waits.
        with contextlib.suppress(ConnectionError):
            while True:
                await self.protocol.ping()
                self.protocol.request_key_update()
                self.updates += 1
                print("key update", self.updates, file=sys.stderr, flush=True)
                await asyncio.sleep(KEY_UPDATE_EVERY)


class FileServer(QuicConnectionProtocol):
    """Answers the requests of one connection."""

    def __init__(self, quic, stream_handler=None, root=None, key_update=False):
        super().__init__(quic, stream_handler)
        self.root = root
        self.requests = {}
        self.rekeyer = Rekeyer(self, key_update)

    def quic_event_received(self, event):
        if isinstance(event, HandshakeCompleted):
            print(
                f"connection, ALPN {event.alpn_protocol}, version {self._quic._version:x}, "
                f"resumed {event.session_resumed}, 0-RTT {event.early_data_accepted}",
                flush=True,
            )
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
        self.received = 0
        self.enough = asyncio.Event()
        self.moving = False
        self.completed = None
        self.rekeyer = Rekeyer(self, key_update)

    @property
    def version(self):
        return self._quic._version

    def get(self, path):
        """The file at `path`, as a future."""
        stream_id = self._quic.get_next_available_stream_id()
        self._quic.send_stream_data(stream_id, f"GET {path}\r\n".encode(), end_stream=True)
        done = asyncio.get_running_loop().create_future()
        self.answers[stream_id] = (bytearray(), done)
        return done

    def quic_event_received(self, event):
        if isinstance(event, HandshakeCompleted):
            self.completed = event
        elif isinstance(event, StreamDataReceived) and event.stream_id in self.answers:
            content, done = self.answers[event.stream_id]
            content += event.data
            self.received += len(event.data)
            if self.received >= MIGRATE_AFTER:
                self.enough.set()
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

    async def move(self, local):
        """Goes on from another local address, with the server's next connection ID.

        aioquic doesn't validate the new path first, which RFC 9000, section 9.2, leaves to the client.
        """
        await self.enough.wait()
        old = self._transport
        self.moving = True
        await asyncio.get_running_loop().create_datagram_endpoint(lambda: self, local_addr=local)
        old.close()
        print("moved to", self._transport.get_extra_info("sockname"), file=sys.stderr, flush=True)

    def connection_made(self, transport):
        """Takes the server's next connection ID at the same moment as a new transport: in between, an
        acknowledgement could leave from the new address with the old ID."""
        super().connection_made(transport)
        if self.moving:
            self.change_connection_id()

    def connection_lost(self, error):
        """The old transport's end after a move is none of the connection's."""


async def run_server(arguments):
    settings = configuration(arguments, is_client=False)
    settings.load_cert_chain(arguments.cert, arguments.key)
    if arguments.quic_version:
        settings.supported_versions = [arguments.quic_version]
    host, _, port = arguments.listen.rpartition(":")

    def protocol(quic, stream_handler=None):
        return FileServer(quic, stream_handler, Path(arguments.dir), arguments.key_update)

    host = host.strip("[]")
    tickets = {}
    # Sessions can always be resumed. aioquic then takes 0-RTT data, too: there is no switch.
    await serve(
        host,
        int(port),
        configuration=settings,
        create_protocol=protocol,
        retry=arguments.retry,
        session_ticket_handler=lambda ticket: tickets.update({ticket.ticket: ticket}),
        session_ticket_fetcher=lambda label: tickets.pop(label, None),
    )
    print("listening on", arguments.listen, flush=True)
    await asyncio.Event().wait()


@dataclass
class Memory:
    """What a client keeps from one connection for the next ones and for its report."""

    settings: QuicConfiguration
    address: tuple
    family: int
    early: bool = False
    ticket: SessionTicket | None = None
    token: bytes = b""
    ticket_came: asyncio.Event = field(default_factory=asyncio.Event)
    report: dict = field(default_factory=dict)

    def keep_ticket(self, ticket):
        if not self.early:
            # Else aioquic offers 0-RTT whenever it resumes.
            ticket.max_early_data_size = None
        self.ticket = ticket
        self.ticket_came.set()

    def keep_token(self, token):
        self.token = token

    def local(self, moved=False):
        """An address to start from; a second one of the loopback network if the server is there."""
        if self.family == socket.AF_INET6:
            return ("::", 0)
        loopback = ipaddress.ip_address(self.address[0]).is_loopback
        return ("127.0.0.2" if moved and loopback else "0.0.0.0", 0)


async def run_client(arguments):
    urls = [urlsplit(url) for url in arguments.urls]
    settings = configuration(arguments, is_client=True)
    settings.load_verify_locations(cafile=arguments.ca)
    settings.server_name = urls[0].hostname
    if arguments.v2:
        settings.original_version = VERSION_1
    elif arguments.quic_version:
        settings.original_version = arguments.quic_version
        others = [it for it in settings.supported_versions if it != arguments.quic_version]
        settings.supported_versions = [arguments.quic_version, *others]
    family, _, _, _, address = socket.getaddrinfo(
        urls[0].hostname, urls[0].port, type=socket.SOCK_DGRAM
    )[0]
    memory = Memory(settings, address, family, arguments.zero_rtt)
    report = memory.report
    report.update(files=0, bytes=0, key_updates=0, connections=0, early_accepted=None, migrated=False)
    start = time.monotonic()
    rounds = [urls]
    if arguments.per_connection:
        rounds = [[url] for url in urls]
    elif (arguments.resume or arguments.zero_rtt) and len(urls) > 1:
        rounds = [urls[:1], urls[1:]]
    for number, some in enumerate(rounds):
        last = number + 1 == len(rounds)
        await download(arguments, memory, some, early=arguments.zero_rtt and number > 0, last=last)
    print(json.dumps(report | {"total_seconds": time.monotonic() - start}))


async def download(arguments, memory, urls, early, last):
    """Gets files over one connection."""
    # Connections of their own are full handshakes each.
    if not arguments.per_connection:
        memory.settings.session_ticket = memory.ticket
        memory.settings.token = memory.token
    start = time.monotonic()
    _, protocol = await asyncio.get_running_loop().create_datagram_endpoint(
        lambda: Downloader(
            QuicConnection(
                configuration=memory.settings,
                session_ticket_handler=memory.keep_ticket,
                token_handler=memory.keep_token,
            ),
            key_update=arguments.key_update,
        ),
        family=memory.family,
        local_addr=memory.local(),
    )
    protocol.connect(memory.address, transmit=not early)
    answers = []
    if early:
        # In the first flight.
        answers = [protocol.get(url.path) for url in urls]
        protocol.transmit()
    await protocol.wait_connected()
    handshake = time.monotonic() - start
    mover = None
    if arguments.migrate and last:
        mover = asyncio.create_task(protocol.move(memory.local(moved=True)))
    if not early:
        answers = [protocol.get(url.path) for url in urls]
        protocol.transmit()
    report = memory.report
    for url, answer in zip(urls, answers):
        content = await answer
        report["bytes"] += len(content)
        Path(arguments.out, PurePosixPath(url.path).name).write_bytes(content)
    report["seconds"] = report.get("seconds", 0.0) + time.monotonic() - start
    if mover is not None:
        if not mover.done():
            raise ConnectionError("the transfer ended before the migration")
        await mover
        report["migrated"] = True
    if (arguments.resume or arguments.zero_rtt) and not last:
        try:
            await asyncio.wait_for(memory.ticket_came.wait(), TICKET_WAIT)
        except asyncio.TimeoutError:
            raise ConnectionError("no session ticket came") from None
    protocol.close()
    await protocol.wait_closed()
    report["handshake_ms"] = handshake * 1e3
    report["files"] += len(urls)
    report["connections"] += 1
    report["key_updates"] += protocol.rekeyer.updates
    report["resumed"] = protocol.completed.session_resumed
    report["version"] = f"{protocol.version:x}"
    if early:
        report["early_accepted"] = protocol.completed.early_data_accepted


def payload(text):
    return min(max(int(text), SMALLEST_PAYLOAD), LARGEST_PAYLOAD)


def parse():
    parser = argparse.ArgumentParser(description=__doc__)
    roles = parser.add_subparsers(dest="role", required=True)
    server = roles.add_parser("server", help="serve the files of a directory")
    server.add_argument("--dir", required=True)
    server.add_argument("--listen", required=True, metavar="HOST:PORT")
    server.add_argument("--cert", required=True, help="certificate chain, PEM")
    server.add_argument("--key", required=True, help="private key, PEM")
    server.add_argument("--retry", action="store_true", help="validate addresses with Retry")
    server.add_argument("--zero-rtt", action="store_true", help="accept 0-RTT, as aioquic always does")
    client = roles.add_parser("client", help="download files over one connection")
    client.add_argument("urls", nargs="+", metavar="URL")
    client.add_argument("--out", required=True, help="where to put the files")
    client.add_argument("--ca", required=True, help="trusted certificates, PEM")
    client.add_argument("--per-connection", action="store_true", help="a connection for each file")
    client.add_argument(
        "--resume", action="store_true", help="get the first file, resume its session for the others"
    )
    client.add_argument("--zero-rtt", action="store_true", help="like --resume, with requests in 0-RTT")
    client.add_argument("--migrate", action="store_true", help="move to another address after 200 kB")
    for role in (server, client):
        role.add_argument("--v2", action="store_true", help="from version 1 to 2 in the handshake")
        role.add_argument("--qlog", metavar="DIR")
        role.add_argument("--keylog", metavar="FILE")
        role.add_argument("--window", type=int, metavar="BYTES", help="receive windows")
        role.add_argument("--streams", type=int, metavar="N", help="streams open at a time")
        role.add_argument("--cid-length", type=int, metavar="N", help="of the own connection IDs")
        role.add_argument("--max-udp-payload", type=payload, metavar="N", help="bytes sent at most")
        role.add_argument("--suite", default="any", choices=["any", *SUITES])
        role.add_argument("--key-update", action="store_true", help="update keys again and again")
        role.add_argument("--quic-version", type=lambda text: int(text, 16), metavar="HEX")
    return parser.parse_args()


def main():
    arguments = parse()
    run = run_server if arguments.role == "server" else run_client
    try:
        asyncio.run(run(arguments))
    except Unsupported as reason:
        print("unsupported:", reason, file=sys.stderr)
        sys.exit(UNSUPPORTED)
    except (ConnectionError, OSError) as error:
        sys.exit(f"{type(error).__name__}: {error}")


if __name__ == "__main__":
    main()
