"""Tests of what the tap does to datagrams, and of the rendered page."""

import socket
import unittest
from types import SimpleNamespace

from .render import render
from .results import amended, failures
from .tap import Impairments, Tap

ECT_0 = 2
CASE = SimpleNamespace(name="handshake", matrix=True, http=False, paths=False)


class Through(unittest.TestCase):
    def setUp(self):
        self.server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.client = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        for end in (self.server, self.client):
            self.addCleanup(end.close)
            end.bind(("127.0.0.1", 0))
            end.settimeout(5)

    def tap(self, **impairments):
        impairments = Impairments(**impairments)
        return Tap(self.server.getsockname(), impairments=impairments, keep=True)

    def through(self, tap, datagrams):
        """What of these arrives; a last one, which is never hit, tells the end."""
        arrived = []
        for datagram in datagrams:
            self.client.sendto(datagram, tap.address)
        self.client.sendto(b"", tap.address)
        self.server.settimeout(0.5)
        try:
            while True:
                arrived.append(self.server.recvfrom(2000)[0])
        except TimeoutError:
            return arrived

    def test_drop_list(self):
        with self.tap(drop_to_server=frozenset({2, 3})) as tap:
            arrived = self.through(tap, [b"@1", b"@2", b"@3", b"@4"])
        self.assertEqual(arrived, [b"@1", b"@4", b""])
        self.assertEqual(len(tap.capture), 5)

    def test_loss_is_bounded(self):
        with self.tap(loss=1.0, burst=3) as tap:
            arrived = self.through(tap, [bytes([64, number]) for number in range(8)])
        self.assertEqual(arrived, [b"@\x03", b"@\x07"])

    def test_corruption(self):
        sent = b"@" + bytes(99)
        with self.tap(corruption=1.0, burst=1) as tap:
            first, second = self.through(tap, [sent, sent])[:2]
        self.assertEqual(sum(a != b for a, b in zip(first, sent, strict=True)), 1)
        self.assertEqual(second, sent)

    def test_blackhole(self):
        with self.tap(blackhole=(0, 3600)) as tap:
            self.assertEqual(self.through(tap, [b"@"]), [])

    def test_new_address(self):
        with self.tap(rebind=(0, 3600), rebind_address=True) as tap:
            self.client.sendto(b"@", tap.address)
            _, (host, _) = self.server.recvfrom(10)
        self.assertNotEqual(host, "127.0.0.1")
        self.assertEqual(tap.rebindings, 1)

    def test_cut(self):
        with self.tap(cut=(0, 2)) as tap:
            self.assertEqual(self.through(tap, [b"@1", b"@2", b"@3"]), [b"@1", b"@2"])
        with self.tap(cut=(1, 0)) as tap:
            self.assertEqual(self.through(tap, [b"@1"]), [b"@1", b""])

    def test_move(self):
        with self.tap(move=(0, 1)) as tap:
            self.through(tap, [b"@1", b"@2", b"@3"])
        paths = [it.path for it in tap.capture]
        self.assertEqual(len(set(paths)), 2)
        self.assertEqual(paths[1:], paths[1:2] * 3)

    def test_hold(self):
        second = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.addCleanup(second.close)
        with self.tap(hold=0.05) as tap:
            for datagram in (b"@1", b"@2"):
                self.client.sendto(datagram, tap.address)
            with self.assertRaises(TimeoutError):
                self.server.settimeout(0.2)
                self.server.recv(10)
            second.sendto(b"@3", tap.address)
            self.server.settimeout(5)
            self.assertEqual([self.server.recv(10) for _ in range(3)], [b"@3", b"@1", b"@2"])
        self.assertEqual([it.held for it in tap.capture], [True, True, False])
        self.assertEqual(tap.overtaken, 1)

    def test_ecn_passes(self):
        self.client.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, ECT_0)
        self.server.setsockopt(socket.IPPROTO_IP, socket.IP_RECVTOS, 1)
        with self.tap() as tap:
            self.client.sendto(b"@", tap.address)
            _, ancillary, _, _ = self.server.recvmsg(10, socket.CMSG_SPACE(4))
        self.assertEqual(ancillary[0][2][0], ECT_0)
        self.assertEqual(tap.capture[0].ecn, ECT_0)

    def test_servers_by_client(self):
        other = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.addCleanup(other.close)
        other.bind(("127.0.0.1", 0))
        other.settimeout(5)
        second = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.addCleanup(second.close)
        with Tap(other.getsockname(), self.server.getsockname(), keep=True) as tap:
            self.client.sendto(b"@first", tap.address)
            self.assertEqual(other.recv(10), b"@first")
            second.sendto(b"@second", tap.address)
            self.assertEqual(self.server.recv(10), b"@second")
        self.assertEqual([it.data for it in tap.capture], [b"@second"])


def told(results, repeat=1):
    return {
        "date": "2026-01-02",
        "commit": "abc",
        "repeat": repeat,
        "peers": {"a": "1.0", "b": "2.0"},
        "results": results,
    }


def row(server, client, verdict, note="", case="handshake"):
    return {"server": server, "client": client, "case": case, "verdict": verdict, "note": note}


class Page(unittest.TestCase):
    def test_paths(self):
        cases = [CASE, SimpleNamespace(name="paths_open", matrix=True, http=False, paths=True)]
        results = [
            row("swiftwater", "a", "pass"),
            row("swiftwater", "b", "pass", case="paths_open"),
            row("b", "swiftwater", "skip", "b can't", case="paths_open"),
            row("swiftwater", "swiftwater", "fail", "slow", case="paths_open"),
        ]
        page = render(told(results), cases)
        self.assertIn("| | b server | b client | itself |\n|---|---|---|---|\n", page)
        self.assertIn("| paths_open | – [1](#reasons) | ✓ | ✗ [2](#reasons) |", page)
        # The tables of the other cases have no column for who takes no part in them.
        self.assertIn("| | a |\n", page)

    def test_page(self):
        cases = [CASE, SimpleNamespace(name="x", matrix=False, http=False, paths=False)]
        results = [
            row("swiftwater", "a", "pass"),
            row("swiftwater", "b", "skip", "b has none"),
            row("a", "swiftwater", "pass"),
            row("a", "swiftwater", "fail", "https://127.0.0.1:7/f8-0001: broken | badly"),
            row("b", "swiftwater", "skip", "b has none"),
        ]
        page = render(told(results, 2), cases)
        self.assertIn("a 1.0, b 2.0", page)
        self.assertIn("on 2026-01-02, with the program of commit `abc`, each case", page)
        self.assertIn("| handshake | ✓ | – [2](#reasons) |", page)
        self.assertIn("| handshake | ✗ (1/2) [1](#reasons) | – [2](#reasons) |", page)
        self.assertIn("1. …: broken \\| badly\n2. b has none\n", page)
        self.assertNotIn("| x |", page)

    def test_again(self):
        cases = [CASE]
        before = told([row("swiftwater", "a", "fail", "slow"), row("a", "swiftwater", "pass")])
        self.assertEqual(failures(before), {("swiftwater", "a", "handshake")})
        after = amended(before, [row("swiftwater", "a", "pass")])
        self.assertEqual(failures(after), set())
        self.assertEqual(len(after["results"]), 2)
        page = render(after, cases)
        self.assertIn("| handshake | ✓ ↻ |", page)
        self.assertIn("Cells marked ↻", page)
        self.assertNotIn("↻", render(before, cases))

    def test_known_fault(self):
        cases = [SimpleNamespace(name="rebind-port", matrix=True, http=False, paths=False)]
        passed = row("quiche", "swiftwater", "pass", case="rebind-port")
        failed = row("quiche", "swiftwater", "fail", "lost", case="rebind-port")
        quiche = {"peers": {"quiche": "1"}}
        self.assertIn("| rebind-port | ✓ [1](#reasons) |", render(told([passed]) | quiche, cases))
        page = render(told([failed]) | quiche, cases)
        self.assertIn("| rebind-port | ✗ [1](#reasons) |", page)
        self.assertIn(" (lost)\n", page)
