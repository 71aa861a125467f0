"""Programs that run: their events, and what the kernel says of their processor time and memory."""

import contextlib
import itertools
import json
import os
import queue
import signal
import socket
import subprocess
import threading
import time
from pathlib import Path

# Lines of a failed program's last words that are shown.
LAST_WORDS = 3
# Time from SIGTERM to SIGKILL, seconds.
PATIENCE = 5
TICKS = os.sysconf("SC_CLK_TCK")
COUNTER = itertools.count()


class RunFailed(Exception):
    """A run went wrong; the text says how."""


class Process:
    """A program in a separate process group, pinned to a core if one is given."""

    def __init__(self, name, command, folder, core=None):
        self.name = name
        self.log = Path(folder) / f"{name}-{next(COUNTER)}.log"
        self.events = queue.SimpleQueue()
        with open(self.log, "w", encoding="utf-8") as log:
            self.process = subprocess.Popen(
                [str(word) for word in command],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                process_group=0,
                preexec_fn=None if core is None else lambda: os.sched_setaffinity(0, {core}),
            )
        self.pid = self.process.pid
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.process.stdout:
            with contextlib.suppress(ValueError):
                self.events.put(json.loads(line))
        self.events.put(None)

    def event(self, name, deadline):
        """Waits for this event; other ones may come before."""
        while True:
            try:
                event = self.events.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                raise RunFailed(f"{self.name}: no '{name}' in time") from None
            if event is None:
                status = self.process.wait()
                raise RunFailed(f"{self.name} ended with {status} before '{name}': {self.last_words()}")
            if event.get("event") == name:
                return event

    def last_words(self):
        lines = self.log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        return " / ".join(lines[-LAST_WORDS:]) or "without a word"

    def end_input(self):
        """Tells a client that it has been looked at, and lets it part."""
        with contextlib.suppress(OSError):
            self.process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(PATIENCE)

    def stop(self):
        """Ends the whole group."""
        for sign in (signal.SIGTERM, signal.SIGKILL):
            if self.process.poll() is not None:
                break
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, sign)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(PATIENCE)
        for pipe in (self.process.stdin, self.process.stdout):
            with contextlib.suppress(OSError):
                pipe.close()


class Clock:
    """A process' processor time from now on."""

    def __init__(self, pid):
        self.pid = pid
        self.threads, self.coarse = threads(pid), coarse(pid)

    def seconds(self):
        """Nanoseconds of each thread, added up; where a thread has ended, and taken its count along, what the
        kernel keeps for the whole process, in steps of 10 ms."""
        now = threads(self.pid)
        if not self.threads.keys() <= now.keys():
            return coarse(self.pid) - self.coarse
        return sum(spent - self.threads.get(thread, 0) for thread, spent in now.items()) / 1e9


def threads(pid):
    """Nanoseconds on a processor by thread."""
    spent = {}
    for thread in os.listdir(f"/proc/{pid}/task"):
        with contextlib.suppress(OSError):
            spent[thread] = int(Path(f"/proc/{pid}/task/{thread}/schedstat").read_text().split()[0])
    return spent


def coarse(pid):
    """Seconds on a processor, of ended threads too."""
    # The name, in brackets, may have spaces.
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def memory(pid):
    """Resident memory that no file backs, kB: what a program allocated, without the code it has come past."""
    status = Path(f"/proc/{pid}/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("RssAnon"))


def free_address():
    """An address of this machine with a free UDP port."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}"
