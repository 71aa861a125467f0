"""A run in real time over the relay, and one in virtual time."""

import contextlib
import functools
import json
import os
import socket
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

# Between two counters of the relay, seconds.
INTERVAL = 0.005
# Until a server has bound its socket, and for the last counters after the client, seconds.
SETTLING = 0.5
# A transfer is given up after this, seconds.
LIMIT = 180
# Bytes at the end of a transfer that don't count: what closes the connection, and repeated data.
TAIL = 16_000

# A run counts if the relay's counters, one every INTERVAL, came no later than this, seconds: 99 of 100, and all;
LATE, LATEST = 0.003, 0.05
# and if server and client, runnable, waited for a processor for no larger share of the time than this.
WAITED = 0.1


class Failed(Exception):
    """A run went wrong; the text says how."""


@dataclass(frozen=True)
class Identity:
    """A server's certificate and key, and what to trust. xquic's programs take the names as they are."""

    folder: Path

    @classmethod
    def make(cls, folder):
        def sign(name, *more):
            subprocess.run(
                ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                 "-days", "30", "-keyout", folder / f"{name}.key", "-out", folder / f"{name}.crt", *more],
                check=True, capture_output=True,
            )

        sign("ca", "-subj", "/CN=test authority")
        sign("server", "-subj", "/CN=localhost", "-CA", folder / "ca.crt", "-CAkey", folder / "ca.key",
             "-addext", "subjectAltName=DNS:localhost", "-addext", "basicConstraints=critical,CA:FALSE")
        return cls(folder)

    @property
    def values(self):
        return {"cert": self.folder / "server.crt", "key": self.folder / "server.key", "ca": self.folder / "ca.crt"}


def free_port():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextlib.contextmanager
def running(command, output, folder):
    with open(output, "w", encoding="utf-8") as file:
        process = subprocess.Popen(
            [str(word) for word in command], stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT, cwd=folder,
        )
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(2)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def waited(pid):
    """For how long the threads of a process, runnable, waited for a processor, seconds."""
    total = 0
    with contextlib.suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(OSError):
                total += int(Path(f"/proc/{pid}/task/{thread}/schedstat").read_text().split()[1])
    return total / 1e9


def real(swiftwater, pair, link, cell, seed, identity):
    """A transfer over the relay: its measures, and whether it counts."""
    port, relay_port = free_port(), free_port()
    values = {"port": port, "relay": relay_port, "bytes": link.bytes, **identity.values}
    folder = identity.folder
    counters = folder / "relay.json"
    relay = [
        swiftwater, "relay", "--listen", f"127.0.0.1:{relay_port}", "--to", f"127.0.0.1:{port}", "--seed", seed,
        "--rate", link.rate, "--delay", f"{link.rtt / 2}ms", "--buffer", cell.buffer, "--loss", cell.loss,
        "--up-buffer", "unlimited", "--up-loss", "none", "--json", "--stats", f"{INTERVAL * 1e3:.0f}ms",
    ]
    with (
        running(pair.command(pair.server, swiftwater, values), folder / "server.log", folder) as server,
        running(relay, counters, folder),
    ):
        time.sleep(SETTLING)
        began, waits = time.monotonic(), [0.0, 0.0]
        with running(pair.command(pair.client, swiftwater, values), folder / "client.log", folder) as client:
            while client.poll() is None and time.monotonic() < began + LIMIT:
                waits = [max(old, waited(side.pid)) for old, side in zip(waits, (server, client))]
                time.sleep(0.05)
            status = client.poll()
        elapsed = time.monotonic() - began
        time.sleep(SETTLING)
    if status != 0:
        last = (folder / "client.log").read_text(errors="replace").strip().splitlines()[-2:]
        raise Failed(f"the client {'hangs' if status is None else f'ended with {status}'}: {' / '.join(last)}")
    samples = [json.loads(line) for line in counters.read_text().splitlines() if '"counters"' in line]
    run = measures(samples, link)
    run["waited"] = [wait / elapsed for wait in waits]
    run["counts"] = run["late"][0] <= LATE and run["late"][1] <= LATEST and max(run["waited"]) <= WAITED
    return {"pair": pair.name, "ours": pair.ours, "cell": str(cell), "seed": seed, "kind": "real", **run}


def measures(samples, link):
    """Goodput, queue and drops, from the relay's counters."""
    delivered = [sample["down"]["delivered_bytes"] for sample in samples]
    if not delivered or delivered[-1] < link.bytes:
        raise Failed("less than the file was delivered")
    first = next(at for at, sample in enumerate(samples) if sample["up"]["packets"] > 0)
    # Counters of the moment before it.
    first = max(first - 1, 0)
    last = next(at for at, so_far in enumerate(delivered) if so_far + TAIL >= delivered[-1])
    transfer = samples[first:last + 1]
    times = [sample["seconds"] for sample in transfer]
    gaps = sorted(after - before - INTERVAL for before, after in zip(times, times[1:]))
    down = transfer[-1]["down"]
    return {
        "goodput_mbps": link.bytes * 8e-6 / (times[-1] - times[0]),
        "offered": down["packets"],
        "dropped": down["dropped_queue"],
        "lost": down["dropped_random"],
        "queue_ms": queue_ms(transfer, link),
        "late": [gaps[len(gaps) * 99 // 100], gaps[-1]],
    }


def queue_ms(transfer, link):
    """Mean time on the link beyond propagation, ms: the mean number of packets on it over the rate at which they
    leave it (Little's law)."""
    def inside(sample):
        down = sample["down"]
        return down["packets"] - down["delivered_packets"] - down["dropped_queue"] - down["dropped_random"]

    area = sum(
        (inside(before) + inside(after)) / 2 * (after["seconds"] - before["seconds"])
        for before, after in zip(transfer, transfer[1:])
    )
    left = transfer[-1]["down"]["delivered_packets"] - transfer[0]["down"]["delivered_packets"]
    return area / left * 1e3 - link.rtt / 2


def at_usual_priority():
    """A simulation needs no real time."""
    os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


@functools.cache
def simulated(swiftwater, ours, link, cell, seed):
    """The same transfer in virtual time with our controller."""
    command = [
        swiftwater, "sim", "--flow", f"{ours},bytes={link.bytes}", "--rate", link.rate, "--rtt", f"{link.rtt}ms",
        "--buffer", cell.buffer, "--loss", cell.loss, "--duration", f"{LIMIT}s", "--seed", seed, "--json",
    ]
    ended = subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, check=True, preexec_fn=at_usual_priority,
    )
    result = json.loads(ended.stdout)
    flow, queue = result["flows"][0], result["queue"]
    goodput = flow["goodput_bps"]
    return {
        "ours": ours, "cell": str(cell), "seed": seed, "kind": "simulated", "counts": True,
        "goodput_mbps": goodput / 1e6, "dropped": queue["dropped_packets"],
        # Bytes in the queue over the rate at which they leave it.
        "queue_ms": queue["mean_bytes"] * 8e3 / goodput,
    }
