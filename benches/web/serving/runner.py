"""One run: a server, the upstream behind it where the job wants one, and a generator."""

import contextlib
import os
import signal
import socket
import subprocess
import time
from dataclasses import dataclass, replace
from pathlib import Path

from comparison.processes import Clock

from . import load
from .jobs import PLAIN
from .load import Load, RunFailed
from .servers import Place

# Until a server accepts connections, and from SIGTERM to SIGKILL, seconds.
READY = 15
PATIENCE = 5
# Requests of each connection before everything else.
WARM_UP = 4


@dataclass(frozen=True)
class Context:
    """What all runs have in common."""

    folder: Path
    identity: Path
    root: Path
    listings: dict
    h2load: Path
    http3_load: Path
    # The generator's core and the server's; `None`: any.
    core: int | None
    server_core: int | None
    timeout: float
    quick: bool


class Running:
    """A server that runs, with all of its processes."""

    def __init__(self, server, place, core):
        self.port, self.plain_port = place.port, place.plain_port
        place.folder.mkdir(exist_ok=True)
        command = server.command(server.path, place)
        with open(place.folder / "log", "w", encoding="utf-8") as log:
            self.process = subprocess.Popen(
                [str(word) for word in command], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=log,
                env=os.environ | server.environment | {"HOME": str(place.folder)}, process_group=0,
                preexec_fn=None if core is None else lambda: os.sched_setaffinity(0, {core}),
            )
        self.log = place.folder / "log"

    def wait(self):
        deadline = time.monotonic() + READY
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                last = self.log.read_text(errors="replace").strip().splitlines()[-2:]
                raise RunFailed(f"the server ended with {self.process.returncode}: {' / '.join(last)}")
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1):
                return
            time.sleep(0.05)
        raise RunFailed("the server doesn't accept connections")

    def clocks(self):
        return [Clock(pid) for pid in family(self.process.pid)]

    def stop(self):
        for sign in (signal.SIGTERM, signal.SIGKILL):
            if self.process.poll() is not None:
                break
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, sign)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(PATIENCE)


def family(pid):
    """A process and all of its descendants."""
    found = [pid]
    for thread in Path(f"/proc/{pid}/task").iterdir():
        for child in (thread / "children").read_text().split():
            found += family(int(child))
    return found


def free_port():
    """One that is free for TCP and UDP at 127.0.0.1."""
    while True:
        with socket.socket() as tcp, socket.socket(type=socket.SOCK_DGRAM) as udp:
            tcp.bind(("127.0.0.1", 0))
            port = tcp.getsockname()[1]
            with contextlib.suppress(OSError):
                udp.bind(("127.0.0.1", port))
                return port


def run(job, server, upstream, context):
    """The job's measures."""
    with contextlib.ExitStack() as stack:
        behind = None
        if job.proxied:
            behind = start(stack, upstream, context, "upstream", context.core).plain_port
        serving = start(stack, server, context, "server", context.server_core, behind)
        port = serving.plain_port if job.protocol == PLAIN else serving.port
        listing = context.listings[job.listing]
        requests = job.quick if context.quick else job.requests
        measured = Load(job.protocol, listing, job.connections, job.in_flight, requests)
        # Fills caches and pools: one connection of each share requests the whole share, so that all files are.
        load.run(replace(measured, requests=WARM_UP * job.connections), port, context)
        whole = replace(measured, connections=measured.shares)
        load.run(replace(whole, requests=max(len(listing), whole.connections)), port, context)
        clocks = serving.clocks()
        result = load.run(measured, port, context)
        spent = sum(clock.seconds() for clock in clocks)
    gigabytes = result["bytes"] / 1e9
    return {
        "rate": requests / result["seconds"],
        "cpu": spent / requests * 1e6,
        "load_cpu": result["load_cpu"] / requests * 1e6,
        "p50": result["p50"],
        "p99": result["p99"],
        "gbps": result["bytes"] * 8e-9 / result["seconds"],
        "cpu_per_gb": spent / gigabytes,
        "load_cpu_per_gb": result["load_cpu"] / gigabytes,
    }


def start(stack, server, context, name, core, upstream=None):
    place = Place(
        folder=context.folder / name, identity=context.identity, root=context.root, port=free_port(),
        plain_port=free_port(), upstream=upstream,
    )
    running = Running(server, place, core)
    stack.callback(running.stop)
    running.wait()
    return running
