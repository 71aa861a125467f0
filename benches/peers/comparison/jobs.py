"""The jobs: arguments of the client, path, and results."""

from dataclasses import dataclass, field

GB = 1e9
# The flag of both ends for jobs over HTTP/3.
HTTP3 = "--http3"


@dataclass(frozen=True)
class Measure:
    """A column of a job's table."""

    key: str
    title: str
    digits: int
    # Whether more is better; `None` for columns that aren't compared.
    more: bool | None = False


@dataclass(frozen=True)
class Job:
    """One thing that all programs do."""

    name: str
    title: str
    # Of the client, and what they are with --quick.
    arguments: dict
    quick: dict
    measures: list
    # Flags of the relay between client and server; `None` without.
    link: list | None = None
    # Of both ends.
    flags: tuple = ()
    # Connections held open before the measured ones, so that what a server has once doesn't count.
    warm_up: int = 0
    # Whether --quick runs it by default.
    in_quick: bool = True
    # Whether it runs by default.
    usual: bool = True
    # What isn't an argument of the client by the same name.
    words: tuple = field(default=())

    def command(self, quick):
        """The client's words, and the arguments in use."""
        arguments = self.arguments | (self.quick if quick else {})
        words = list(self.words)
        for name, value in arguments.items():
            words += [f"--{name}", str(value)]
        return words, arguments

    @property
    def over_http(self):
        return HTTP3 in self.flags

    @property
    def holds(self):
        return self.words[0] == "hold"


def bulk(name, title, size, quick, link=None, direction="download", **more):
    return Job(
        name,
        title,
        {"bytes": size, "direction": direction},
        {"bytes": quick},
        [
            Measure("gbps", "Gbit/s", 3, True),
            Measure("sender", "sender CPU s/GB", 3),
            Measure("receiver", "receiver CPU s/GB", 3),
            Measure("sum", "sum CPU s/GB", 3),
        ],
        link=link,
        words=("bulk",),
        **more,
    )


def requests(name, title, **more):
    return Job(
        name,
        title,
        {"seconds": 4, "in-flight": 32, "up": 100, "down": 1024},
        {"seconds": 0.5},
        [
            Measure("rate", "operations/s", 0, True),
            Measure("server", "server CPU µs", 2),
            Measure("client", "client CPU µs", 2),
            Measure("p50", "p50 µs", 0),
            Measure("p99", "p99 µs", 0),
        ],
        words=("requests",),
        **more,
    )


def hold(name, title, connections, quick, streams):
    return Job(
        name,
        title,
        {"connections": connections, "streams": streams},
        {"connections": quick},
        [
            Measure("server", "server kB", 2),
            Measure("client", "client kB", 2),
        ],
        warm_up=20,
        words=("hold",),
    )


JOBS = [
    bulk("bulk", "One stream down", 1_000_000_000, 50_000_000),
    bulk("bulk-upload", "One stream up", 1_000_000_000, 50_000_000, direction="upload",
         in_quick=False, usual=False),
    bulk("bulk-loss", "One stream down, 5 % of the packets lost each way", 200_000_000, 5_000_000,
         link=["--loss", "5%"], flags=("--lossy",), in_quick=False),
    bulk("bulk-long", "One stream down, 100 ms round trip, 100 Mbit/s, queue of one bandwidth-delay product",
         100_000_000, 5_000_000, link=["--rate", "100mbit", "--delay", "50ms", "--buffer", "1bdp"],
         in_quick=False),
    requests("requests", "Requests: 100 B up, 1 kB down, 32 in flight, one connection"),
    Job(
        "handshakes",
        "Full handshakes, 4 at a time",
        {"count": 4000, "parallel": 4},
        {"count": 300},
        [
            Measure("rate", "handshakes/s", 0, True),
            Measure("server", "server CPU µs", 0),
            Measure("client", "client CPU µs", 0),
        ],
        words=("handshakes",),
    ),
    hold("idle", "Memory of an idle connection", 2000, 150, 0),
    hold("streams", "Memory of a connection with 10 open streams, 1 kB echoed on each", 300, 50, 10),
    requests("h3-requests", "HTTP/3: POST of 100 B, answers of 1 kB, 32 in flight, one connection", flags=(HTTP3,)),
    bulk("h3-bulk", "HTTP/3: one file down", 1_000_000_000, 50_000_000, flags=(HTTP3,)),
]


def outcome(job, arguments, done, server, client):
    """The measures of a run, from what the client reports and what the kernel counted: seconds of processor time
    of server and client, or kB for jobs that hold connections."""
    if job.holds:
        count = done["connections"]
        return {"server": server / count, "client": client / count}
    if "bytes" in arguments:
        gigabytes = done["bytes"] / GB
        sides = (server, client) if arguments["direction"] == "download" else (client, server)
        sender, receiver = (side / gigabytes for side in sides)
        rate = done["bytes"] * 8 / done["seconds"] / 1e9
        return {"gbps": rate, "sender": sender, "receiver": receiver, "sum": sender + receiver}
    count = done.get("operations", done.get("count"))
    values = {
        "rate": count / done["seconds"],
        "server": server / count * 1e6,
        "client": client / count * 1e6,
    }
    if "operations" in done:
        values |= {"p50": done["p50_us"], "p99": done["p99_us"]}
    return values
