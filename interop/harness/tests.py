"""Tests of the harness itself: a check that can't fail proves nothing."""

import socket
import sys
import tempfile
import unittest
from pathlib import Path

from .packets import packets
from .programs import Bench, Failure
from .site import Site
from .tap import Tap

INITIAL = bytes([0xC0, 0, 0, 0, 1])
HANDSHAKE = bytes([0xE0, 0, 0, 0, 1])


def cids(dcid, scid):
    return bytes([len(dcid)]) + dcid + bytes([len(scid)]) + scid


def initial(dcid=b"d" * 8, scid=b"s" * 8, token=b"", size=20):
    return INITIAL + cids(dcid, scid) + bytes([len(token)]) + token + bytes([size]) + bytes(size)


def handshake(dcid=b"d" * 8, scid=b"s" * 8, size=20):
    return HANDSHAKE + cids(dcid, scid) + bytes([size]) + bytes(size)


def padded(packet, size):
    return packet + bytes(size - len(packet))


class Packets(unittest.TestCase):
    def test_coalesced(self):
        found = packets(initial(token=b"abc") + handshake() + b"\x40rest")
        self.assertEqual([packet.kind for packet in found], ["Initial", "Handshake", "short"])
        self.assertEqual(found[0].token, b"abc")
        self.assertEqual(found[1].scid, b"s" * 8)

    def test_padding_is_no_packet(self):
        found = packets(padded(initial(), 1200))
        self.assertEqual([packet.kind for packet in found], ["Initial"])

    def test_retry_and_versions(self):
        retry = bytes([0xF0, 0, 0, 0, 1]) + cids(b"", b"s") + b"token and tag"
        self.assertEqual(packets(retry)[0].kind, "Retry")
        offer = bytes([0x80, 0, 0, 0, 0]) + cids(b"a", b"b") + bytes([0, 0, 0, 1, 0, 0, 0, 9])
        self.assertEqual(packets(offer)[0].versions, [1, 9])

    def test_truncated(self):
        for size in range(1, len(initial())):
            self.assertEqual(packets(initial()[:size])[-1].kind, "garbled")


class Watching(unittest.TestCase):
    def setUp(self):
        self.server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.client = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.addCleanup(self.server.close)
        self.addCleanup(self.client.close)
        self.server.bind(("127.0.0.1", 0))
        self.server.settimeout(5)
        self.client.settimeout(5)

    def run_tap(self, first, answers, rebind_at=()):
        with Tap(self.server.getsockname(), rebind_at) as tap:
            for datagram in first:
                self.client.sendto(datagram, ("127.0.0.1", tap.port))
                _, near = self.server.recvfrom(65536)
            for datagram in answers:
                self.server.sendto(datagram, near)
                self.client.recv(65536)
        return tap

    def test_within_the_limit(self):
        tap = self.run_tap([padded(initial(), 1200)], [padded(initial(), 1200)] * 3)
        self.assertEqual(tap.faults, [])
        self.assertEqual(tap.budget_used, 3.0)

    def test_amplification(self):
        tap = self.run_tap([padded(initial(), 1200)], [padded(initial(), 1200)] * 3 + [b"\x40"])
        self.assertIn("3601 bytes sent for 1200", tap.faults[0])

    def test_validated_address(self):
        first = [padded(initial(), 1200), handshake()]
        self.assertEqual(self.run_tap(first, [padded(initial(), 1200)] * 5).faults, [])

    def test_small_initial(self):
        self.assertIn("1199 bytes", self.run_tap([padded(initial(), 1199)], []).faults[0])

    def test_rebinding(self):
        tap = self.run_tap([b"\x40"] * 3, [b"\x40"], rebind_at=[2])
        self.assertEqual(tap.rebindings, 1)
        self.assertEqual(tap.since_rebinding, {"client": 1, "server": 1})


class Files(unittest.TestCase):
    def test_differences(self):
        with tempfile.TemporaryDirectory() as folder:
            folder = Path(folder)
            site = Site(folder / "site")
            received = folder / "received"
            received.mkdir()
            self.assertEqual(site.differences(["one"], received), ["one is missing"])
            (received / "one").write_bytes((site.root / "one").read_bytes())
            self.assertEqual(site.differences(["one"], received), [])
            (received / "one").write_bytes(b"??")
            (received / ".one.part-1").write_bytes(b"")
            wrong = site.differences(["one"], received)
            self.assertEqual(wrong, ["one differs", ".one.part-1 is not asked for"])


class Processes(unittest.TestCase):
    def test_ended_with_the_case(self):
        with tempfile.TemporaryDirectory() as folder:
            with Bench(Path(folder) / "case") as bench:
                running = bench.start("sleeper", ["sleep", "1000"])
                self.assertTrue(running.alive())
            self.assertFalse(running.alive())

    def test_never_said(self):
        with tempfile.TemporaryDirectory() as folder, Bench(Path(folder) / "case") as bench:
            running = bench.start("speaker", [sys.executable, "-c", "print('words')"])
            running.wait_for("words", 10)
            with self.assertRaises(Failure):
                running.wait_for("other words", 0)


if __name__ == "__main__":
    unittest.main()
