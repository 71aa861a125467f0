"""Programs under attack: their start, their end, and what the system says of them meanwhile."""

import contextlib
import os
import resource
import signal
import socket
import subprocess
import threading
import time
from dataclasses import dataclass, field

TICKS = os.sysconf("SC_CLK_TCK")
# How often memory and descriptors are read, seconds.
PERIOD = 0.05
# A server must answer this soon after its start, seconds.
READY = 20


class Failed(Exception):
    """A program did not start, or an attack could not be carried out."""


def free_port():
    """A port that is free for UDP and TCP on every loopback address."""
    for _ in range(100):
        with socket.socket() as tcp, socket.socket(type=socket.SOCK_DGRAM) as udp:
            tcp.bind(("127.0.0.1", 0))
            port = tcp.getsockname()[1]
            with contextlib.suppress(OSError):
                udp.bind(("127.0.0.1", port))
                return port
    raise Failed("no free port")


def resident(pid):
    """Bytes in memory, 0 if there is no such process."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/status") as status:
        for line in status:
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1024
    return 0


def descriptors(pid):
    """Open descriptors, 0 if there is no such process."""
    with contextlib.suppress(OSError):
        return len(os.listdir(f"/proc/{pid}/fd"))
    return 0


def processor(pid):
    """Processor time in seconds, 0 if there is no such process."""
    with contextlib.suppress(OSError, IndexError), open(f"/proc/{pid}/stat") as stat:
        fields = stat.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS
    return 0.0


@dataclass
class Meter:
    """Watches a process: the most memory and descriptors that it had."""

    pid: int
    peak_memory: int = 0
    peak_descriptors: int = 0
    _stop: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self):
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def look(self):
        self.peak_memory = max(self.peak_memory, resident(self.pid))
        self.peak_descriptors = max(self.peak_descriptors, descriptors(self.pid))

    def _watch(self):
        while not self._stop.wait(PERIOD):
            self.look()

    def stop(self):
        self._stop.set()
        self._thread.join()
        self.look()


class Program:
    """A program that runs, with its output in a file."""

    def __init__(self, command, log, environment=None, nofile=None, stdout=None):
        self.log = log
        limits = (lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (nofile, nofile))) if nofile else None
        with open(log, "wb") as errors:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=stdout if stdout is not None else errors,
                stderr=errors,
                env={**os.environ, **(environment or {})},
                preexec_fn=limits,
                start_new_session=True,
            )

    @property
    def pid(self):
        return self.process.pid

    def is_alive(self):
        return self.process.poll() is None

    def errors(self):
        return self.log.read_text(errors="replace")

    def terminate(self, patience):
        """SIGTERM; the seconds that it took, or None if it had to be killed."""
        started = time.monotonic()
        if self.is_alive():
            self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(patience)
            return time.monotonic() - started
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            return None


def await_tcp(program, address):
    """Waits until a server listens."""
    end = time.monotonic() + READY
    while time.monotonic() < end:
        if not program.is_alive():
            raise Failed(f"the server ended at once: {program.errors()[-400:]}")
        with contextlib.suppress(OSError), socket.create_connection(address, 1):
            return
        time.sleep(0.02)
    raise Failed("the server does not listen")
