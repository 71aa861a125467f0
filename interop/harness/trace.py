"""What a tap has seen, taken apart with the keys from a key log: which packets with which frames each
side has sent on which path."""

from collections import Counter
from dataclasses import dataclass, field

from .frames import frames
from .keys import AES_128, SUITES, Opener, initial_secrets
from .packets import Reader, packets
from .tls import Handshake

CLIENT, SERVER = "client", "server"
SIDES = (CLIENT, SERVER)
SECRETS = {
    "Handshake": ("CLIENT_HANDSHAKE_TRAFFIC_SECRET", "SERVER_HANDSHAKE_TRAFFIC_SECRET"),
    "1-RTT": ("CLIENT_TRAFFIC_SECRET_0", "SERVER_TRAFFIC_SECRET_0"),
}


@dataclass
class Seen:
    """A packet. `frames` is None if the packet could not be opened."""

    time: float
    side: str
    # The client's address as the server sees it.
    path: tuple
    ecn: int
    kind: str
    version: int
    dcid: bytes
    scid: bytes
    token: bytes
    # Bytes of the packet, and of what is protected in it.
    size: int
    payload_size: int
    # Others have overtaken it at the tap.
    held: bool = False
    number: int | None = None
    # The identifier of the path: that of the connection ID.
    path_id: int = 0
    # How many key updates of the side came before; its parity is the key phase.
    generation: int = 0
    frames: list | None = None

    def has(self, *kinds):
        return any(frame.kind in kinds for frame in self.frames or ())


@dataclass
class Connection:
    """A connection, as the first Initial packet of a client began it."""

    keylog: object
    # The connection ID that the client made up: the keys of the first Initial packets come from it.
    first_dcid: bytes
    # The one that all later Initial packets' keys come from: the same, unless the server sent Retry.
    initial_dcid: bytes
    # That of the last Handshake packet.
    version: int = 0
    packets: list[Seen] = field(default_factory=list)
    handshake: Handshake = field(default_factory=Handshake)
    openers: dict = field(default_factory=dict)
    # Connection IDs by which a side may be addressed.
    cids: dict = field(default_factory=lambda: {side: set() for side in SIDES})
    # The paths of connection IDs that are not of the first path.
    path_ids: dict = field(default_factory=dict)
    # The sequence numbers of connection IDs after the first.
    sequences: dict = field(default_factory=dict)
    # Those that the server's Retry packets offer.
    retries: set = field(default_factory=set)

    def sent(self, side, *kinds):
        """The packets of a side, of some kinds if any are given."""
        return [it for it in self.packets if it.side == side and (not kinds or it.kind in kinds)]

    def frames(self, side, *kinds):
        return [frame for it in self.sent(side) for frame in it.frames or () if frame.kind in kinds]

    def opener(self, seen, version):
        side, kind = seen.side, seen.kind
        index = SIDES.index(side)
        # A second datagram of the first flight can follow the Retry.
        dcid = seen.dcid if seen.dcid == self.first_dcid else self.initial_dcid
        at = (side, kind, version, dcid if kind == "Initial" else None)
        if at not in self.openers:
            if kind == "Initial":
                secret, suite = initial_secrets(dcid, version)[index], AES_128
            else:
                suite = self.handshake.suite
                secret = self.keylog.get(SECRETS[kind][index], self.handshake.client_random)
            if secret is None or suite not in SUITES:
                return None
            self.openers[at] = Opener(secret, suite, version)
        return self.openers[at]

    def open(self, seen, packet, number_at):
        if seen.kind not in ("Initial", *SECRETS):
            return
        # The version of 1-RTT packets is that of the handshake's end.
        version = seen.version or self.version
        opener = self.opener(seen, version)
        if seen.kind == "1-RTT":
            seen.path_id = self.path_ids.get(seen.dcid, 0)
        opened = opener and opener.open(packet, number_at, seen.path_id)
        if not opened:
            return
        seen.number, seen.generation, payload = opened
        seen.payload_size = len(payload)
        seen.frames = frames(payload)
        for frame in seen.frames:
            if frame.kind == "crypto":
                self.handshake.add(seen.side, seen.kind, frame.offset, frame.data)
            elif frame.kind in ("new_connection_id", "path_new_connection_id"):
                self.cids[seen.side].add(frame.cid)
                self.path_ids[frame.cid] = frame.fields.get("path", 0)
                self.sequences[frame.cid] = frame.sequence

    def undecrypted(self):
        return Counter(it.kind for it in self.packets if it.frames is None and it.kind in SECRETS)


class Trace:
    """All connections of a capture, in the order of their beginning. 1-RTT packets, by far the most, are
    opened only for those who look at them `closely`."""

    def __init__(self, capture, keylog, closely=True):
        self.closely = closely
        self.connections = []
        self.keylog = keylog
        # Everything, also what belongs to no connection.
        self.packets = []
        # The last connection of a path, for packets with an empty connection ID.
        self.latest = {}
        for datagram in capture:
            for packet in packets(datagram.data):
                self.take(datagram, packet)

    def take(self, datagram, packet):
        side = CLIENT if datagram.from_client else SERVER
        connection = self.find(side, packet, datagram.path)
        if connection is None:
            return
        kind = "1-RTT" if packet.kind == "short" else packet.kind
        dcid, number_at = packet.dcid, packet.number_at
        if kind == "1-RTT":
            dcid = self.short_dcid(connection, side, packet.data)
            number_at = 1 + len(dcid)
        protected = max(0, len(packet.data) - number_at - 1) if number_at else 0
        seen = Seen(
            datagram.time, side, datagram.path, datagram.ecn, kind, packet.version, dcid,
            packet.scid, packet.token, len(packet.data), protected, datagram.held,
        )
        self.latest[datagram.path] = connection
        if kind == "Retry" and side == SERVER:
            connection.retries.add(packet.scid)
        elif kind == "Initial" and side == CLIENT and dcid in connection.retries:
            # Of several Retry packets the client has taken this one.
            connection.initial_dcid = dcid
        if kind in ("Initial", "Handshake", "Retry"):
            connection.cids[side].add(packet.scid)
        if kind == "Handshake":
            connection.version = packet.version
        connection.packets.append(seen)
        self.packets.append(seen)
        if self.closely or kind != "1-RTT":
            connection.open(seen, packet.data, number_at)

    def find(self, side, packet, path):
        """The connection of a packet, a new one if the packet begins it."""
        other = SERVER if side == CLIENT else CLIENT
        for connection in reversed(self.connections):
            if packet.kind == "short":
                if any(cid and packet.data[1:].startswith(cid) for cid in connection.cids[other]):
                    return connection
            elif packet.dcid in connection.cids[other] and packet.dcid:
                return connection
            elif side == CLIENT and packet.dcid in (connection.first_dcid, connection.initial_dcid):
                return connection
        if side == CLIENT and packet.kind in ("Initial", "0-RTT"):
            made = Connection(self.keylog, packet.dcid, packet.dcid)
            made.cids[CLIENT].add(packet.scid)
            self.connections.append(made)
            return made
        return self.latest.get(path)

    @staticmethod
    def short_dcid(connection, side, data):
        other = SERVER if side == CLIENT else CLIENT
        fitting = [cid for cid in connection.cids[other] if data[1:].startswith(cid)]
        return max(fitting, key=len, default=b"")

    def handshakes(self):
        """Connections whose server has confirmed the handshake, or at least sent 1-RTT packets."""
        return [it for it in self.connections if it.sent(SERVER, "1-RTT")]

    def sent(self, side, *kinds):
        return [it for it in self.packets if it.side == side and (not kinds or it.kind in kinds)]


def transport_parameter(parameters, identifier):
    """An integer among encoded transport parameters (RFC 9000, section 18); None if it isn't there."""
    reader = Reader(parameters)
    while reader.at < len(parameters):
        code = reader.varint()
        value = reader.take(reader.varint())
        if code == identifier:
            return Reader(value).varint()
    return None
