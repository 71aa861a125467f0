"""Tests of the harness itself: a check that can't fail proves nothing."""

import json
import socket
import sys
import tempfile
import unittest
from pathlib import Path

from .cases import Setting, replicas
from .packets import packets
from .programs import Bench, Failure
from .qlog import repairs
from .site import Site
from .tap import Impairments, Tap

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
        impairments = Impairments(rebind_at=frozenset(rebind_at))
        with Tap(self.server.getsockname(), impairments=impairments) as tap:
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


def event(name, **data):
    return json.dumps({"time": 1.0, "name": name, "data": data})


LOST = event("swiftwater:data_lost")
REPLICA = event("swiftwater:replica_sent")
SENT = event("quic:packet_sent", frames=[{"frame_type": "stream", "purpose": "replica"}])
BROUGHT = event("swiftwater:data_recovered", by="replica")


class Logs(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def write(self, *texts, name="a.sqlog"):
        (self.folder / name).write_text("".join(f"\x1e{text}\n" for text in texts))

    def test_counts(self):
        header = json.dumps({"file_schema": "urn:ietf:params:qlog:file:sequential"})
        self.write(header, LOST, SENT, REPLICA, BROUGHT)
        again = event("swiftwater:data_recovered", by="retransmission")
        new = event("quic:packet_sent", frames=[{"frame_type": "stream"}])
        self.write(header, LOST, again, new, name="b.sqlog")
        found = repairs(self.folder)
        counts = (found.lost, found.replicas, found.replica_frames, found.brought, found.records)
        self.assertEqual(counts, (2, 1, 1, 1, 9))

    def test_none(self):
        with self.assertRaisesRegex(Failure, "no qlog"):
            repairs(self.folder)

    def test_broken(self):
        self.write(LOST, '{"time": 1.0, "na')
        with self.assertRaisesRegex(Failure, "record 2 of a.sqlog"):
            repairs(self.folder)
        (self.folder / "a.sqlog").write_text(LOST)
        with self.assertRaisesRegex(Failure, "separator"):
            repairs(self.folder)


class FakeBench:
    """A bench whose server has left the log `texts`, and whose client writes the files of `site`."""

    def __init__(self, folder, site, texts, content=None):
        self.folder, self.site, self.texts, self.content = folder, site, texts, content
        self.versions = [1]
        self.process = self
        self.returncode = 0

    def start_server(self, _peer, task, _host):
        task.qlog.mkdir()
        lines = "".join(f"\x1e{text}\n" for text in self.texts)
        (task.qlog / "a.sqlog").write_text(lines)
        return self, ("127.0.0.1", 1)

    def start_relay(self, _swiftwater, _to, link):
        assert "5%" in link
        return self, ("127.0.0.1", 2)

    def run_client(self, _peer, task, _seconds):
        task.output.mkdir()
        for url in task.urls:
            name = url.rsplit("/", 1)[1]
            content = self.content or (self.site.root / name).read_bytes()
            (task.output / name).write_bytes(content)
        return self

    def output(self):
        return '{"seconds": 1.5}'

    def everything(self):
        return ""

    def alive(self):
        return True

    def stop(self, gently=False):
        assert gently


class Replicas(unittest.TestCase):
    def run_case(self, *texts, content=None):
        with tempfile.TemporaryDirectory() as folder:
            folder = Path(folder)
            site = Site(folder / "site")
            bench = FakeBench(folder, site, texts, content)

            class Identity:
                ca = folder

            return replicas(Setting(bench, site, Identity, Identity, None, None, None, None))

    def test_passes(self):
        note = self.run_case(LOST, SENT, REPLICA, BROUGHT)
        self.assertEqual(note, "1 replicas for 1 losses, 1 brought the data; 1.5 s")

    def test_without_replicas(self):
        with self.assertRaisesRegex(Failure, "no replica"):
            self.run_case(LOST)

    def test_without_loss(self):
        with self.assertRaisesRegex(Failure, "nothing was lost"):
            self.run_case(SENT, REPLICA)

    def test_event_without_frame(self):
        with self.assertRaisesRegex(Failure, "1 replicas, but 0 frames"):
            self.run_case(LOST, REPLICA)

    def test_wrong_hash(self):
        with self.assertRaisesRegex(Failure, "one-mb differs"):
            self.run_case(LOST, SENT, REPLICA, content=b"??")


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
