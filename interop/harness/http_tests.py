"""Tests of the HTTP cases' checks: each has to fail when it should."""

import unittest
import zlib
from pathlib import Path
from types import SimpleNamespace

from . import http3, http_cases, results
from .cases import CASES
from .programs import Failure, Foreign, HttpClient, Server, http_client
from .render import render
from .trace import CLIENT, SERVER

LARGEST = (1 << 62) - 4


def varint(value):
    size = next(size for size in (1, 2, 4, 8) if value < 1 << (8 * size - 2))
    prefix = size.bit_length() - 1
    return (value | prefix << (8 * size - 2)).to_bytes(size, "big")


def h3_frame(kind, payload):
    return varint(kind) + varint(len(payload)) + payload


def goaway(identifier):
    return h3_frame(http3.GOAWAY, varint(identifier))


def stream(identifier, data, offset=0, end=False):
    return SimpleNamespace(kind="stream", id=identifier, offset=offset, size=len(data), end=end, data=data)


def close(error, application=True):
    return SimpleNamespace(kind="connection_close", error=error, application=application, reason=b"")


def give_up(kind, *values):
    return SimpleNamespace(kind=kind, values=list(values))


class Passed:
    """A connection made of packets: side, kind and frames."""

    def __init__(self, *packets):
        self.packets = [
            SimpleNamespace(side=side, kind=kind, frames=list(frames)) for side, kind, *frames in packets
        ]

    def sent(self, side, *kinds):
        return [it for it in self.packets if it.side == side and (not kinds or it.kind in kinds)]

    def frames(self, side, *kinds):
        return [it for packet in self.sent(side) for it in packet.frames if it.kind in kinds]


def after(*frames):
    """The client's part of the case, and frames of the server."""
    asked = [(CLIENT, "1-RTT", stream(it, b"request", end=True)) for it in (0, 4)]
    return Passed(*asked, (SERVER, "1-RTT", *frames))


class Streams(unittest.TestCase):
    def test_reassembly(self):
        pieces = [(SERVER, "1-RTT", stream(3, b"cd", 2)), (SERVER, "1-RTT", stream(3, b"abc"))]
        self.assertEqual(http3.stream_data(Passed(*pieces), SERVER), {3: b"abcd"})
        gap = Passed((SERVER, "1-RTT", stream(3, b"a"), stream(3, b"c", 2)))
        self.assertEqual(http3.stream_data(gap, SERVER), {3: b"a"})

    def test_frames(self):
        data = h3_frame(4, b"") + goaway(LARGEST)
        self.assertEqual([kind for kind, _ in http3.frames(data + b"\x07")], [4, 7])

    def test_uni_streams(self):
        passed = Passed((SERVER, "1-RTT", stream(3, b"\x00control"), stream(7, b"\x02encoder"), stream(2, b"\x00")))
        self.assertEqual(http3.uni_streams(passed, SERVER, http3.QPACK_ENCODER), [b"encoder"])
        self.assertEqual(http3.uni_streams(passed, SERVER, http3.CONTROL), [b"control"])

    def test_most_open(self):
        passed = Passed(
            (CLIENT, "1-RTT", stream(0, b"a"), stream(4, b"a")),
            (SERVER, "1-RTT", stream(0, b"a", end=True)),
            (CLIENT, "1-RTT", stream(8, b"a"), stream(2, b"a")),
        )
        self.assertEqual(http3.most_open(passed), 2)

    def test_most_ahead(self):
        passed = Passed(
            (CLIENT, "1-RTT", stream(0, b"a" * 10)),
            (SERVER, "1-RTT", stream(0, b"a" * 9)),
            (CLIENT, "1-RTT", stream(0, b"a" * 2, 10)),
        )
        self.assertEqual(http3.most_ahead(passed, 0), 10)


class Checks(unittest.TestCase):
    def test_values(self):
        http_cases.check("it", {"a": 1, "b": 2}, {"a": 1})
        for wrong in ({"a": 2}, {}):
            with self.assertRaisesRegex(Failure, "instead of"):
                http_cases.check("it", wrong, {"a": 1})

    def test_content(self):
        pattern = bytes((at ^ at >> 8 ^ at >> 16) & 255 for at in range(70_000))
        self.assertEqual(http_cases.content(70_000)["crc"], zlib.crc32(pattern))

    def test_closes(self):
        right = (CLIENT, "1-RTT", close(0x100))
        answer = (SERVER, "1-RTT", close(0, False))
        http_cases.check_closes(Passed((CLIENT, "Handshake", close(0x0C, False)), right, answer), needed=True)
        http_cases.check_closes(Passed())
        wrong = [
            [answer],
            [(CLIENT, "1-RTT", close(0x101))],
            [(CLIENT, "1-RTT", close(0x100, False))],
            [(CLIENT, "1-RTT", close(0x0C, False))],
            [right, (SERVER, "1-RTT", close(0x102))],
            [right, (CLIENT, "1-RTT", close(0, False))],
        ]
        for packets in wrong:
            with self.assertRaisesRegex(Failure, "closed with"):
                http_cases.check_closes(Passed(*packets))
        with self.assertRaisesRegex(Failure, "no end"):
            http_cases.check_closes(Passed(), needed=True)

    def test_cancelled(self):
        asked = (CLIENT, "1-RTT", give_up("stop_sending", 0, 0x10C))
        done = (SERVER, "1-RTT", give_up("reset_stream", 0, 0x10C, 5000))
        http_cases.check_cancelled(Passed(asked, done))
        other = (CLIENT, "1-RTT", give_up("stop_sending", 0, 0x100))
        for packets in ([asked], [done], [other, done]):
            with self.assertRaises(Failure):
                http_cases.check_cancelled(Passed(*packets))

    def test_goaway(self):
        for identifiers in ([8], [LARGEST, 8]):
            control = b"\x00" + b"".join(map(goaway, identifiers))
            http_cases.check_goaway(after(stream(3, control)))
        for identifiers in ([], [4], [8, LARGEST], [9]):
            control = b"\x00" + b"".join(map(goaway, identifiers))
            with self.assertRaisesRegex(Failure, "GOAWAY"):
                http_cases.check_goaway(after(stream(3, control)))

    def test_request_after_goaway(self):
        passed = after(stream(3, b"\x00" + goaway(8)))
        passed.packets += Passed((CLIENT, "1-RTT", stream(8, b"late"))).packets
        with self.assertRaisesRegex(Failure, "3 requests"):
            http_cases.check_goaway(passed)

    def test_early(self):
        early = (CLIENT, "0-RTT")
        rest = (CLIENT, "1-RTT", stream(0, b"grease", 30), stream(0, b""))
        http_cases.check_early(Passed(early, rest))
        with self.assertRaisesRegex(Failure, "no 0-RTT"):
            http_cases.check_early(Passed(rest))
        with self.assertRaisesRegex(Failure, "after the handshake"):
            http_cases.check_early(Passed(early, (CLIENT, "1-RTT", stream(0, b"request"))))


class Programs(unittest.TestCase):
    def test_commands(self):
        identity = SimpleNamespace(certificate=Path("cert"), key=Path("key"))
        peer = Foreign("it", ["server"], ["client"], http=["it-h3"])
        task = Server(Path("dir"), identity, http=True, zero_rtt=True)
        command = "it-h3 h3-server --listen 127.0.0.1:1 --cert cert --key key --zero-rtt"
        self.assertEqual(" ".join(peer.server(task, "127.0.0.1:1")), command)
        task = HttpClient(("127.0.0.1", 1), Path("ca"), "get")
        self.assertEqual(" ".join(http_client(peer, task)), "it-h3 h3-client --connect 127.0.0.1:1 --ca ca --case get")


class Pages(unittest.TestCase):
    def row(self, server, client, case, verdict="pass"):
        return {"server": server, "client": client, "case": case, "verdict": verdict, "note": "why"}

    def told(self, *rows):
        when = {"date": "2026-01-01", "commit": "abc", "repeat": 1, "peers": {"here": "1", "plain": "2"}}
        return when | {"results": list(rows)}

    def test_later_run(self):
        earlier = self.told(self.row("here", "swiftwater", "retry"), self.row("here", "swiftwater", "h3_get", "fail"))
        later = self.told(self.row("here", "swiftwater", "h3_get")) | {"commit": "def", "date": "2026-01-02"}
        told = results.with_part(earlier, later, "http")
        self.assertEqual((told["commit"], told["http"]["commit"]), ("abc", "def"))
        self.assertEqual([row["verdict"] for row in told["results"]], ["pass", "pass"])
        page = render(told, CASES)
        self.assertIn("`abc`", page)
        self.assertIn("`def`", page)

    def test_tables(self):
        page = render(self.told(self.row("here", "swiftwater", "h3_get", "skip")), CASES)
        start = page.index("## HTTP/3, Swiftwater as client")
        self.assertEqual(page[start:].splitlines()[2], "| | here |")
        self.assertIn("| h3_get | – [1](#reasons) |", page[start:])
        self.assertNotIn("h3_get", page[:start])
        self.assertNotIn("HTTP/3, ", render(self.told(self.row("here", "swiftwater", "retry")), CASES))


if __name__ == "__main__":
    unittest.main()
