"""Several paths in a connection (RFC 10069): each case transfers a file, which is compared, and inspects the packets of
both ends that passed the tap. A path is recognised by the connection IDs of its packets."""

import contextlib
from dataclasses import dataclass

from .programs import Client, Failure, Unsupported, text
from .scene import check_tap, scene
from .several_paths import FIRST, SECOND, THIRD, Paths
from .site import MB
from .tap import Impairments
from .trace import CLIENT, SERVER, SIDES, transport_parameter

# Slow enough for what happens in the middle, and for both paths to be needed.
LINK = ["--rate", "20mbit", "--delay", "10ms", "--buffer", "60p"]
# The same with a queue that drops next to nothing: for what a peer sends once only.
DEEP_LINK = ["--rate", "20mbit", "--delay", "10ms", "--buffer", "1000p"]
SIZE = 5 * MB
# Seconds that a transfer may take; alone it takes 2.2.
TIME = 30
# Bytes after which something is done to a path, and undone.
EARLY, LATE = 1 * MB, 3 * MB
# Datagrams of a path after which the network does something to it.
DATAGRAMS = 400
# The same for datagrams of the client: one that only acknowledges may send few on one of the paths.
OWN_DATAGRAMS = 3
# What was sent before the other end had the news arrives within this time, seconds: more than a round trip with a full
# queue.
ON_THE_WAY = 0.25
# The least share of the data on each path, where both are to carry some.
SHARE = 0.1
# Bytes in a row on the other path while one is a backup.
QUIET = 200_000
# By version of the extension.
INITIAL_MAX_PATH_ID = {None: 0x3E, "draft10": 0x0F739BBC1B666D09}
APPLICATION_ABANDON_PATH = 0x3E


@dataclass
class Transfer:
    """What passed in a case."""

    scene: object
    connection: object
    # The side that does what the case is about, and the other.
    acting: str
    other: str

    def packets(self, side, path, after=0.0, before=float("inf")):
        return [
            it for it in self.connection.sent(side, "1-RTT")
            if it.path_id == path and after <= it.time < before and it.frames is not None
        ]

    def data(self, path, after=0.0, before=float("inf"), side=SERVER):
        """Bytes in STREAM frames on a path."""
        return sum(
            frame.size
            for packet in self.packets(side, path, after, before)
            for frame in packet.frames
            if frame.kind == "stream"
        )

    def first(self, side, kind, **fields):
        """When a side has first sent a frame with these values."""
        for packet in self.connection.sent(side, "1-RTT"):
            for frame in packet.frames or ():
                if frame.kind == kind and all(frame.fields.get(name) == it for name, it in fields.items()):
                    return packet.time
        values = " ".join(f"{name} {value}" for name, value in fields.items())
        raise Failure(f"the {side} has sent no {kind} {values}".strip())

    def end(self):
        return max(packet.time for packet in self.connection.packets)

    def need(self, condition, text):
        if not condition:
            raise Failure(text)


def version(setting):
    """The version of the extension that both stacks speak; `None` for that of RFC 10069."""
    return next((it.multipath_version for it in (setting.client, setting.server) if it.multipath_version), None)


def roles(setting, by_peer):
    """The acting side: Swiftwater, or its peer. Between two of Swiftwater it is the client, or the server."""
    ours = CLIENT if setting.client is setting.swiftwater else SERVER
    acting = {CLIENT: SERVER, SERVER: CLIENT}[ours] if by_peer else ours
    return acting, {CLIENT: SERVER, SERVER: CLIENT}[acting]


@contextlib.contextmanager
def transferred(
    setting, acts=None, by_peer=False, client=None, server=None, addresses=(FIRST, SECOND), link=LINK,
    impairments=None, size=SIZE, seconds=TIME, update=False,
):
    """A file has been transferred, by default over two paths. `acts` is what the acting side does to them, `update`
    that it updates its keys."""
    acting, other = roles(setting, by_peer)
    acts = acts or {}
    tasks = {CLIENT: dict(client or {}), SERVER: dict(server or {})}
    tasks[CLIENT].setdefault("addresses", addresses)
    tasks[acting] |= acts
    paths = {side: Paths(**tasks[side], version=version(setting)) for side in SIDES}
    options = {side: {} for side in SIDES}
    if update:
        peer = setting.client if acting == CLIENT else setting.server
        options[acting] = {"key_update_every": 100} if peer is setting.swiftwater else {"key_update": True}
    names = setting.site.files(1, size)
    with scene(setting, link, impairments, paths=paths[SERVER], **options[SERVER]) as it:
        # A client sends no server name for an address.
        place = f"localhost:{it.near[1]}" if setting.server.wants_name else text(it.near)
        urls = [f"https://{place}/{name}" for name in names]
        received = setting.bench.folder / "received"
        task = Client(urls, received, it.identity.ca, paths=paths[CLIENT], **options[CLIENT])
        running = setting.bench.run_client(setting.client, task, seconds)
        if running.process.returncode != 0:
            check_known_fault(setting, it)
            raise Failure(f"client exit {running.process.returncode}: {running.last_words()}")
        wrong = setting.site.differences(names, received)
        if wrong:
            # picoquicdemo's exit code is 0 in any case.
            check_known_fault(setting, it)
            raise Failure("; ".join(wrong))
        connection = it.trace().handshakes()[0]
        check_tap(it.tap)
        made = Transfer(it, connection, acting, other)
        # Without those to an unknown connection ID: stateless resets.
        unopened = [it for it in connection.packets if it.frames is None and it.kind == "1-RTT" and it.dcid]
        made.need(not unopened, f"{len(unopened)} 1-RTT packets don't open")
        yield made


# The reason with which picoquic closes a connection.
RETIRED = "Cannot delete path through which packet arrives"


def check_known_fault(setting, made):
    """picoquic's client takes the ID of a path's packet for the one before if the packet retires that: its source has a
    remark about it (paths.c, "we will stumble on a bug"). No reason to fail if no packet retires its own ID."""
    if setting.client.name != "picoquic" or RETIRED not in made.server.everything():
        return
    connection = made.trace().handshakes()[0]
    for packet in connection.sent(SERVER, "1-RTT"):
        own = connection.path_ids.get(packet.dcid, 0), connection.sequences.get(packet.dcid, 0)
        for frame in packet.frames or ():
            if frame.kind.endswith("retire_connection_id") and (frame.fields.get("path", 0), frame.sequence) == own:
                raise Failure("a packet retires its own connection ID (RFC 9000, section 19.16)")
    raise Unsupported("picoquic's client mistakes the ID of a packet that retires the one before (paths.c)")


def check_open(transfer, path=1):
    """Both ends have validated a path: challenges, answers on the same path, and acknowledgements of its packets."""
    for side, peer in (SIDES, SIDES[::-1]):
        sent = [frame for packet in transfer.packets(side, path) for frame in packet.frames]
        challenges = {frame.data for frame in sent if frame.kind == "path_challenge"}
        transfer.need(challenges, f"the {side} has sent no PATH_CHALLENGE on path {path}")
        answers = {
            frame.data
            for packet in transfer.packets(peer, path)
            for frame in packet.frames
            if frame.kind == "path_response"
        }
        transfer.need(challenges & answers, f"no challenge of the {side} was answered on path {path}")
        transfer.first(peer, "path_ack", path=path)
    return f"path {path}"


def shares(transfer, paths=(0, 1), **when):
    """Bytes of the file on each path."""
    found = [transfer.data(path, **when) for path in paths]
    return found, [amount / max(sum(found), 1) for amount in found]


def percent(parts):
    return "/".join(f"{100 * part:.0f}" for part in parts) + " %"


def paths_open(setting):
    """A second path is opened, from another address, and validated by both ends."""
    with transferred(setting, size=1 * MB) as it:
        check_open(it)
        used = {path: {packet.path for packet in it.packets(CLIENT, path)} for path in (0, 1)}
        it.need(not used[0] & used[1], "both paths have the same address")
        nearest = it.first(SERVER, "path_ack", path=1) - it.connection.packets[0].time
    return f"acknowledged after {nearest * 1e3:.0f} ms"


def paths_data(setting):
    """Both paths carry a tenth of the data at least."""
    with transferred(setting) as it:
        check_open(it)
        _, parts = shares(it)
        it.need(min(parts) >= SHARE, f"shares of the data: {percent(parts)}")
    return percent(parts)


def check_rotation(transfer, side, path):
    """The IDs that a side used on a path: several, none of them on another path, those left retired. (A side that only
    acknowledges may have sent nothing there afterwards.)"""
    used = {packet.dcid for packet in transfer.packets(side, path)}
    other = SERVER if side == CLIENT else CLIENT
    asked = min(
        (
            packet.time
            for packet in transfer.connection.sent(other, "1-RTT")
            for frame in packet.frames or ()
            if frame.kind in ("new_connection_id", "path_new_connection_id")
            and frame.retire_prior_to and frame.fields.get("path", 0) == path
        ),
        default=None,
    )
    transfer.need(asked, f"the {other} has not asked for other connection IDs on path {path}")
    if transfer.packets(side, path, asked + ON_THE_WAY):
        transfer.need(len(used) > 1, f"the {side} has used one connection ID on path {path}")
    wrong = [cid for cid in used if transfer.connection.path_ids.get(cid, 0) != path]
    transfer.need(not wrong, f"the {side} used an ID of another path on path {path}")
    retired = {frame.path for frame in transfer.connection.frames(side, "path_retire_connection_id")}
    if transfer.connection.frames(side, "retire_connection_id"):
        retired.add(0)
    transfer.need(path in retired, f"the {side} retired no ID of path {path}")
    return len(used)


def rotation(setting, by_peer):
    acting, _ = roles(setting, by_peer)
    other = setting.server if acting == CLIENT else setting.client
    if other.needs_spare_cid and not by_peer:
        raise Unsupported(f"{other.name} closes when all IDs that it has are retired, though the frame has a new one")
    with transferred(setting, {"rotate_after": (EARLY, 2 * EARLY)}, by_peer) as it:
        # Whoever replaces the IDs that it has issued changes what the other end uses.
        counts = [check_rotation(it, it.other, path) for path in (0, 1)]
        _, parts = shares(it)
        it.need(min(parts) >= SHARE, f"shares of the data: {percent(parts)}")
    return f"{counts[0]} and {counts[1]} IDs"


def paths_rotation(setting):
    """Swiftwater replaces its connection IDs on both paths during a transfer, and the peer goes over to them."""
    return rotation(setting, False)


def paths_rotation_peer(setting):
    """The same, by the peer."""
    return rotation(setting, True)


def abandon(setting, path, by_peer):
    stays = 1 - path
    with transferred(setting, {"operations": ((EARLY, "abandon", path),)}, by_peer) as it:
        check_open(it)
        asked = it.first(it.acting, "path_abandon", path=path)
        answered = it.first(it.other, "path_abandon", path=path)
        it.need(asked < answered, "the other end abandoned the path first")
        for side, since in ((it.acting, asked), (it.other, answered)):
            late = it.packets(side, path, since + ON_THE_WAY)
            it.need(not late, f"the {side} has sent {len(late)} packets on the abandoned path")
        rest = it.data(stays, answered)
        it.need(rest > MB, f"{rest} bytes after that on path {stays}")
        error = next(f.error for f in it.connection.frames(it.acting, "path_abandon") if f.path == path)
        known = error in (0, APPLICATION_ABANDON_PATH)
        it.need(known, f"abandoned with error {error:#x}")
    return f"answered after {(answered - asked) * 1e3:.0f} ms"


def paths_abandon_0(setting):
    """Swiftwater abandons path 0 during a transfer; the peer answers with PATH_ABANDON, nothing more is sent there, and the
    rest comes on path 1."""
    return abandon(setting, 0, False)


def paths_abandon_1(setting):
    """The same for path 1."""
    return abandon(setting, 1, False)


def paths_abandon_0_peer(setting):
    """The peer abandons path 0."""
    return abandon(setting, 0, True)


def paths_abandon_1_peer(setting):
    """The peer abandons path 1."""
    return abandon(setting, 1, True)


def status(setting, by_peer):
    acts = {"operations": ((EARLY, "backup", 1), (LATE, "available", 1))}
    with transferred(setting, acts, by_peer) as it:
        check_open(it)
        backup = it.first(it.acting, "path_status_backup", path=1)
        again = it.first(it.acting, "path_status_available", path=1)
        it.need(backup < again, "the status frames came in the wrong order")
        # A sender may probe a backup path, and use it while the other one has timeouts, as picoquic does.
        used = [packet.time for packet in it.packets(SERVER, 1, backup, again) if packet.has("stream")]
        quiet = max(it.data(0, begin, end) for begin, end in zip([backup, *used], [*used, again]))
        it.need(quiet > QUIET, f"{quiet} bytes on path 0 at most without any on path 1 while that was a backup")
        before, after = it.data(1, 0.0, backup), it.data(1, again)
        it.need(before > 10_000, f"{before} bytes on path 1 before")
        it.need(after > 10_000, f"{after} bytes on path 1 after it was available again")
    return f"path 1: {before // 1000} kB, none while {quiet // 1000} kB came on path 0, {after // 1000} kB"


def paths_status(setting):
    """Swiftwater makes path 1 a backup, and later available again: the server sends no data there meanwhile."""
    return status(setting, False)


def paths_status_peer(setting):
    """The same, by the peer."""
    return status(setting, True)


def paths_growth(setting):
    """Two paths may be open; Swiftwater abandons the second. Both ends raise MAX_PATH_ID, and path 2 is opened and carries
    data."""
    if setting.client.fixed_paths:
        raise Unsupported(f"{setting.client.name}'s client tries once to open its paths, and not again after MAX_PATH_ID")
    # A peer's program may permit more in any case; Swiftwater's limit then decides.
    limits = {side: {"maximum": 2} for side in SIDES}
    for side, peer in ((CLIENT, setting.client), (SERVER, setting.server)):
        if peer.fixed_paths:
            limits[side] = {}
    addresses = (FIRST, SECOND, THIRD) if setting.client is not setting.swiftwater else (FIRST, SECOND)
    acts = {"operations": ((EARLY, "abandon", 1),)}
    with transferred(setting, acts, size=2 * SIZE, addresses=addresses, **limits) as it:
        check_open(it)
        grown = it.first(it.acting, "max_path_id", max=2)
        check_open(it, 2)
        opened = min(packet.time for packet in it.packets(CLIENT, 2))
        amount = it.data(2)
        it.need(amount > 10_000, f"{amount} bytes on path 2")
        raised = [frame.max for frame in it.connection.frames(it.other, "max_path_id")]
    note = f"MAX_PATH_ID of the peer: {raised}" if raised else "the peer's limit was high enough"
    return f"path 2 opened {(opened - grown) * 1e3:.0f} ms later; {note}"


def paths_blocked(setting):
    """The client wants more paths than both ends permit: the peer is told with PATHS_BLOCKED, and the transfer goes on."""
    if version(setting):
        raise Unsupported("draft 10 has no PATHS_BLOCKED")
    if setting.client.fixed_paths:
        raise Unsupported(f"{setting.client.name} sends no PATHS_BLOCKED: what would queue it is never called")
    limit = {"server": {"maximum": 2}} if not setting.server.fixed_paths else {}
    count = 2 if limit else setting.server.fixed_paths
    addresses = tuple(f"127.0.0.{number}" for number in range(1, count + 3))
    with transferred(setting, addresses=addresses, **limit) as it:
        check_open(it)
        blocked = it.connection.frames(CLIENT, "paths_blocked")
        it.need(blocked, "the client has sent no PATHS_BLOCKED")
        limits = {frame.max for frame in blocked}
        it.need(limits == {count - 1}, f"PATHS_BLOCKED with {limits}, the limit is {count - 1}")
        used = {packet.path_id for packet in it.connection.sent(CLIENT, "1-RTT")}
        it.need(max(used) == count - 1, f"paths used: {sorted(used)}")
    return f"at {count - 1}"


def paths_rebind(setting):
    """The client's address on path 1 changes: the server validates the new one, with connection IDs of path 1 only, and goes
    on there."""
    impairments = Impairments(move=(1, OWN_DATAGRAMS), seed=setting.seed)
    # A change is noticed when the client sends something there, which one that only acknowledges may not. noq sends a
    # single challenge to the new address, and abandons the path if the queue drops that.
    with transferred(setting, link=DEEP_LINK, impairments=impairments, client={"probes": True}) as it:
        check_open(it)
        it.need(it.scene.tap.rebindings == 1, "the address has not changed")
        used = list(dict.fromkeys(packet.path for packet in it.packets(CLIENT, 1)))
        it.need(len(used) == 2, f"path 1 came from {len(used)} addresses")
        on_new = [packet for packet in it.packets(SERVER, 1) if packet.path == used[1]]
        challenges = {f.data for packet in on_new for f in packet.frames if f.kind == "path_challenge"}
        it.need(challenges, "the server has sent no PATH_CHALLENGE to the new address")
        answers = {
            f.data for packet in it.packets(CLIENT, 1) for f in packet.frames if f.kind == "path_response"
        }
        it.need(challenges & answers, "no challenge to the new address was answered")
        amount = sum(f.size for packet in on_new for f in packet.frames if f.kind == "stream")
        it.need(amount > 50_000, f"{amount} bytes on path 1 to the new address")
        others = {packet.path for packet in it.packets(SERVER, 0)}
        it.need(used[1] not in others, "path 0 went to the new address of path 1, too")
        it.need(not it.connection.frames(SERVER, "path_abandon"), "the server abandoned a path")
    return f"{amount // 1000} kB to the new address"


def key_update(setting, by_peer):
    with transferred(setting, by_peer=by_peer, update=True) as it:
        check_open(it)
        for path in (0, 1):
            generations = {packet.generation for packet in it.packets(SERVER, path)}
            it.need(max(generations, default=0) > 0, f"no packet of the server on path {path} with updated keys")
        # A client that only acknowledges may do that on one path.
        last = max(packet.generation for packet in it.connection.sent(CLIENT, "1-RTT"))
        it.need(last > 0, "no packet of the client with updated keys")
        it.need(shares(it)[1][1] >= SHARE, "path 1 carried hardly any data")
    return f"{last} updates"


def paths_keyupdate(setting):
    """Swiftwater updates its keys again and again while two paths carry data; all packets of both follow."""
    return key_update(setting, False)


def paths_keyupdate_peer(setting):
    """The same, by the peer."""
    return key_update(setting, True)


def zero(setting, by_peer):
    with transferred(setting, {"maximum": 1}, by_peer, addresses=(FIRST, SECOND), size=1 * MB) as it:
        handshake = it.connection.handshake
        parameters = {CLIENT: handshake.client_parameters, SERVER: handshake.server_parameters}
        value = transport_parameter(parameters[it.acting], INITIAL_MAX_PATH_ID[version(setting)])
        it.need(value == 0, f"initial_max_path_id of the {it.acting}: {value}")
        used = {packet.path_id for packet in it.connection.packets}
        it.need(used == {0}, f"paths used: {sorted(used)}")
        acks = [side for side in SIDES if it.connection.frames(side, "path_ack")]
    return f"PATH_ACK by {' and '.join(acks) or 'nobody'}"


def paths_zero(setting):
    """Swiftwater supports the extension with initial_max_path_id 0: one path, on which all works."""
    return zero(setting, False)


def paths_zero_peer(setting):
    """The same for the peer, though the client wants a second path."""
    return zero(setting, True)


def paths_late_cid(setting):
    """The client's PATH_NEW_CONNECTION_ID arrives after the first packets of the path for which the server needs it: the path
    is opened all the same."""
    if setting.server.name == "picoquic":
        raise Unsupported("picoquic's server crashes in picoquic_create_packet_header: it answers without a connection ID")
    if setting.server.needs_spare_cid:
        raise Unsupported(f"{setting.server.name} closes when a path is opened whose connection ID has not come yet")
    impairments = Impairments(hold=0.06, seed=setting.seed)
    with transferred(setting, impairments=impairments) as it:
        held = [packet for packet in it.connection.sent(CLIENT, "1-RTT") if packet.held]
        issued = {
            frame.path for packet in held for frame in packet.frames or () if frame.kind == "path_new_connection_id"
        }
        it.need(1 in issued, "no PATH_NEW_CONNECTION_ID of path 1 was held back")
        it.need(it.scene.tap.overtaken > 0, "no packet of path 1 overtook it")
        early = [
            frame
            for packet in it.connection.sent(CLIENT, "1-RTT") if not packet.held
            for frame in packet.frames or ()
            if frame.kind == "path_new_connection_id" and frame.path == 1 and packet.time < held[-1].time
        ]
        it.need(not early, "a copy of PATH_NEW_CONNECTION_ID was not held back")
        check_open(it)
        amount = it.data(1)
        it.need(amount > 10_000, f"{amount} bytes on path 1")
    return f"{it.scene.tap.overtaken} packets overtook it; {amount // 1000} kB on path 1"


def cut(setting, path):
    stays = 1 - path
    impairments = Impairments(cut=(path, DATAGRAMS), seed=setting.seed)
    with transferred(setting, impairments=impairments, seconds=45) as it:
        check_open(it)
        # The path's datagrams of both directions up to the cut.
        passed = sorted(packet.time for side in SIDES for packet in it.packets(side, path))
        it.need(len(passed) > DATAGRAMS, "the path was not cut")
        since = passed[DATAGRAMS]
        rest = it.data(stays, since)
        it.need(rest > MB, f"{rest} bytes on path {stays} after the cut")
        times = [packet.time for packet in it.packets(SERVER, stays, since) if packet.has("stream")]
        gap = max((b - a for a, b in zip([since, *times], times)), default=0.0)
        whole = it.end() - since
    return f"longest gap on the other path {gap * 1e3:.0f} ms, done {whole:.1f} s after the cut"


def paths_cut_0(setting):
    """Nothing passes any more on path 0 in the middle of a transfer, which ends on path 1."""
    return cut(setting, 0)


def paths_cut_1(setting):
    """The same for path 1."""
    return cut(setting, 1)


# Those that CI runs, too.
QUICK = (paths_open, paths_data, paths_abandon_0, paths_status, paths_rebind, paths_keyupdate, paths_cut_0)
CASES = (
    paths_open, paths_data, paths_rotation, paths_rotation_peer, paths_abandon_0, paths_abandon_1,
    paths_abandon_0_peer, paths_abandon_1_peer, paths_status, paths_status_peer, paths_growth, paths_blocked,
    paths_rebind, paths_keyupdate, paths_keyupdate_peer, paths_zero, paths_zero_peer, paths_late_cid, paths_cut_0,
    paths_cut_1,
)
