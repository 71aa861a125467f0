"""A relay that checks what can be seen from the outside, keeps what passed for a closer look, and does to
datagrams what the simulator of the QUIC interop runner does: it loses and corrupts them, is dead for a
while, and gives a client new addresses like a forgetful NAT.

Not meant for speed; some thousand datagrams a second are no trouble.
"""

import contextlib
import random
import select
import socket
import struct
import threading
import time
from collections import Counter
from dataclasses import dataclass

from .packets import MIN_INITIAL_DATAGRAM, packets

# A server may send this many times what it received before the address is validated (RFC 9000,
# section 8.1).
AMPLIFICATION = 3
# A connection ID of the server this long, in a client's packet, validates the client's address.
VALIDATING_CID = 8
# Where Linux puts a datagram's ECN codepoint, in both families.
ECN_MASK = 3
# Linux gives the time of arrival with a datagram, seconds and nanoseconds since 1970.
SO_TIMESTAMPNS = 35
TIMESTAMP = struct.Struct("@ll")


@dataclass(frozen=True)
class Impairments:
    """What is done to datagrams, in both directions unless it says otherwise. Times in seconds, from the
    first datagram."""

    # Shares; not more than `burst` datagrams of a direction one after another.
    loss: float = 0.0
    corruption: float = 0.0
    burst: int = 3
    # Nothing passes after `on` seconds for `off` seconds, again and again.
    blackhole: tuple[float, float] | None = None
    # Datagrams towards the server that are lost, counted from 1.
    drop_to_server: frozenset[int] = frozenset()
    # The client's address towards the server changes at the first of these times, and then as often as
    # the second says.
    rebind: tuple[float, float] | None = None
    # Not only the port changes.
    rebind_address: bool = False
    # Also before each of these datagrams from the client, counted from 0.
    rebind_at: frozenset[int] = frozenset()
    # On one of the client's addresses, counted from 0, nothing passes after so many datagrams of both directions.
    cut: tuple[int, int] | None = None
    # One of them becomes another address, once, after so many datagrams from the client.
    move: tuple[int, int] | None = None
    # 1-RTT packets from the client's first address pass only this long after one has come from the second.
    hold: float | None = None
    seed: int = 1


@dataclass
class Datagram:
    """A datagram of one side, as received."""

    time: float
    from_client: bool
    # The client's address as the server sees it.
    path: tuple
    ecn: int
    data: bytes
    # It passed later, after others (`Impairments.hold`).
    held: bool = False


class Flow:
    """A client's address, and the socket that represents it to the server."""

    def __init__(self, client, server):
        self.client = client
        self.server = server
        self.socket = None
        # Datagrams of both directions, and from the client.
        self.count = self.from_client = 0


class Tap:
    """Forwards between the clients of `port` here and a server.

    With several `servers`, the n-th client address is for the n-th of them, and all later ones for the
    last. Only what concerns the last one is watched and kept.
    """

    def __init__(self, *servers, impairments=Impairments(), keep=False):
        self.servers = servers
        self.impairments = impairments
        self.random = random.Random(impairments.seed)
        self.family = socket.AF_INET6 if ":" in servers[0][0] else socket.AF_INET
        self.outer = self.new_socket((servers[0][0], 0))
        self.port = self.outer.getsockname()[1]
        self.address = (servers[0][0], self.port)
        self.flows = {}
        self.arrived = 0.0
        self.capture = [] if keep else None
        self.begun = None
        self.next_rebind = None
        self.rebindings = 0
        self.hosts = 1
        self.moved = False
        # What is held back, until when, and how many datagrams passed from the second address meanwhile.
        self.held = []
        self.release_at = None
        self.overtaken = 0
        self.in_a_row = Counter()
        self.lost = self.corrupted = 0
        self.count = Counter()
        self.since_rebinding = Counter()
        self.sent = {"client": Counter(), "server": Counter()}
        self.versions = []
        self.initial_with_token = False
        self.faults = []
        self.received_bytes = self.sent_bytes = 0
        self.budget_used = 0.0
        self.server_cids = set()
        self.validated = False
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)

    def new_socket(self, local=None):
        made = socket.socket(self.family, socket.SOCK_DGRAM)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
        # When a datagram arrived, not when it was read: on a busy machine the sockets have queues.
        made.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        if self.family == socket.AF_INET6:
            made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_RECVTCLASS, 1)
        else:
            made.setsockopt(socket.IPPROTO_IP, socket.IP_RECVTOS, 1)
        if local:
            made.bind(local)
        return made

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stopping.set()
        self.thread.join()
        for flow in self.flows.values():
            flow.socket.close()
        self.outer.close()

    def run(self):
        while not self.stopping.is_set():
            inner = {flow.socket: flow for flow in self.flows.values()}
            ready, _, _ = select.select([self.outer, *inner], [], [], 0.005 if self.held else 0.1)
            self.release()
            for source in ready:
                # A closed port of either side shows up here; the programs notice themselves.
                with contextlib.suppress(OSError):
                    if source is self.outer:
                        self.to_server()
                    elif inner[source].socket is source:
                        self.to_client(inner[source])

    def receive(self, source):
        """Data, sender, and ECN codepoint. Sets `arrived`."""
        space = socket.CMSG_SPACE(4) + socket.CMSG_SPACE(TIMESTAMP.size)
        data, ancillary, _, sender = source.recvmsg(65536, space)
        self.arrived, ecn = time.monotonic(), 0
        for level, _, value in ancillary:
            if level != socket.SOL_SOCKET:
                ecn = value[0] & ECN_MASK if value else 0
            elif len(value) == TIMESTAMP.size:
                seconds, nanoseconds = TIMESTAMP.unpack(value)
                self.arrived -= max(0.0, time.time() - seconds - nanoseconds / 1e9)
        return data, sender, ecn

    def send(self, via, data, ecn, to):
        if self.family == socket.AF_INET6:
            mark = (socket.IPPROTO_IPV6, socket.IPV6_TCLASS, struct.pack("i", ecn))
        else:
            mark = (socket.IPPROTO_IP, socket.IP_TOS, struct.pack("i", ecn))
        via.sendmsg([data], [mark], 0, to)

    def to_server(self):
        data, sender, ecn = self.receive(self.outer)
        flow = self.flows.get(sender)
        if flow is None:
            flow = Flow(sender, self.servers[min(len(self.flows), len(self.servers) - 1)])
            self.connect(flow)
            self.flows[sender] = flow
        if flow.server is self.servers[-1]:
            if self.time_to_rebind():
                self.rebind(flow)
            self.count["client"] += 1
            self.since_rebinding["client"] += 1
            flow.count += 1
            flow.from_client += 1
            if self.is_due(self.impairments.move, flow, flow.from_client) and not self.moved:
                self.moved = True
                self.rebind(flow)
            for data in self.hold_back(flow, ecn, data):
                self.keep(True, flow, ecn, data)
                arrives = None if self.is_cut(flow) else self.impaired(True, data)
                self.from_client(data, arrives is not None)
                if arrives is not None:
                    self.send(flow.socket, arrives, ecn, flow.server)
            return
        self.send(flow.socket, data, ecn, flow.server)

    def to_client(self, flow):
        data, _, ecn = self.receive(flow.socket)
        if flow.server is self.servers[-1]:
            self.count["server"] += 1
            self.since_rebinding["server"] += 1
            flow.count += 1
            self.from_server(data)
            self.keep(False, flow, ecn, data)
            data = None if self.is_cut(flow) else self.impaired(False, data)
        if data is not None:
            self.send(self.outer, data, ecn, flow.client)

    def keep(self, from_client, flow, ecn, data, held=False):
        if self.capture is not None:
            path = flow.socket.getsockname()
            self.capture.append(Datagram(self.arrived, from_client, path, ecn, data, held))

    def is_due(self, event, flow, count):
        """Whether an event of one of the client's addresses (`Impairments.cut`, `move`) is due on this one."""
        return event is not None and count > event[1] and list(self.flows.values()).index(flow) == event[0]

    def is_cut(self, flow):
        return self.is_due(self.impairments.cut, flow, flow.count)

    def hold_back(self, flow, ecn, data):
        """What of a client's datagram passes now."""
        if self.impairments.hold is None:
            return [data]
        if flow is not next(iter(self.flows.values())):
            if self.release_at is None:
                self.release_at = time.monotonic() + self.impairments.hold
            self.overtaken += bool(self.held)
            return [data]
        if self.release_at is not None and not self.held:
            return [data]
        found = packets(data)
        waiting = b"".join(packet.data for packet in found if packet.kind == "short")
        if not waiting:
            return [data]
        self.held.append((flow, ecn, waiting))
        self.keep(True, flow, ecn, waiting, held=True)
        passing = b"".join(packet.data for packet in found if packet.kind != "short")
        # A datagram with an Initial packet keeps its size: what follows is padding.
        return [passing.ljust(len(data), b"\0")] if passing else []

    def release(self):
        """Lets pass what was held back, once it is time."""
        if self.release_at is None or time.monotonic() < self.release_at:
            return
        for flow, ecn, data in self.held:
            self.from_client(data, True)
            self.send(flow.socket, data, ecn, flow.server)
        self.held = []

    def elapsed(self):
        if self.begun is None:
            self.begun = time.monotonic()
        return time.monotonic() - self.begun

    def impaired(self, to_server, data):
        """The datagram as it arrives; None if it doesn't."""
        wanted = self.impairments
        elapsed = self.elapsed()
        if wanted.blackhole:
            on, off = wanted.blackhole
            if elapsed % (on + off) >= on:
                return None
        if to_server and self.count["client"] in wanted.drop_to_server:
            return None
        if self.strikes("loss", to_server, wanted.loss):
            self.lost += 1
            return None
        if data and self.strikes("corruption", to_server, wanted.corruption):
            self.corrupted += 1
            at = self.random.randrange(len(data))
            other = data[at] ^ self.random.randrange(1, 256)
            return data[:at] + bytes([other]) + data[at + 1 :]
        return data

    def strikes(self, what, to_server, share):
        """Whether a datagram is hit; the count in a row is bounded, as in the runner's simulator."""
        at = (what, to_server)
        hit = self.random.random() < share and self.in_a_row[at] < self.impairments.burst
        self.in_a_row[at] = self.in_a_row[at] + 1 if hit else 0
        return hit

    def connect(self, flow):
        """Gives a flow a new address towards its server."""
        local = None
        if self.impairments.rebind_address and self.family == socket.AF_INET:
            # All of 127.0.0.0/8 is this machine's.
            local = (f"127.0.0.{self.hosts}", 0)
            self.hosts += 1
        if local is None:
            local = ("::1" if self.family == socket.AF_INET6 else "127.0.0.1", 0)
        if flow.socket is not None:
            flow.socket.close()
        flow.socket = self.new_socket(local)

    def time_to_rebind(self):
        if self.count["client"] in self.impairments.rebind_at:
            return True
        if self.impairments.rebind is None:
            return False
        first, every = self.impairments.rebind
        elapsed = self.elapsed()
        if self.next_rebind is None:
            self.next_rebind = first
        if elapsed < self.next_rebind:
            return False
        self.next_rebind += every
        return True

    def rebind(self, flow):
        self.connect(flow)
        self.rebindings += 1
        self.since_rebinding.clear()

    def from_client(self, datagram, arrives):
        found = packets(datagram)
        self.received_bytes += len(datagram) if arrives else 0
        for packet in found:
            self.sent["client"][packet.kind] += 1
            if packet.token:
                self.initial_with_token = True
            known = len(packet.dcid) >= VALIDATING_CID and packet.dcid in self.server_cids
            if arrives and (packet.kind == "Handshake" or known or packet.token):
                self.validated = True
        small = len(datagram) < MIN_INITIAL_DATAGRAM
        if small and any(packet.kind == "Initial" for packet in found):
            self.faults.append(f"client: datagram of {len(datagram)} bytes with an Initial packet")

    def from_server(self, datagram):
        self.sent_bytes += len(datagram)
        for packet in packets(datagram):
            self.sent["server"][packet.kind] += 1
            if packet.kind == "Version Negotiation":
                self.versions = packet.versions
            elif packet.kind in ("Initial", "Handshake"):
                self.server_cids.add(packet.scid)
        if not self.validated:
            if self.received_bytes:
                self.budget_used = max(self.budget_used, self.sent_bytes / self.received_bytes)
            if self.sent_bytes > AMPLIFICATION * self.received_bytes:
                self.faults.append(
                    f"server: {self.sent_bytes} bytes sent for {self.received_bytes} received "
                    "before the address was validated"
                )

    def saw(self, side, kind):
        """How many packets of a kind a side has sent."""
        return self.sent[side][kind]
