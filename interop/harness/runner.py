"""The test cases of the QUIC interop runner (https://github.com/quic-interop/quic-interop-runner), with its
names, networks, file sizes and pass conditions. Where ours differ, the case says so."""

import time

from .keys import CHACHA20
from .packets import VERSION_1, VERSION_2
from .programs import Client, Failure, Server, Unsupported, text
from .scene import (
    P2P,
    check_chacha20,
    check_new_cids,
    check_new_paths,
    check_tap,
    scene,
)
from .site import KB, MB
from .tap import Impairments
from .trace import CLIENT, SERVER, SIDES, transport_parameter

# The most streams that a server may allow at first in `multiplexing`.
STREAMS = 1000
INITIAL_MAX_STREAMS_BIDI = 0x08
# A chain this long exceeds what a server may send before the client's address is validated.
CHAIN = 7500
# A foreign server that has sent less than so many times what came in passes, as in the runner.
TOLERATED = 4
CONNECTIONS = 50
MULTICONNECT_TIME = 300
CROSSTRAFFIC_TIME = 180
# Packets after which swiftwater updates its keys when it is to.
UPDATE_EVERY = 100
# ECN codepoints.
CE = 3
ECT = (1, 2)


def handshake(setting):
    """A connection is made and a file of 1 KB fetched; full-size Initials, the amplification limit, no
    Retry, and the connection ends with code 0."""
    with scene(setting) as it:
        it.fetch(setting.site.files(1, KB))
        if it.is_ours(CLIENT) and not it.is_ours(SERVER):
            # The foreign servers tell how a connection ended.
            it.server.wait_for("connection ended: 0x0", 5)
        trace = it.trace()
    check_tap(it.tap)
    for kind in ("Retry", "Version Negotiation"):
        if it.tap.saw(SERVER, kind):
            raise Failure(f"the server sent {kind} unasked")


def transfer(setting):
    """2, 3 and 5 MB at the same time."""
    site = setting.site
    names = [site.files(1, size * MB)[0] for size in (2, 3, 5)]
    with scene(setting) as it:
        report = it.fetch(names)
        connection = it.trace().handshakes()[0]
    closes = connection.frames(CLIENT, "connection_close")
    closes += connection.frames(SERVER, "connection_close")
    wrong = [close for close in closes if close.error != 0]
    if wrong:
        raise Failure(f"closed with code {wrong[0].error:#x}: {wrong[0].reason!r}")
    return rate(report)


def longrtt(setting):
    """A handshake over 1.5 s: the client sends its ClientHello again meanwhile."""
    link = ["--delay", "750ms", "--rate", "10mbit", "--buffer", "25p"]
    with scene(setting, link) as it:
        it.fetch(setting.site.files(1, KB))
        connection = it.trace().handshakes()[0]
    hellos = sum(
        any(frame.kind == "crypto" and frame.offset == 0 for frame in packet.frames or ())
        for packet in connection.sent(CLIENT, "Initial")
    )
    if hellos < 2:
        raise Failure(f"{hellos} ClientHello")
    return f"{hellos} ClientHellos"


def chacha20(setting):
    """ChaCha20 is the only suite offered, and it is used. (A client that can't be held to it meets a
    server that is.)"""
    suites = [
        "chacha20" if peer.chooses_suite else "any" for peer in (setting.server, setting.client)
    ]
    if suites == ["any", "any"]:
        raise Unsupported("neither side can be held to a suite")
    with scene(setting, suite=suites[0]) as it:
        it.fetch(setting.site.files(1, 3 * MB), suite=suites[1])
        connection = it.trace().handshakes()[0]
    check_chacha20(connection, it.is_ours(CLIENT))
    return "" if connection.handshake.offered == [CHACHA20] else "the server chose"


def multiplexing(setting):
    """1999 files of 32 bytes on one connection, whose server allows 1000 streams at most at first."""
    with scene(setting) as it:
        report = it.fetch(setting.site.files(1999, 32))
        connection = it.trace().handshakes()[0]
    parameters = connection.handshake.server_parameters
    limit = transport_parameter(parameters, INITIAL_MAX_STREAMS_BIDI)
    if limit is None or limit > STREAMS:
        raise Failure(f"the server allows {limit} streams")
    return f"{limit} streams at first, {report['seconds']:.1f} s"


def retry(setting):
    """The server sends Retry, and the client comes back with the token and the next packet number."""
    with scene(setting, retry=True) as it:
        it.fetch(setting.site.files(1, 10 * KB))
        connection = it.trace().handshakes()[0]
    check_tap(it.tap)
    if not connection.sent(SERVER, "Retry"):
        raise Failure("the server sent no Retry packet")
    initials = connection.sent(CLIENT, "Initial")
    before = [packet.number for packet in initials if not packet.token]
    after = [packet.number for packet in initials if packet.token]
    if not after:
        raise Failure("the client sent no token")
    if None in before + after:
        raise Failure("an Initial packet doesn't open")
    if min(after) <= max(before):
        raise Failure("the client began to count its packets anew")


def resumption(setting):
    """The second of two connections resumes the session: the server shows no certificate."""
    if "s2n-quic" in (setting.server.name, setting.client.name):
        raise Unsupported("s2n-quic's adapter for rustls neither sends nor reads session tickets")
    names = setting.site.files(1, 5 * KB) + setting.site.files(1, 10 * KB)
    with scene(setting) as it:
        it.fetch(names, resume=True)
        first, second = it.trace(handshakes=2).handshakes()
    if not first.handshake.has_certificate:
        raise Failure("no certificate in the first handshake")
    if second.handshake.has_certificate:
        raise Failure("the server showed its certificate again")


def zerortt(setting):
    """The second of two connections sends its 39 requests in 0-RTT, not in 1-RTT."""
    count, name_size = 40, 250
    names = setting.site.files(count, 32, name_size)
    with scene(setting, zero_rtt=True) as it:
        it.fetch(names, zero_rtt=True)
        trace = it.trace(handshakes=2)
    early = sum(packet.payload_size for packet in trace.sent(CLIENT, "0-RTT"))
    late = sum(packet.payload_size for packet in trace.sent(CLIENT, "1-RTT"))
    if early == 0:
        raise Failure("no 0-RTT packet")
    if late > count * name_size / 2:
        raise Failure(f"{late} bytes in 1-RTT packets, {early} in 0-RTT packets")
    return f"{early} bytes in 0-RTT packets, {late} in 1-RTT packets"


def blackhole(setting):
    """10 MB; after 5 s nothing passes for 2 s."""
    with scene(setting, impairments=Impairments(blackhole=(5, 2))) as it:
        report = it.fetch(setting.site.files(1, 10 * MB))
        it.trace(closely=False)
    return rate(report)


def keyupdate(setting):
    """The client updates its keys, and the server follows. (If a foreign client can't, our server
    does.)"""
    try:
        return updated(setting, True)
    except Unsupported:
        if setting.server is not setting.swiftwater:
            raise
    return updated(setting, False)


def updated(setting, by_client):
    def how(peer):
        ours = peer is setting.swiftwater
        return {"key_update_every": UPDATE_EVERY} if ours else {"key_update": True}

    with scene(setting, **({} if by_client else how(setting.server))) as it:
        it.fetch(setting.site.files(1, 3 * MB), **(how(setting.client) if by_client else {}))
        connection = it.trace().handshakes()[0]
    generations = []
    for side in SIDES:
        packets = connection.sent(side, "1-RTT")
        if any(packet.frames is None for packet in packets):
            raise Failure(f"1-RTT packets of the {side} don't open")
        generations.append(max(packet.generation for packet in packets))
    if min(generations) == 0:
        raise Failure(f"updates of client and server: {generations}")
    return f"by the {'client' if by_client else 'server'}, {min(generations)} times"


def ecn(setting):
    """Both sides mark their packets ECT, none CE, and report the marks that they see."""
    with scene(setting) as it:
        it.fetch(setting.site.files(1, 100 * KB))
        connection = it.trace().handshakes()[0]
    missing = []
    for side in SIDES:
        marks = [packet.ecn for packet in connection.sent(side)]
        if CE in marks:
            raise Failure(f"the {side} marks its packets CE")
        if not any(mark in ECT for mark in marks):
            missing.append((side, "marks no packets"))
        if not connection.frames(side, "ack_ecn"):
            missing.append((side, "reports no marks"))
    marking = {side for side in SIDES if (side, "marks no packets") not in missing}
    for side, what in missing:
        other = SERVER if side == CLIENT else CLIENT
        # Without marks there is nothing to report.
        excused = what == "reports no marks" and other not in marking
        if it.is_ours(side) and not excused:
            raise Failure(f"swiftwater {what}")
    if missing:
        foreign = [(side, what) for side, what in missing if not it.is_ours(side)]
        side, what = foreign[0]
        raise Unsupported(f"{it.name(side)} {what}")


def amplificationlimit(setting):
    """A chain of certificates of more than 7.5 kB, and the client's second to seventh datagram lost: the
    server keeps to the limit. (A foreign one may exceed it by less than a third. Seven certificates; the verifiers of rustls take no more.)"""
    impairments = Impairments(drop_to_server=frozenset(range(2, 8)))
    with scene(setting, impairments=impairments, identity=setting.chain) as it:
        it.fetch(setting.site.files(1, 5 * KB))
        connection = it.trace().handshakes()[0]
    sent = connection.handshake.crypto_end(SERVER, "Handshake")
    if sent < CHAIN:
        raise Failure(f"{sent} bytes of handshake: not the chain that it should be")
    if it.tap.saw(SERVER, "Version Negotiation"):
        raise Failure("the server sent Version Negotiation unasked")
    note = f"{it.tap.budget_used:.2f} times what came in, before validation"
    # The runner lets up to four times slide. We don't, for ourselves.
    if it.is_ours(SERVER) or it.tap.budget_used >= TOLERATED:
        check_tap(it.tap)
    return note


def handshakeloss(setting):
    """50 connections while 30 % of the packets are lost both ways, up to 3 in a row."""
    return multiconnect(setting, loss=0.3)


def handshakecorruption(setting):
    """50 connections while 30 % of the packets are corrupted both ways, up to 3 in a row."""
    return multiconnect(setting, corruption=0.3)


def multiconnect(setting, **impairments):
    impairments = Impairments(**impairments, seed=setting.seed)
    with scene(setting, impairments=impairments) as it:
        start = time.monotonic()
        it.fetch(setting.site.files(CONNECTIONS, KB), MULTICONNECT_TIME, per_connection=True)
        elapsed = time.monotonic() - start
        it.trace(handshakes=CONNECTIONS, version=None, closely=False)
    return f"{elapsed / CONNECTIONS * 1e3:.0f} ms for a connection with its file"


def transferloss(setting):
    """2 MB while 2 % of the packets are lost both ways."""
    return impaired(setting, loss=0.02)


def transfercorruption(setting):
    """2 MB while 2 % of the packets are corrupted both ways."""
    return impaired(setting, corruption=0.02)


def impaired(setting, **impairments):
    impairments = Impairments(**impairments, seed=setting.seed)
    with scene(setting, impairments=impairments) as it:
        report = it.fetch(setting.site.files(1, 2 * MB))
        it.trace(version=None, closely=False)
    if not it.tap.lost + it.tap.corrupted:
        raise Failure("nothing was hit, so nothing is shown")
    return rate(report)


def ipv6(setting):
    """Over ::1."""
    names = setting.site.files(1, 5 * KB) + setting.site.files(1, 10 * KB)
    try:
        with scene(setting, host="::1") as it:
            it.fetch(names)
            it.trace()
    except OSError as error:
        raise Unsupported(f"no IPv6 here ({error.strerror})") from error


def v2(setting):
    """The client begins with version 1, and both go on with version 2, by compatible negotiation."""
    with scene(setting, v2=True) as it:
        it.fetch(setting.site.files(1, KB), v2=True)
        trace = it.trace(version=None)
    if VERSION_1 not in {packet.version for packet in trace.sent(CLIENT, "Initial")}:
        raise Failure("the client didn't begin with version 1")
    if VERSION_2 not in {packet.version for packet in trace.sent(SERVER, "Initial")}:
        raise Failure("the server didn't choose version 2")
    for side in SIDES:
        versions = {packet.version for packet in trace.sent(side, "Handshake")}
        if versions != {VERSION_2}:
            raise Failure(f"the {side}'s Handshake packets: {sorted(map(hex, versions))}")


def rebind_port(setting):
    """10 MB while the client's port changes after 1 s and then every 5 s: the server validates each
    new address; ours with the first packet that it sends there."""
    return rebound(setting, False)


def rebind_addr(setting):
    """The same with its IP address, too."""
    hosts = {host for host, *_ in rebound(setting, True)}
    if len(hosts) < 2:
        raise Failure("only one IP address was seen")
    return f"{len(hosts)} IP addresses"


def rebound(setting, address):
    impairments = Impairments(rebind=(1, 5), rebind_address=address)
    with scene(setting, impairments=impairments) as it:
        it.fetch(setting.site.files(1, 10 * MB))
        connection = it.trace().handshakes()[0]
    paths = check_new_paths(connection, it.is_ours(SERVER))
    return paths if address else f"{len(paths)} ports"


def connectionmigration(setting):
    """The client moves to another address during a transfer of 2 MB, with new connection IDs; the server
    validates the address. (The server offers no preferred address: through a relay it would lead
    past it.)"""
    with scene(setting) as it:
        it.fetch(setting.site.files(1, 2 * MB), migrate=True)
        connection = it.trace().handshakes()[0]
    check_new_paths(connection, it.is_ours(SERVER))
    check_new_cids(connection)
    if it.is_ours(SERVER):
        check_new_cids(connection, SERVER)


def goodput(setting):
    """10 MB over 10 Mbit/s."""
    with scene(setting) as it:
        it.fetch(setting.site.files(1, 10 * MB))
        connection = it.trace(closely=False).handshakes()[0]
    return measured(connection, 10 * MB)


def crosstraffic(setting):
    """25 MB over 10 Mbit/s beside another flow under CUBIC. (Ours over QUIC, not TCP.)"""
    if setting.swiftwater is None:
        raise Unsupported("the other flow is swiftwater's")
    site, bench = setting.site, setting.bench
    other = Server(site.root, setting.identity, controller="cubic")
    _, address = bench.start_server(setting.swiftwater, other, name="other-server")
    with scene(setting, before=[address]) as it:
        place = bench.folder / "other"
        url = f"https://{text(it.near)}/{site.endless()}"
        task = Client([url], place, setting.identity.ca, controller="cubic")
        (command,) = setting.swiftwater.clients(task)
        flow = bench.start("other-client", command)
        end = time.monotonic() + 5
        while not it.tap.flows:
            if time.monotonic() > end:
                raise Failure(f"the other flow doesn't come: {flow.last_words()}")
            time.sleep(0.02)
        it.fetch(site.files(1, 25 * MB), CROSSTRAFFIC_TIME)
        if not flow.alive():
            raise Failure(f"the other flow ended: {flow.last_words()}")
        connection = it.trace(closely=False).handshakes()[0]
    return measured(connection, 25 * MB)


def rate(report):
    return f"{report['bytes'] * 8 / report['seconds'] / 1e6:.1f} Mbit/s"


def measured(connection, size):
    times = [packet.time for packet in connection.sent(SERVER, "1-RTT")]
    return f"{size * 8 / (times[-1] - times[0]) / 1e6:.2f} Mbit/s"
