"""One run: a server, a client, and the relay between them where the job wants one."""

import contextlib
import os
import time

from .jobs import outcome
from .processes import Clock, Process, RunFailed, free_address, memory

# A program that has not bound its socket by then doesn't, seconds.
READY = 15
# Until what ends with the handshakes, or waits for a late acknowledgement, is over, seconds.
SETTLING = 1.0


class Runner:
    """Where and how programs are run."""

    def __init__(self, folder, relay, arguments):
        self.folder = folder
        self.relay = relay
        self.mtu = arguments.mtu
        self.timeout = arguments.timeout
        self.quick = arguments.quick
        self.workers = arguments.workers
        cores = sorted(os.sched_getaffinity(0))
        tied = arguments.pin and len(cores) >= 2
        # A server with several workers is not to sit on one core.
        self.server_core = cores[0] if tied and self.workers == 1 else None
        self.client_core = cores[1] if tied else None

    def run(self, job, entry, seed):
        """The job's measures."""
        with contextlib.ExitStack() as stack:
            try:
                return self._run(job, entry, seed, stack)
            except FileNotFoundError as error:
                # What was just running, in /proc, or the program itself.
                raise RunFailed(f"gone: {error.filename}") from error

    def _start(self, stack, name, command, core=None):
        process = Process(name, command, self.folder, core)
        stack.callback(process.stop)
        return process

    def _run(self, job, entry, seed, stack):
        address = free_address()
        settings = ["--mtu", self.mtu, *entry.flags, *job.flags]
        server = self._start(stack, "server", [
            entry.program.path, "server", "--listen", address, *settings,
            "--cert", self.folder / "cert.pem", "--key", self.folder / "key.pem",
            "--workers", self.workers,
        ], self.server_core)
        server.event("ready", time.monotonic() + READY)
        if job.link is not None:
            listen = free_address()
            relay = self._start(stack, "relay", [
                self.relay, "relay", "--listen", listen, "--to", address,
                "--seed", seed, "--json", *job.link,
            ])
            relay.event("listening", time.monotonic() + READY)
            address = listen

        def client(words):
            return self._start(stack, "client", [
                entry.program.path, "client", "--connect", address, "--ca", self.folder / "ca.pem",
                *settings, *words,
            ], self.client_core)

        words, arguments = job.command(self.quick)
        deadline = time.monotonic() + self.timeout
        if job.warm_up:
            earlier = client([*job.words, "--connections", job.warm_up, "--streams", arguments["streams"]])
            earlier.event("done", deadline)
        working = client(words)
        if job.holds:
            done, taken = self._memory(server, working, deadline)
        else:
            done, taken = self._time(server, working, deadline)
        working.end_input()
        return outcome(job, arguments, done, *taken)

    @staticmethod
    def _time(server, client, deadline):
        client.event("start", deadline)
        clocks = [Clock(side.pid) for side in (server, client)]
        done = client.event("done", deadline)
        return done, [clock.seconds() for clock in clocks]

    @staticmethod
    def _memory(server, client, deadline):
        client.event("start", deadline)
        before = [memory(side.pid) for side in (server, client)]
        done = client.event("done", deadline)
        time.sleep(SETTLING)
        after = [memory(side.pid) for side in (server, client)]
        return done, [new - old for new, old in zip(after, before)]
