"""The cases beyond those of the QUIC interop runner, and the list of all. Each runs one server and one client and raises `Failure` if anything is not as it must
be; what it returns is a note for the table."""

import json
import re
import time
from dataclasses import dataclass

from . import http_cases, path_cases, runner
from .packets import RESERVED_VERSION, VERSION_1
from .programs import Client, Failure, Server, Unsupported, text
from .qlog import repairs
from .scene import check_alive, check_tap
from .tap import Tap

# Seconds that a client may take.
SHORT = 20
LONG = 60
# A server receives its client's CONNECTION_CLOSE within this time, far below any idle timeout, seconds.
CLOSE = 5
# A version that quinn supports and others need not: draft 29.
DRAFT_29 = 0xFF00001D
# A client that is told "no common version" must not sit out its time limits, seconds.
PROMPT = 10
# Packets after which swiftwater updates its keys when it is to, and the fewest updates expected of it
# while 5 MB pass: it sends some 4000 packets as the server, half as many as the client, and waits three
# probe timeouts between updates. (quinn makes one of its own early on, which is counted, too.) A client
# that only acknowledges hears seldom that its last update arrived, without which it must make no other
# (RFC 9001, section 6.1): one will do.
UPDATE_EVERY = 100
UPDATES = 3
CLIENT_UPDATES = 1
# Slow enough for several of these waits, with a queue that keeps them short.
UPDATE_LINK = ["--rate", "10mbit", "--delay", "5ms", "--buffer", "25p"]
# 5 % of the packets lost both ways, 20 ms round trip; quick, yet no faster than Python can read.
REPLICA_LINK = ["--loss", "5%", "--delay", "10ms", "--rate", "20mbit"]


@dataclass
class Setting:
    """What a case works with."""

    bench: object
    site: object
    identity: object
    # The same with a long chain of certificates.
    chain: object
    server: object
    client: object
    swiftwater: object
    # Whose relay is used: swiftwater's, whoever is tested.
    relay: object
    # Of the relay's random choices.
    seed: int = 1


def fetch(setting, address, names, seconds=SHORT, **options):
    """Lets the client get files, compares them, and returns the client's report."""
    running = fetched(setting, address, names, seconds, **options)
    # The last line is about the whole run; its seconds end with the last file, not with the closing
    # period, which differs much between the clients.
    return json.loads(running.output().strip().splitlines()[-1])


def fetched(setting, address, names, seconds=SHORT, **options):
    """Lets the client get files, compares them, and returns the client as it ended."""
    running = attempt(setting, address, names, seconds, **options)
    if running.process.returncode != 0:
        raise Failure(f"client exit {running.process.returncode}: {running.last_words()}")
    wrong = setting.site.differences(names, setting.bench.folder / "received")
    if wrong:
        raise Failure("; ".join(wrong[:5]))
    return running


def attempt(setting, address, names, seconds=SHORT, **options):
    """Runs the client and ignores its result."""
    ca = options.pop("identity", setting.identity).ca
    urls = [f"https://{text(address)}/{name}" for name in names]
    task = Client(urls, setting.bench.folder / "received", ca, **options)
    return setting.bench.run_client(setting.client, task, seconds)


def serve(setting, host="127.0.0.1", **options):
    identity = options.pop("identity", setting.identity)
    task = Server(setting.site.root, identity, **options)
    running, address = setting.bench.start_server(setting.server, task, host)
    if not options.get("version"):
        if VERSION_1 not in running.versions:
            raise Failure(f"versions offered: {running.versions}")
        if RESERVED_VERSION in running.versions:
            raise Failure("the server offers the version that it was asked to negotiate away")
    return running, address


def sizes(setting):
    """Files of 0 bytes, 1 byte, 100 kB and 5 MB on one connection."""
    server, address = serve(setting)
    names = ["empty", "one", "hundred-kb", "five-mb"]
    report = fetch(setting, address, names)
    check_alive(server)
    return f"{report['bytes'] / report['seconds'] / 1e6:.1f} MB/s"


def streams(setting):
    """150 small files on one connection: more streams than either side allows at first."""
    server, address = serve(setting)
    report = fetch(setting, address, setting.site.small)
    check_alive(server)
    return f"{report['files']} files in {report['seconds']:.2f} s"


def missing(setting):
    """A file that isn't there: the stream is reset, the client fails, nothing is written."""
    server, address = serve(setting)
    running = attempt(setting, address, ["absent"])
    if running.process.returncode == 0:
        raise Failure("the client reports success")
    left = [path.name for path in (setting.bench.folder / "received").iterdir()]
    if left:
        raise Failure(f"the client has written {left}")
    check_alive(server)
    return running.last_words()[:60]


def peerkeyupdate(setting):
    """The foreign side updates keys again and again during a transfer."""
    from_client = setting.client is not setting.swiftwater
    server, address = serve(setting, key_update=not from_client)
    report = fetch(setting, address, ["five-mb"], LONG, key_update=from_client)
    if from_client:
        updates = report["key_updates"]
    else:
        updates = server.everything().count("key update")
    if not updates:
        raise Failure("no key update was made")
    check_alive(server)
    return f"{updates} updates"


def ourkeyupdate(setting):
    """Swiftwater updates keys again and again during a transfer, and the foreign side follows."""
    as_client = setting.client is setting.swiftwater
    every = {"key_update_every": UPDATE_EVERY}
    server, address = serve(setting, **({} if as_client else every))
    relay, near = setting.bench.start_relay(setting.relay, address, UPDATE_LINK)
    client = fetched(setting, near, ["five-mb"], LONG, **(every if as_client else {}))
    swiftwater = client if as_client else server
    swiftwater.wait_for("key_updates=", CLOSE)
    updates = sum(int(count) for count in re.findall(r"key_updates=(\d+)", swiftwater.everything()))
    check_alive(relay)
    if updates < (CLIENT_UPDATES if as_client else UPDATES):
        raise Failure(f"{updates} key updates were made")
    check_alive(server)
    return f"{updates} updates"


def versions(setting):
    """Version Negotiation: a foreign client starts with another version; ours meets a server
    without a version in common."""
    if setting.client is setting.swiftwater:
        return no_common_version(setting)
    server, address = serve(setting)
    recovers = setting.client.name == "aioquic"
    with Tap(address) as tap:
        near = ("127.0.0.1", tap.port)
        if recovers:
            fetch(setting, near, ["one"], version=RESERVED_VERSION)
        elif attempt(setting, near, ["one"], version=DRAFT_29).process.returncode == 0:
            raise Failure("the client spoke a version that the server doesn't know")
    if VERSION_1 not in tap.versions:
        raise Failure(f"Version Negotiation offers {tap.versions}")
    check_alive(server)
    return "came back with version 1" if recovers else "client gave up, as it does"


def no_common_version(setting):
    server, address = serve(setting, version=DRAFT_29)
    with Tap(address) as tap:
        start = time.monotonic()
        running = attempt(setting, ("127.0.0.1", tap.port), ["one"])
        elapsed = time.monotonic() - start
    if running.process.returncode == 0:
        raise Failure("the client reports success")
    if not tap.saw("server", "Version Negotiation"):
        raise Failure("the server sent no Version Negotiation")
    if elapsed > PROMPT:
        raise Failure(f"the client took {elapsed:.1f} s to give up: {running.last_words()}")
    check_alive(server)
    return running.last_words()[-60:]


def impaired(setting, names, link, key_update=False):
    """Gets files through a relay with the given link, and returns a note."""
    from_client = setting.client is not setting.swiftwater
    server, address = serve(setting, key_update=key_update and not from_client)
    relay, near = setting.bench.start_relay(
        setting.relay, address, [*link, "--seed", str(setting.seed)]
    )
    report = fetch(setting, near, names, LONG, key_update=key_update and from_client)
    check_alive(server)
    check_alive(relay)
    return f"{report['seconds']:.1f} s"


def harsh(setting):
    """Loss, corruption, duplication and reordering together."""
    link = ["--loss", "5%", "--corrupt", "2%", "--duplicate", "2%"]
    link += ["--reorder", "5%,5ms", "--delay", "10ms"]
    return impaired(setting, ["one", "hundred-kb", *setting.site.small[:20]], link)


def rekey_loss(setting):
    """Key updates while packets are lost and overtake each other."""
    if "aioquic" in (setting.server.name, setting.client.name):
        # It drops its old receive keys when it starts an update, against RFC 9001, section 6.1. If
        # the packet that tells of the update is lost and nothing follows it, it is deaf for good.
        raise Unsupported("aioquic's own updates don't survive loss")
    link = ["--loss", "2%", "--reorder", "5%,5ms", "--delay", "5ms"]
    return impaired(setting, ["one-mb"], link, key_update=True)


# At a round trip of 20 ms losses are repaired quickly enough for the default of 30 ms without replicas.
AT_ANY_LATENCY = "alpha=0ms"


def replicas(setting):
    """Swiftwater repairs 5 % loss with AutoRec; the replicas are in its qlog, the files whole."""
    return repaired(setting, f"autorec:{AT_ANY_LATENCY}")


def replicas_plus(setting):
    """The same with autorec+."""
    return repaired(setting, f"autorec+:{AT_ANY_LATENCY}")


def repaired(setting, recovery):
    """Gets 6 MB in two files from a server that sends replicas, and counts these in its log."""
    logs = setting.bench.folder / "qlog"
    # A controller that loss doesn't slow down, as in AutoRec's evaluation.
    server, address = serve(setting, recovery=recovery, controller="bbr1", qlog=logs)
    link = [*REPLICA_LINK, "--seed", str(setting.seed)]
    relay, near = setting.bench.start_relay(setting.relay, address, link)
    report = fetch(setting, near, ["one-mb", "five-mb"], LONG)
    check_alive(relay)
    check_alive(server)
    # The log is whole when the server has ended.
    server.stop(gently=True)
    seen = repairs(logs)
    if not seen.lost:
        raise Failure("nothing was lost, so nothing is shown")
    if not seen.replicas:
        raise Failure(f"no replica in the qlog of {seen.lost} losses")
    if seen.replicas != seen.replica_frames:
        raise Failure(f"{seen.replicas} replicas, but {seen.replica_frames} frames with one")
    return (
        f"{seen.replicas} replicas for {seen.lost} losses, {seen.brought} brought the data; "
        f"{report['seconds']:.1f} s"
    )


@dataclass(frozen=True)
class Case:
    """A case of the table. `quick`: CI runs it, too. `matrix`: it is one of the QUIC interop runner's, of HTTP/3, or
    of several paths."""

    run: object
    quick: bool = False
    matrix: bool = False
    title: str = ""
    # It is of the table of HTTP/3, and needs the stacks' programs for that.
    http: bool = False
    # It is of the table of several paths, and needs stacks with that.
    paths: bool = False

    @property
    def name(self):
        return self.title or self.run.__name__

    @property
    def help(self):
        return " ".join(self.run.__doc__.split())

    def fits(self, pair):
        """Whether both stacks have what the case is about."""
        if self.paths:
            return all(stack.several_paths for stack in pair)
        if any(stack.only_several_paths for stack in pair):
            return False
        return not self.http or all(stack.http for stack in pair)


def of_runner(run, quick=False, title=""):
    return Case(run, quick, True, title)


# In the order of the table.
CASES = [
    of_runner(runner.handshake, True),
    of_runner(runner.transfer),
    of_runner(runner.longrtt),
    of_runner(runner.chacha20, True),
    of_runner(runner.multiplexing, True),
    of_runner(runner.retry, True),
    of_runner(runner.resumption, True),
    of_runner(runner.zerortt, True),
    of_runner(runner.blackhole),
    of_runner(runner.keyupdate, True),
    of_runner(runner.ecn, True),
    of_runner(runner.amplificationlimit, True),
    of_runner(runner.handshakeloss),
    of_runner(runner.transferloss, True),
    of_runner(runner.handshakecorruption),
    of_runner(runner.transfercorruption),
    of_runner(runner.ipv6, True),
    of_runner(runner.v2, True),
    of_runner(runner.rebind_port, title="rebind-port"),
    of_runner(runner.rebind_addr, title="rebind-addr"),
    of_runner(runner.connectionmigration, True),
    of_runner(runner.goodput),
    of_runner(runner.crosstraffic),
    *(Case(run, True, True, http=True) for run in http_cases.CASES),
    *(Case(run, run in path_cases.QUICK, True, paths=True) for run in path_cases.CASES),
    Case(sizes, True),
    Case(streams),
    Case(missing, True),
    Case(peerkeyupdate),
    Case(ourkeyupdate, True),
    Case(versions, True),
    Case(harsh),
    Case(rekey_loss),
    Case(replicas, True),
    Case(replicas_plus),
]
