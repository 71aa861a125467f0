"""A well-behaved client: small files over HTTP/2 and HTTP/3, each on a new connection, again and again.

Runs as a process of its own, so that the attack's Python does not slow it down:
`python -m hostile.honest ADDRESS PORT SOURCE PATH NO_ANSWER PROTOCOL...` prints `PROTOCOL STARTED SECONDS`
for each request, where SECONDS is - if there was no whole answer."""

import contextlib
import subprocess
import sys
import threading
import time
from pathlib import Path

from . import h2, quic
from .process import Failed

# Between the end of a request and the next one, seconds.
PAUSE = 0.15


def fetch_h2(address, path, source, patience):
    """The status of a GET over HTTP/2, once its content is complete; None if it never is."""
    end = time.monotonic() + patience
    with contextlib.suppress(OSError):
        connection = h2.Connection(address, timeout=patience, source=source)
        with contextlib.closing(connection):
            stream, status = connection.get(path), None
            for kind, flags, of, payload in connection.frames(end):
                if kind == h2.SETTINGS and not flags & h2.ACK:
                    connection.send(h2.frame(h2.SETTINGS, h2.ACK))
                if of != stream:
                    continue
                if kind == h2.HEADERS:
                    status = status or h2.status(payload)
                if kind == h2.RST_STREAM:
                    return None
                if flags & h2.END_STREAM:
                    return status
    return None


def fetch_h3(address, path, source, patience):
    """The status of a GET over HTTP/3, once its content is complete; None if it never is."""
    end = time.monotonic() + patience
    client = quic.Client(address, source=source)
    try:
        if not client.connect(patience):
            return None
        answer = client.get(path, max(0, end - time.monotonic()))
        return answer and answer[0]
    finally:
        client.close()


FETCH = {"h2": fetch_h2, "h3": fetch_h3}


def main():
    host, port, source, path, patience, *protocols = sys.argv[1:]
    while True:
        for protocol in protocols:
            started = time.monotonic()
            status = FETCH[protocol]((host, int(port)), path.encode(), source, float(patience))
            took = time.monotonic() - started
            print(protocol, started, took if status == 200 else "-", flush=True)
            time.sleep(PAUSE)


class Honest:
    """The honest client's process, and what it has seen. Times are of the monotonic clock, which all
    processes share."""

    def __init__(self, address, path, patience, protocols=("h2", "h3"), source="127.0.0.1"):
        command = [sys.executable, "-m", "hostile.honest", address[0], str(address[1]), source, path, str(patience)]
        self.protocols = protocols
        self.seen = []
        self.process = subprocess.Popen(
            [*command, *protocols],
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).resolve().parent.parent,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        for line in self.process.stdout:
            protocol, started, took = line.split()
            self.seen.append((protocol, float(started), None if took == "-" else float(took)))

    def await_round(self, count=1, patience=20):
        """Waits until each protocol was used `count` times more."""
        want = {protocol: self.count(protocol) + count for protocol in self.protocols}
        end = time.monotonic() + patience
        while any(self.count(protocol) < wanted for protocol, wanted in want.items()):
            if time.monotonic() > end:
                raise Failed("the honest client does not run")
            time.sleep(0.02)

    def await_since(self, moment, patience=20):
        """Waits until a request that began after a moment has ended, for each protocol."""
        end = time.monotonic() + patience
        while any(took is None for took in self.worst(moment, end).values()):
            if time.monotonic() > end:
                raise Failed("the honest client does not run")
            time.sleep(0.02)

    def count(self, protocol):
        return sum(1 for each in self.seen if each[0] == protocol)

    def worst(self, begin, end):
        """The longest wait of each protocol for a request that began in that time, seconds: infinite if it was
        never answered, None if there was no request."""
        worst = {}
        for protocol in self.protocols:
            took = [took for each, at, took in self.seen if each == protocol and begin <= at < end]
            worst[protocol] = max((float("inf") if t is None else t for t in took), default=None)
        return worst

    def stop(self):
        self.process.kill()
        self.process.wait()
        self._reader.join(2)


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt, BrokenPipeError):
        main()
