"""aioquic's HTTP/3 as server and client of the HTTP cases.

The command line is that of the other peers (`h3-server`, `h3-client`), the contract that of
interop/README.md. What aioquic lacks ends the program with a line that begins with "unsupported:" and
with code 3.
"""

import argparse
import asyncio
import json
import os
import sys
import zlib

from aioquic.asyncio import QuicConnectionProtocol, serve
from aioquic.buffer import encode_uint_var
from aioquic.h3.connection import ErrorCode, FrameType, H3Connection, encode_frame
from aioquic.h3.events import DataReceived, HeadersReceived
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.connection import QuicConnection
from aioquic.quic.events import (
    ConnectionTerminated,
    HandshakeCompleted,
    StopSendingReceived,
    StreamReset,
)

UNSUPPORTED = 3
NAME = "localhost"
GETS = ["/bytes/0", "/bytes/1", "/bytes/100000", "/bytes/1000000", "/nothing"]
PARALLEL = 1000
TURNS, TURN_SIZE = 20, 50_000
HEADER_TURNS, LARGE_SIZE, SMALL_COUNT = 3, 20_000, 50
SMALL = b"x-small-"
CANCEL_AFTER = 100_000
MOST = 16 << 20
# The endless content: a piece, bytes, every so many seconds. aioquic keeps whatever it is given.
PIECE, PACE = 8 << 10, 0.005
# How long what follows a response may take, seconds.
SOON = 0.5


class Unsupported(Exception):
    """aioquic can't do this."""


# Each 256 bytes of the content are one of these.
BLOCKS = [bytes(low ^ high for low in range(256)) for high in range(256)]


def pattern(size):
    """Content that depends on its place."""
    return b"".join(BLOCKS[(at ^ at >> 8) & 255] for at in range(size // 256 + 1))[:size]


def letters(size):
    alphabet = b"abcdefghijklmnopqrstuvwxyz"
    return (alphabet * (size // len(alphabet) + 1))[:size]


def small(count, turn):
    return [(SMALL + b"%d" % nth, b"value %d of turn %d" % (nth, turn)) for nth in range(count)]


def count_small(headers):
    return sum(name.startswith(SMALL) for name in headers)


def configuration(is_client):
    settings = QuicConfiguration(is_client=is_client, alpn_protocols=["h3"], idle_timeout=30.0)
    if path := os.environ.get("SSLKEYLOGFILE"):
        settings.secrets_log_file = open(path, "a", buffering=1)
    return settings


def say(*words):
    print(*words, flush=True)


class Server(QuicConnectionProtocol):
    """Answers the requests of one connection."""

    def __init__(self, quic, stream_handler=None):
        super().__init__(quic, stream_handler)
        self.http = H3Connection(quic)
        self.echoes = set()
        self.endless = {}

    def quic_event_received(self, event):
        if isinstance(event, HandshakeCompleted):
            say(f"connection, resumed {event.session_resumed}, 0-RTT {event.early_data_accepted}")
        elif isinstance(event, StopSendingReceived) and event.stream_id in self.endless:
            self.endless.pop(event.stream_id).cancel()
            say("cancelled", hex(event.error_code))
        elif isinstance(event, ConnectionTerminated):
            for task in self.endless.values():
                task.cancel()
            say("connection ended:", hex(event.error_code), event.reason_phrase)
        for happened in self.http.handle_event(event):
            if isinstance(happened, HeadersReceived):
                if happened.stream_id in self.echoes:
                    self.trailers(happened)
                else:
                    self.request(happened.stream_id, dict(happened.headers))
            elif isinstance(happened, DataReceived) and happened.stream_id in self.echoes:
                self.http.send_data(happened.stream_id, happened.data, happened.stream_ended)
        self.transmit()

    def trailers(self, event):
        fields = [field for field in event.headers if not field[0].startswith(b":")]
        self.http.send_headers(event.stream_id, fields, end_stream=True)

    def request(self, stream_id, headers):
        method, path = headers[b":method"].decode(), headers[b":path"].decode()
        say("request", method, path)
        if (method, path) == ("GET", "/headers"):
            self.headers(stream_id, headers)
        elif (method, path) == ("GET", "/slow"):
            self.head(stream_id, 200)
            self.endless[stream_id] = asyncio.ensure_future(self.drip(stream_id))
        elif (method, path) == ("GET", "/goaway"):
            self.go_away(stream_id + 4)
            self.content(stream_id, 200, b"going")
        elif method == "POST" and path in ("/echo", "/trailers"):
            self.echoes.add(stream_id)
            self.head(stream_id, 200)
        elif method == "GET" and path.startswith("/bytes/") and path[7:].isdigit():
            size = int(path[7:])
            if size <= MOST:
                self.content(stream_id, 200, pattern(size))
            else:
                self.content(stream_id, 404, b"")
        else:
            self.content(stream_id, 404, b"")

    def head(self, stream_id, status, fields=(), end=False):
        self.http.send_headers(stream_id, [(b":status", b"%d" % status), *fields], end_stream=end)

    def content(self, stream_id, status, content):
        self.head(stream_id, status, end=not content)
        if content:
            self.http.send_data(stream_id, content, end_stream=True)

    def headers(self, stream_id, asked):
        count, turn = count_small(asked), int(asked[b"x-turn"])
        fields = [
            (b"x-large", letters(int(asked[b"x-size"]))),
            (b"x-digest", b"%d" % zlib.crc32(asked[b"x-large"])),
            (b"x-count", b"%d" % count),
            *small(count, turn),
        ]
        self.head(stream_id, 200, fields, end=True)

    async def drip(self, stream_id):
        while True:
            self.http.send_data(stream_id, bytes(PIECE), end_stream=False)
            self.transmit()
            await asyncio.sleep(PACE)

    def go_away(self, limit):
        """aioquic sends no GOAWAY of its own: the frame goes onto its control stream from here."""
        frame = encode_frame(FrameType.GOAWAY, encode_uint_var(limit))
        self._quic.send_stream_data(self.http._local_control_stream_id, frame)


async def run_server(arguments):
    settings = configuration(is_client=False)
    settings.load_cert_chain(arguments.cert, arguments.key)
    host, _, port = arguments.listen.rpartition(":")
    tickets = {}
    # aioquic then takes 0-RTT data, too: there is no switch.
    await serve(
        host.strip("[]"),
        int(port),
        configuration=settings,
        create_protocol=Server,
        session_ticket_handler=lambda ticket: tickets.update({ticket.ticket: ticket}),
        session_ticket_fetcher=lambda label: tickets.pop(label, None),
    )
    say("listening on", arguments.listen)
    await asyncio.Event().wait()


class Answer:
    """A response as it comes."""

    def __init__(self):
        self.status = None
        self.headers = {}
        self.trailers = {}
        self.bytes = 0
        self.crc = 0
        self.ended = False
        self.error = None
        self.changed = asyncio.Event()

    def take(self, event):
        if isinstance(event, DataReceived):
            self.bytes += len(event.data)
            self.crc = zlib.crc32(event.data, self.crc)
        elif self.status is None:
            self.headers = dict(event.headers)
            self.status = int(self.headers[b":status"])
        else:
            self.trailers = dict(event.headers)
        self.ended = self.ended or event.stream_ended
        self.changed.set()

    def fail(self, reason):
        self.error = reason
        self.changed.set()

    async def until(self, size=None):
        """Waits until so much has come, or all."""
        while not self.ended and (size is None or self.bytes < size):
            if self.error:
                raise ConnectionError(self.error)
            self.changed.clear()
            await self.changed.wait()
        if size is not None and self.bytes < size:
            raise ConnectionError("the response ended early")

    def told(self, **more):
        return {"status": self.status, "bytes": self.bytes, "crc": self.crc, **more}


class Client(QuicConnectionProtocol):
    """The requests of one connection."""

    def __init__(self, quic, stream_handler=None):
        super().__init__(quic, stream_handler)
        self.http = H3Connection(quic)
        self.answers = {}
        self.completed = None

    def quic_event_received(self, event):
        if isinstance(event, HandshakeCompleted):
            self.completed = event
        elif isinstance(event, StreamReset) and event.stream_id in self.answers:
            self.answers[event.stream_id].fail(f"reset with {event.error_code:#x}")
        elif isinstance(event, ConnectionTerminated):
            for answer in self.answers.values():
                answer.fail(f"connection ended with {event.error_code:#x} {event.reason_phrase!r}")
        for happened in self.http.handle_event(event):
            if happened.stream_id in self.answers:
                self.answers[happened.stream_id].take(happened)

    def request(self, method, path, fields=(), end=True):
        """The stream, and the response to come."""
        stream_id = self._quic.get_next_available_stream_id()
        pseudo = {":method": method, ":scheme": "https", ":authority": NAME, ":path": path}
        head = [(name.encode(), value.encode()) for name, value in pseudo.items()]
        answer = self.answers[stream_id] = Answer()
        self.http.send_headers(stream_id, [*head, *fields], end_stream=end)
        return stream_id, answer

    async def get(self, path):
        _, answer = self.request("GET", path)
        self.transmit()
        await answer.until()
        return answer.told(path=path)

    async def gets(self):
        return {"responses": [await self.get(path) for path in GETS]}

    async def parallel(self):
        """A thousand at the same time."""
        answers = [self.request("GET", f"/bytes/{nth}")[1] for nth in range(PARALLEL)]
        self.transmit()
        good = size = crc = 0
        for answer in answers:
            await answer.until()
            good += answer.status == 200
            size += answer.bytes
            crc ^= answer.crc
        return {"good": good, "bytes": size, "crc": crc}

    async def turn(self, stream_id, answer, piece):
        """Sends a piece and waits until everything sent so far has come back."""
        wanted = answer.bytes + len(piece)
        self.http.send_data(stream_id, piece, end_stream=False)
        self.transmit()
        await answer.until(wanted)

    async def post(self):
        stream_id, answer = self.request("POST", "/echo", end=False)
        data = pattern(TURNS * TURN_SIZE)
        for at in range(0, len(data), TURN_SIZE):
            await self.turn(stream_id, answer, data[at : at + TURN_SIZE])
        self.http.send_data(stream_id, b"", end_stream=True)
        self.transmit()
        await answer.until()
        return answer.told(turns=TURNS)

    async def headers(self):
        answers = []
        for turn in range(HEADER_TURNS):
            fields = [
                (b"x-size", b"%d" % LARGE_SIZE),
                (b"x-turn", b"%d" % turn),
                (b"x-large", letters(LARGE_SIZE)),
                *small(SMALL_COUNT, turn),
            ]
            _, answer = self.request("GET", "/headers", fields)
            self.transmit()
            await answer.until()
            told = answer.headers
            large = told.get(b"x-large", b"")
            answers.append({
                "status": answer.status,
                "digest": told.get(b"x-digest", b"").decode(),
                "count": told.get(b"x-count", b"").decode(),
                "large": len(large),
                "large_crc": zlib.crc32(large),
                "small": count_small(told),
                "last": told.get(SMALL + b"%d" % (SMALL_COUNT - 1), b"").decode(),
            })
        return {"responses": answers}

    async def trailers(self):
        stream_id, answer = self.request("POST", "/trailers", end=False)
        self.http.send_data(stream_id, pattern(TURN_SIZE), end_stream=False)
        self.http.send_headers(stream_id, [(b"x-trailer", b"after all")], end_stream=True)
        self.transmit()
        await answer.until()
        return answer.told(trailer=answer.trailers.get(b"x-trailer", b"").decode())

    async def cancel(self):
        """Gives up an endless response, and goes on."""
        stream_id, answer = self.request("GET", "/slow")
        self.transmit()
        await answer.until(CANCEL_AFTER)
        self._quic.stop_stream(stream_id, ErrorCode.H3_REQUEST_CANCELLED)
        del self.answers[stream_id]
        after = await self.get("/bytes/10000")
        return {"read": answer.bytes, "after": after}


async def connect(settings, address, early, keep):
    host, _, port = address.rpartition(":")
    _, protocol = await asyncio.get_running_loop().create_datagram_endpoint(
        lambda: Client(QuicConnection(configuration=settings, session_ticket_handler=keep)),
        local_addr=("0.0.0.0", 0),
    )
    protocol.connect((host, int(port)), transmit=not early)
    if not early:
        await protocol.wait_connected()
    return protocol


async def leave(protocol):
    protocol.close(ErrorCode.H3_NO_ERROR)
    await protocol.wait_closed()


async def zero_rtt(settings, address):
    tickets = []
    first = await connect(settings, address, False, tickets.append)
    one = await first.get("/bytes/1000")
    await asyncio.sleep(SOON)
    await leave(first)
    if not tickets:
        raise ConnectionError("no session ticket came")
    settings.session_ticket = tickets[-1]
    second = await connect(settings, address, True, tickets.append)
    _, answer = second.request("GET", "/bytes/2000")
    second.transmit()
    await second.wait_connected()
    await answer.until()
    accepted = second.completed.early_data_accepted
    await leave(second)
    return {"responses": [one, answer.told()], "early_accepted": accepted}


async def run_client(arguments):
    if arguments.case == "goaway":
        raise Unsupported("aioquic ignores GOAWAY")
    settings = configuration(is_client=True)
    settings.load_verify_locations(cafile=arguments.ca)
    settings.server_name = NAME
    if arguments.case == "zerortt":
        told = await zero_rtt(settings, arguments.connect)
    else:
        protocol = await connect(settings, arguments.connect, False, lambda ticket: None)
        told = await getattr(protocol, "gets" if arguments.case == "get" else arguments.case)()
        await leave(protocol)
    print(json.dumps(told))


def parse():
    parser = argparse.ArgumentParser(description=__doc__)
    roles = parser.add_subparsers(dest="role", required=True)
    server = roles.add_parser("h3-server", help="answer requests")
    server.add_argument("--listen", required=True, metavar="HOST:PORT")
    server.add_argument("--cert", required=True, help="certificate chain, PEM")
    server.add_argument("--key", required=True, help="private key, PEM")
    server.add_argument("--zero-rtt", action="store_true", help="accept 0-RTT, as aioquic always does")
    client = roles.add_parser("h3-client", help="run a case, print what came of it")
    client.add_argument("--connect", required=True, metavar="HOST:PORT")
    client.add_argument("--ca", required=True, help="trusted certificates, PEM")
    client.add_argument(
        "--case", required=True,
        choices=["get", "parallel", "post", "headers", "trailers", "cancel", "goaway", "zerortt"],
    )
    return parser.parse_args()


def main():
    arguments = parse()
    run = run_server if arguments.role == "h3-server" else run_client
    try:
        asyncio.run(run(arguments))
    except Unsupported as reason:
        print("unsupported:", reason, file=sys.stderr)
        sys.exit(UNSUPPORTED)
    except (ConnectionError, OSError) as error:
        sys.exit(f"{type(error).__name__}: {error}")


if __name__ == "__main__":
    main()
