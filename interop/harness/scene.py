"""What the runner's cases have in common: a server, a tap before it, a relay before that, a client, and the
trace of what passed."""

import contextlib
import json
from collections import Counter
from dataclasses import dataclass

from .keys import CHACHA20, KeyLog
from .packets import VERSION_1
from .programs import Client, Failure, Server, text
from .tap import Impairments, Tap
from .trace import CLIENT, SERVER, Trace

# The runner's usual network, "simple-p2p": both ways 15 ms, 10 Mbit/s, a queue of 25 packets.
P2P = ["--delay", "15ms", "--rate", "10mbit", "--buffer", "25p"]
# Frames of probing packets (RFC 9000, section 9.1); PADDING is left out of what we see.
PROBING = {"path_challenge", "path_response", "new_connection_id"}
# An address that appears so shortly before the end, seconds, may go without an answer.
LAST_MOMENT = 0.5
# More datagrams than this are not written down for people.
READABLE = 30_000
# Seconds that a client may take unless a case says otherwise, as in the runner.
TIME = 60


@dataclass
class Scene:
    """The programs of a case, and the addresses that lead to its server."""

    setting: object
    identity: object
    server: object
    tap: Tap
    relay: object
    # Where the client is to send to.
    near: tuple

    def fetch(self, names, seconds=TIME, **options):
        """Lets the client get files, compares them, and returns its report."""
        running = self.attempt(names, seconds, **options)
        if running.process.returncode != 0:
            raise Failure(f"client exit {running.process.returncode}: {running.last_words()}")
        wrong = self.setting.site.differences(names, self.setting.bench.folder / "received")
        if wrong:
            raise Failure("; ".join(wrong[:3]))
        lines = [line for line in running.output().splitlines() if line.startswith("{")]
        return json.loads(lines[-1])

    def attempt(self, names, seconds=TIME, **options):
        urls = [f"https://{text(self.near)}/{name}" for name in names]
        task = Client(urls, self.setting.bench.folder / "received", self.identity.ca, **options)
        return self.setting.bench.run_client(self.setting.client, task, seconds)

    def trace(self, handshakes=1, version=VERSION_1, closely=True):
        """What passed; fails unless there were so many handshakes, all of the version."""
        check_alive(self.server)
        check_alive(self.relay)
        trace = Trace(self.tap.capture, KeyLog(self.setting.bench.keylog), closely)
        if len(trace.handshakes()) != handshakes:
            raise Failure(f"{len(trace.handshakes())} handshakes instead of {handshakes}")
        if version:
            others = {it.version for it in trace.packets if it.kind in ("Initial", "Handshake")}
            if others != {version}:
                raise Failure(f"versions {sorted(map(hex, others))} were spoken")
        return trace

    def write_down(self):
        """Leaves the packets in the folder of the case, unless they are too many to read."""
        if len(self.tap.capture) > READABLE:
            return
        trace = Trace(list(self.tap.capture), KeyLog(self.setting.bench.keylog))
        lines = [describe(packet, trace.packets[0].time) for packet in trace.packets]
        (self.setting.bench.folder / "packets.txt").write_text("\n".join(lines) + "\n")

    def is_ours(self, side):
        """Whether a side is Swiftwater."""
        peer = self.setting.client if side == CLIENT else self.setting.server
        return peer is self.setting.swiftwater

    def name(self, side):
        return (self.setting.client if side == CLIENT else self.setting.server).name


@contextlib.contextmanager
def scene(setting, link=P2P, impairments=None, host="127.0.0.1", before=(), identity=None, **options):
    """Starts everything but the client. The tap gives the first clients to the servers `before`."""
    if setting.relay is None:
        raise Failure("no relay")
    identity = identity or setting.identity
    task = Server(setting.site.root, identity, **options)
    server, address = setting.bench.start_server(setting.server, task, host)
    impairments = impairments or Impairments()
    with Tap(*before, address, impairments=impairments, keep=True) as tap:
        seed = ["--seed", str(setting.seed)]
        relay, near = setting.bench.start_relay(setting.relay, tap.address, [*link, *seed])
        made = Scene(setting, identity, server, tap, relay, near)
        setting.bench.on_failure(made.write_down)
        yield made


def describe(packet, start):
    """A packet in a line."""
    frames = "doesn't open" if packet.frames is None else " ".join(map(str, packet.frames))
    number = "?" if packet.number is None else packet.number
    return (
        f"{packet.time - start:9.4f} {packet.side} {packet.path[0]}:{packet.path[1]} {packet.kind} "
        f"{number} phase {packet.generation} to {packet.dcid.hex()} ecn {packet.ecn} "
        f"{packet.size} bytes: {frames}"
    )


def check_alive(running):
    """A program must outlive its clients and not have panicked."""
    if not running.alive():
        raise Failure(f"{running.name} ended: {running.last_words()}")
    if "panicked at" in running.everything():
        raise Failure(f"{running.name} panicked")


def check_tap(tap):
    """Full-size Initials, and the amplification limit."""
    if tap.faults:
        raise Failure("; ".join(tap.faults[:3]))


def check_chacha20(connection, only):
    """The connection uses ChaCha20; with `only`, nothing else was offered."""
    handshake = connection.handshake
    if handshake.suite != CHACHA20:
        raise Failure(f"cipher suite {handshake.suite or 0:#x}")
    if only and handshake.offered != [CHACHA20]:
        raise Failure(f"offered: {[hex(it) for it in handshake.offered]}")


def check_new_paths(connection, at_once=True):
    """Each address of the client but the first was validated: the server has sent it a PATH_CHALLENGE,
    and the client has answered one. (Not each: some get lost at the bottleneck.) With `at_once`, the
    server's first packet that does more than answer the client's own probing has to have it. Returns the
    addresses."""
    answered = {frame.data for frame in connection.frames(CLIENT, "path_response")}
    challenges = {}
    for packet in connection.sent(SERVER):
        found = {frame.data for frame in packet.frames or () if frame.kind == "path_challenge"}
        kinds = [frame.kind for frame in packet.frames or ()]
        if packet.path not in challenges and kinds and PROBING.issuperset(kinds) and not found:
            continue
        if at_once and packet.path not in challenges and challenges and not found:
            raise Failure(f"the server's first packet to a new address has no PATH_CHALLENGE: {kinds}")
        challenges.setdefault(packet.path, set()).update(found)
    paths = list(challenges)
    if len(paths) < 2:
        raise Failure("the server has sent to one address of the client only")
    lone = lone_paths(connection)
    times = {packet.path: packet.time for packet in reversed(connection.sent(SERVER))}
    end = max(packet.time for packet in connection.packets)
    for path in paths[1:]:
        if end - times[path] < LAST_MOMENT:
            continue
        if path not in lone and not challenges[path] & answered:
            raise Failure("a new address was challenged, and there was no answer")
    return paths


def lone_paths(connection):
    """Those on which the client has sent a single packet. noq does when it moves: from the new port, but
    with the old IP address, where it doesn't listen."""
    counts = Counter(packet.path for packet in connection.sent(CLIENT))
    return {path for path, count in counts.items() if count == 1}


def check_new_cids(connection, side=CLIENT):
    """On each new path a side uses a connection ID that it hasn't used before (RFC 9000, 9.5)."""
    used = {}
    lone = lone_paths(connection)
    for packet in connection.sent(side, "1-RTT"):
        # Who has none can't change it.
        if packet.path in lone or not packet.dcid:
            continue
        others = set().union(*(cids for path, cids in used.items() if path != packet.path))
        if packet.path not in used and packet.dcid in others:
            raise Failure(f"the {side} used a connection ID on two paths")
        used.setdefault(packet.path, set()).add(packet.dcid)
