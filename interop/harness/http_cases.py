"""The cases of HTTP/3. What a client must do in each, and how servers answer, is in interop/README.md. Each
runs one server and one client and raises `Failure` if anything is not as it must be; what it returns is a note
for the table."""

import contextlib
import functools
import json
import re
import zlib

from . import http3
from .programs import Failure, HttpClient
from .scene import TIME, scene
from .trace import CLIENT, SERVER

# What the clients do, as the contract says.
GETS = ("/bytes/0", "/bytes/1", "/bytes/100000", "/bytes/1000000")
PARALLEL = 1000
TURNS, TURN_SIZE = 20, 50_000
HEADER_TURNS, LARGE_SIZE, SMALL_COUNT = 3, 20_000, 50
CANCEL_AFTER = 100_000
TRAILER = "after all"
# The fewest requests of the thousand that must be in progress at the same time.
AT_ONCE = 20
# What a client may be ahead of its echo beyond a piece: request's head and frames' heads, bytes.
OVERHEAD = 4_000
# The transport's code for a close by the application during the handshake.
APPLICATION_ERROR = 0x0C
# A server gets a cancellation within this time, seconds.
NOTICE = 5


# Each 256 bytes of the pattern are one of these.
BLOCKS = [bytes(low ^ high for low in range(256)) for high in range(256)]


@functools.cache
def pattern(size):
    """Content that depends on its place: byte n is n ^ n >> 8 ^ n >> 16."""
    return b"".join(BLOCKS[(at ^ at >> 8) & 255] for at in range(size // 256 + 1))[:size]


@functools.cache
def letters(size):
    alphabet = b"abcdefghijklmnopqrstuvwxyz"
    return (alphabet * (size // len(alphabet) + 1))[:size]


def content(size):
    """The report of a client on a response with so much of the pattern."""
    return {"status": 200, "bytes": size, "crc": zlib.crc32(pattern(size))}


def check(what, found, wanted):
    """Each of the expected values is present."""
    wrong = {name: found.get(name) for name, value in wanted.items() if found.get(name) != value}
    if wrong:
        right = {name: wanted[name] for name in wrong}
        raise Failure(f"{what}: {str(wrong)[:150]} instead of {str(right)[:150]}")


@contextlib.contextmanager
def visit(setting, case, **options):
    """Runs a case's client; returns the scene and the client's report."""
    with scene(setting, http=True, **options) as it:
        task = HttpClient(it.near, it.identity.ca, case)
        running = setting.bench.run_http_client(setting.client, task, TIME)
        if running.process.returncode != 0:
            raise Failure(f"client exit {running.process.returncode}: {running.last_words()}")
        lines = [line for line in running.output().splitlines() if line.startswith("{")]
        if not lines:
            raise Failure("the client reported nothing")
        yield it, json.loads(lines[-1])


def connections(it, count=1):
    """The connections that passed; none may have ended otherwise than in good order."""
    found = it.trace(handshakes=count).handshakes()
    for connection in found:
        check_closes(connection)
    return found


def check_closes(connection, needed=False):
    """Whoever closes does so with H3_NO_ERROR. The other side may answer with NO_ERROR of the transport (RFC
    9000, section 10.2.2)."""
    closer = None
    for packet in connection.packets:
        # Before 1-RTT packets the code is veiled (RFC 9000, section 10.2.3).
        right = (http3.NO_ERROR, True) if packet.kind == "1-RTT" else (APPLICATION_ERROR, False)
        for frame in packet.frames or ():
            if frame.kind != "connection_close":
                continue
            closer = closer or packet.side
            is_answer = packet.side != closer and (frame.error, frame.application) == (0, False)
            if (frame.error, frame.application) != right and not is_answer:
                raise Failure(f"the {packet.side} closed with {frame.error:#x} {frame.reason[:80]!r}")
    if needed and not closer:
        raise Failure("no end closed the connection")


def check_requests(connection, count):
    streams = http3.requests(connection)
    if streams != list(range(0, 4 * count, 4)):
        raise Failure(f"{len(streams)} requests instead of {count}: streams {streams[:10]}")


def h3_get(setting):
    """GET of 0 bytes, 1 byte, 100 kB and 1 MB, and of what isn't there, one after the other on one
    connection."""
    with visit(setting, "get") as (it, report):
        (connection,) = connections(it)
    answers = report["responses"]
    if len(answers) != len(GETS) + 1:
        raise Failure(f"{len(answers)} responses")
    for path, answer in zip(GETS, answers):
        check(path, answer, content(int(path.rpartition("/")[2])))
    check("what isn't there", answers[-1], {"status": 404, "bytes": 0})
    check_requests(connection, len(GETS) + 1)


def h3_post(setting):
    """POST whose content of 1 MB comes back while it is being sent: each 50 kB are sent when those before
    have come back."""
    with visit(setting, "post") as (it, report):
        (connection,) = connections(it)
    check("echo", report, content(TURNS * TURN_SIZE) | {"turns": TURNS})
    ahead = http3.most_ahead(connection, 0)
    if ahead > TURN_SIZE + OVERHEAD:
        raise Failure(f"the client was {ahead} bytes ahead: it did not wait")
    return f"{ahead} bytes ahead of the echo at most"


def h3_parallel(setting):
    """1000 requests at the same time on one connection, as the server permits streams; at least 20 are
    under way at once."""
    with visit(setting, "parallel") as (it, report):
        (connection,) = connections(it)
    crc = 0
    for size in range(PARALLEL):
        crc ^= zlib.crc32(pattern(size))
    check("all", report, {"good": PARALLEL, "bytes": sum(range(PARALLEL)), "crc": crc})
    check_requests(connection, PARALLEL)
    most = http3.most_open(connection)
    if most < AT_ONCE:
        raise Failure(f"only {most} requests were in progress at once")
    return f"{most} at once"


def h3_headers(setting):
    """Three requests with a header of 20 kB and 50 short ones both ways."""
    with visit(setting, "headers") as (it, report):
        (connection,) = connections(it)
    if len(report["responses"]) != HEADER_TURNS:
        raise Failure(f"{len(report['responses'])} responses")
    crc = zlib.crc32(letters(LARGE_SIZE))
    for turn, answer in enumerate(report["responses"]):
        wanted = {
            "status": 200,
            "digest": str(crc),
            "count": str(SMALL_COUNT),
            "large": LARGE_SIZE,
            "large_crc": crc,
            "small": SMALL_COUNT,
            "last": f"value {SMALL_COUNT - 1} of turn {turn}",
        }
        check(f"response {turn}", answer, wanted)
    used = [
        f"{side} {sum(map(len, http3.uni_streams(connection, side, http3.QPACK_ENCODER)))}"
        for side in (CLIENT, SERVER)
    ]
    return f"bytes of QPACK instructions: {', '.join(used)}"


def h3_trailers(setting):
    """The request's trailers come back as those of the response."""
    with visit(setting, "trailers") as (it, report):
        connections(it)
    check("echo", report, content(TURN_SIZE) | {"trailer": TRAILER})


def h3_cancel(setting):
    """The client gives up an endless response with H3_REQUEST_CANCELLED; the server hears of it and ends the
    stream, and the connection goes on."""
    with visit(setting, "cancel") as (it, report):
        it.server.wait_for("cancelled", NOTICE)
        (connection,) = connections(it)
        told = re.search(r"cancelled (0x[0-9a-f]+)", it.server.output())
    if report["read"] < CANCEL_AFTER:
        raise Failure(f"{report['read']} bytes were read")
    check("the next one", report["after"], content(10_000))
    check_cancelled(connection)
    if told and int(told[1], 16) != http3.REQUEST_CANCELLED:
        raise Failure(f"the server got code {told[1]}")
    check_requests(connection, 2)


def check_cancelled(connection):
    """The first request was given up by the client, and then by the server."""
    asked = dict(http3.given_up(connection, CLIENT, "stop_sending"))
    if asked.get(0) != http3.REQUEST_CANCELLED:
        raise Failure(f"the client's STOP_SENDING: {asked}")
    if 0 not in dict(http3.given_up(connection, SERVER, "reset_stream")):
        raise Failure("the server did not end the stream")


def h3_goaway(setting):
    """The server sends GOAWAY while a request is under way: that one finishes, no other is sent, and the
    connection ends with H3_NO_ERROR."""
    with visit(setting, "goaway") as (it, report):
        it.server.wait_for("connection ended", NOTICE)
        (connection,) = connections(it)
    check("the request under way", report["echo"], content(2 * TURN_SIZE))
    check("all", report, {"goaway": 200, "refused": True})
    check_goaway(connection)
    check_closes(connection, needed=True)
    return f"identifiers {', '.join(map(name, http3.goaways(connection)))}"


def check_goaway(connection):
    """GOAWAY came, never with a larger identifier than before, and both requests of the case are below."""
    found = http3.goaways(connection)
    if not found:
        raise Failure("the server sent no GOAWAY")
    if found != sorted(found, reverse=True) or any(it % 4 for it in found):
        raise Failure(f"identifiers of GOAWAY: {found}")
    if found[-1] <= 4:
        raise Failure(f"GOAWAY with {found[-1]} takes back a request that was answered")
    check_requests(connection, 2)


def name(identifier):
    """The largest identifier says nothing yet."""
    return "2^62-4" if identifier == (1 << 62) - 4 else str(identifier)


def h3_zerortt(setting):
    """The second of two connections sends its request in 0-RTT, and the server takes it."""
    with visit(setting, "zerortt", zero_rtt=True) as (it, report):
        first, second = connections(it, 2)
    for size, answer in zip((1000, 2000), report["responses"], strict=True):
        check(f"/bytes/{size}", answer, content(size))
    check("the second", report, {"early_accepted": True})
    check_early(second)
    if first.sent(CLIENT, "0-RTT"):
        raise Failure("0-RTT in the first connection")
    return f"{len(second.sent(CLIENT, '0-RTT'))} 0-RTT packets"


def check_early(connection):
    """The request was in 0-RTT packets: its beginning is in none of 1-RTT."""
    if not connection.sent(CLIENT, "0-RTT"):
        raise Failure("no 0-RTT packet")
    late = [it for it in connection.frames(CLIENT, "stream") if (it.id, it.offset) == (0, 0) and it.size]
    if late:
        raise Failure("the request was sent after the handshake")


CASES = (h3_get, h3_post, h3_parallel, h3_headers, h3_trailers, h3_cancel, h3_goaway, h3_zerortt)
