"""Requests and downloads over HTTP on loopback: Swiftwater's three versions, and h3 on quinn.

Each round runs every contestant once with small requests and once with one large download. Processor
time of both processes, from start to end, is what the kernel says of them.
"""

import json
import statistics
import tempfile

from . import programs, speed

HOST = "127.0.0.1"

# What is measured, and how it is shown: key, heading, factor, digits.
COLUMNS = {
    "requests": [
        ("per_second", "requests/s", 1, 0),
        ("p50_ms", "median ms", 1, 3),
        ("p99_ms", "99 % ms", 1, 3),
        ("server_cpu_us", "server CPU us", 1, 1),
        ("client_cpu_us", "client CPU us", 1, 1),
    ],
    "download": [
        ("goodput_bps", "Gbit/s", 1e-9, 3),
        ("server_cpu_s_per_gb", "server CPU s/GB", 1, 3),
        ("client_cpu_s_per_gb", "client CPU s/GB", 1, 3),
    ],
}


class Ours:
    """Swiftwater over one version of HTTP."""

    def __init__(self, program, protocol, arguments):
        self.name = f"{protocol} swiftwater"
        self.protocol = protocol
        self.program = str(program)
        self.tuning = ["--suite", "aes128", "--mtu", str(arguments.mtu)]

    def server(self, address, folder):
        place = ["--listen", address, "--state-dir", folder]
        return [self.program, "perf", "server", *place, "--json", *self.tuning]

    def client(self, address, load, arguments):
        command = [self.program, "perf", "client", address, "--insecure", "--json", *self.tuning]
        command += ["--protocol", self.protocol, load]
        if load == "download":
            return [*command, "--bytes", str(arguments.bytes)]
        return [*command, *requests(arguments), "--duration", f"{arguments.seconds}s"]


class QuinnH3:
    """The h3 crate on quinn."""

    name = "h3 quinn+h3"
    protocol = "h3"

    def __init__(self, program, arguments):
        self.program = str(program)
        self.tuning = ["--suite", "aes128", "--mtu", str(arguments.mtu)]

    def server(self, address, folder):
        del folder
        return [self.program, "server", "--listen", address, *self.tuning]

    def client(self, address, load, arguments):
        command = [self.program, "client", address, *self.tuning, load]
        if load == "download":
            return [*command, "--bytes", str(arguments.bytes)]
        return [*command, *requests(arguments), "--seconds", str(arguments.seconds)]


def requests(arguments):
    return ["--down", str(arguments.down), "--in-flight", str(arguments.in_flight),
            "--connections", str(arguments.connections)]


def contestants(arguments):
    """Pairs of a server and a client."""
    found = []
    if arguments.only != "quinn":
        given = arguments.swiftwater
        program = programs.executable(given) if given else programs.build_swiftwater()
        found += [Ours(program, protocol, arguments) for protocol in ("h3", "h2", "h1")]
    if arguments.only != "swiftwater":
        program = programs.build_quinn("release") / "quinn-h3-perf"
        found.insert(1, QuinnH3(program, arguments))
    pairs = [(one, one) for one in found]
    if arguments.cross:
        mixed = [one for one in found if one.protocol == "h3"]
        pairs += [(a, b) for a in mixed for b in mixed if a is not b]
    return pairs


def one_run(server, client, load, arguments, folder):
    port = programs.ports.free(HOST)
    address = f"{HOST}:{port}"
    serving = server.server(address, folder)
    asking = client.client(address, load, arguments)
    report, server_cpu, client_cpu = speed.measure(
        (server.name, serving), (client.name, asking), (HOST, port), arguments.pin, folder
    )
    row = {"server": server.name, "client": client.name, "load": load, "client_report": report}
    if load == "download":
        gigabytes = arguments.bytes / 1e9
        return row | {
            "goodput_bps": report["goodput_bps"],
            "server_cpu_s_per_gb": server_cpu / gigabytes,
            "client_cpu_s_per_gb": client_cpu / gigabytes,
        }
    return row | {
        "per_second": report["per_second"],
        "p50_ms": report["latency_ms"]["p50"],
        "p99_ms": report["latency_ms"]["p99"],
        "server_cpu_us": server_cpu * 1e6 / report["completed"],
        "client_cpu_us": client_cpu * 1e6 / report["completed"],
    }


def label(server, client):
    return server.name if server is client else f"{server.name} -> {client.name}"


def show(name, values, load):
    cells = (f"{values[key] * factor:>16.{digits}f}" for key, _, factor, digits in COLUMNS[load])
    print(f"{name:<30}{''.join(cells)}", flush=True)


def heading(load):
    cells = (f"{title:>16}" for _, title, _, _ in COLUMNS[load])
    print(f"{load:<30}{''.join(cells)}")


def medians(rows, load):
    return {key: statistics.median(row[key] for row in rows) for key, _, _, _ in COLUMNS[load]}


def compare(arguments):
    """Runs all rounds, prints the medians, writes the JSON file if one is wanted."""
    pairs = contestants(arguments)
    print(
        f"HTTP over loopback, {arguments.rounds} rounds: requests for {arguments.down} bytes, "
        f"{arguments.seconds:g} s, {arguments.connections} connections x {arguments.in_flight} in "
        f"flight; download of {arguments.bytes / 1e9:g} GB"
    )
    rows = []
    with tempfile.TemporaryDirectory(prefix="swiftwater-perf-") as folder:
        for index in range(arguments.rounds):
            # Alternating who goes first cancels what drifts with time.
            order = pairs if index % 2 == 0 else pairs[::-1]
            for load in COLUMNS:
                for server, client in order:
                    row = one_run(server, client, load, arguments, folder)
                    rows.append(row | {"pair": label(server, client), "round": index + 1})
                    show(f"  {load} {label(server, client)}", row, load)
    summary = {load: {} for load in COLUMNS}
    print("medians")
    for load in COLUMNS:
        heading(load)
        for pair in pairs:
            name = label(*pair)
            mine = [row for row in rows if row["load"] == load and row["pair"] == name]
            summary[load][name] = medians(mine, load)
            show(name, summary[load][name], load)
    ratio = ratios(summary)
    for load, values in ratio.items():
        text = ", ".join(f"{key} {value:.2f}" for key, value in values.items())
        print(f"h3, swiftwater / quinn+h3, {load}: {text}")
    if arguments.json:
        settings = {key: str(value) for key, value in vars(arguments).items()}
        result = {"settings": settings, "rounds": rows, "medians": summary, "ratio": ratio}
        arguments.json.write_text(json.dumps(result, indent=1) + "\n")


def ratios(summary):
    """Ours by theirs, over HTTP/3."""
    both = ("h3 swiftwater", "h3 quinn+h3")
    return {
        load: {key: values[both[0]][key] / values[both[1]][key] for key in values[both[0]]}
        for load, values in summary.items()
        if all(name in values for name in both)
    }
