"""A server and a client that measure themselves, and what the kernel says of their processor time."""

import json
import os
import signal
import subprocess

from .packets import ask_versions
from .programs import READY


class Process:
    """A program on one core, with the processor time it took in all."""

    def __init__(self, command, core, output):
        def tie():
            if core is not None:
                os.sched_setaffinity(0, {core})

        self.command = command
        self.output = open(output, "w+", encoding="utf-8")
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=self.output,
            stderr=subprocess.STDOUT,
            preexec_fn=tie,
        )
        self.status = None

    def wait(self):
        """Waits for the end and returns the processor time in seconds."""
        _, self.status, usage = os.wait4(self.process.pid, 0)
        self.process.returncode = os.waitstatus_to_exitcode(self.status)
        return usage.ru_utime + usage.ru_stime

    def stop(self):
        if self.status is None:
            self.process.send_signal(signal.SIGKILL)
            return self.wait()
        return 0.0

    def text(self):
        self.output.seek(0)
        return self.output.read()


def measure(server, client, address, pin, folder):
    """One run of a server and a client, each a name and a command; what the client reported, and the
    processor time of both from start to end, seconds."""
    cores = sorted(os.sched_getaffinity(0))
    tied = pin and len(cores) >= 2
    serving = Process(server[1], cores[0] if tied else None, f"{folder}/server.log")
    fetching = None
    try:
        if ask_versions(address, READY) is None:
            raise SystemExit(f"perf-compare: {server[0]} doesn't start:\n{serving.text()}")
        fetching = Process(client[1], cores[1] if tied else None, f"{folder}/client.log")
        client_cpu = fetching.wait()
        if fetching.process.returncode != 0:
            raise SystemExit(f"perf-compare: {client[0]} failed:\n{fetching.text()}")
        server_cpu = serving.stop()
    finally:
        for process in (serving, fetching):
            if process is not None:
                process.stop()
    report = json.loads(fetching.text().strip().splitlines()[-1])
    return report, server_cpu, client_cpu
