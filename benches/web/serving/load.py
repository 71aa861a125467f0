"""The generators of requests: h2load for HTTP/1.1 and HTTP/2, `http3-load` of the peers' workspace for HTTP/3."""

import json
import os
import re
import subprocess
import time
from dataclasses import dataclass

from .content import Listing
from .jobs import H1, H3, PLAIN

# Processes of h2load at most. Each has a place in the listing at which its connections start, so that they request
# different files.
PROCESSES = 8
# Both ends of TLS prefer it; other suites would make another comparison.
SUITE = "TLS_AES_128_GCM_SHA256"


class RunFailed(Exception):
    """A run went wrong; the text says how."""


@dataclass(frozen=True)
class Load:
    """Requests over one protocol."""

    protocol: str
    listing: Listing
    connections: int
    # Requests at any time on each connection.
    in_flight: int
    # In total, the same number on each connection.
    requests: int

    @property
    def shares(self):
        """Places in the listing at which connections start: h2load has one for each of its processes."""
        return self.connections if self.protocol == H3 else min(self.connections, PROCESSES)

    def lists(self):
        return [self.listing.from_share(number, self.shares) for number in range(self.shares)]

    def bytes(self):
        """Content of all answers."""
        together = self.connections // self.shares
        return sum(together * part.bytes(self.requests // self.connections) for part in self.lists())


def run(load, port, context):
    """Sends the requests and checks that all were answered with the right amount of content. Returns seconds,
    processor seconds of the generator, and the latencies' median and 99th percentile in microseconds."""
    before = os.times()
    result = (over_http3 if load.protocol == H3 else over_tcp)(load, port, context)
    after = os.times()
    result["load_cpu"] = sum(after[2:4]) - sum(before[2:4])
    result["bytes"] = load.bytes()
    return result


def started(command, context):
    return subprocess.Popen(
        [str(word) for word in command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True, preexec_fn=None if context.core is None else lambda: os.sched_setaffinity(0, {context.core}),
    )


def outputs(processes, context):
    """Standard output of generators that succeed."""
    deadline = time.monotonic() + context.timeout
    try:
        texts = []
        for process in processes:
            out, errors = process.communicate(timeout=max(0.1, deadline - time.monotonic()))
            if process.returncode != 0:
                raise RunFailed(f"the generator failed: {' / '.join(errors.strip().splitlines()[-1:])}")
            texts.append(out)
        return texts
    except subprocess.TimeoutExpired:
        raise RunFailed("the generator didn't end in time") from None
    finally:
        for process in processes:
            if process.poll() is None:
                process.kill()
                process.communicate()


def over_tcp(load, port, context):
    scheme = "http" if load.protocol == PLAIN else "https"
    flags = ["--h1"] if load.protocol in (H1, PLAIN) else []
    share, connections = load.requests // load.shares, load.connections // load.shares
    lists = load.lists()
    logs = [context.folder / f"latencies-{number}" for number in range(load.shares)]
    commands = []
    for number, part in enumerate(lists):
        uris = context.folder / f"uris-{number}"
        part.write(uris, f"{scheme}://localhost:{port}")
        logs[number].unlink(missing_ok=True)
        commands.append([
            context.h2load, "-n", share, "-c", connections, "-m", load.in_flight, "-t", 1, "-i", uris,
            "--log-file", logs[number], "--tls13-ciphers", SUITE, *flags,
        ])
    texts = outputs([started(command, context) for command in commands], context)
    each = share // connections
    seconds = max(checked(text, share, connections * part.bytes(each)) for text, part in zip(texts, lists))
    latencies = sorted(int(line.split("\t")[2]) for log in logs for line in log.read_text().splitlines())
    p50, p99 = (latencies[len(latencies) * percent // 100] for percent in (50, 99))
    return {"seconds": seconds, "p50": p50, "p99": p99}


def checked(text, requests, expected):
    """How long h2load took, seconds; fails unless all answers were right."""
    good = re.search(r"status codes: (\d+) 2xx", text)
    if good is None or int(good[1]) != requests:
        raise RunFailed(f"not every request was answered with 2xx: {good[0] if good else text[-200:]}")
    received = re.search(r"\((\d+)\) data", text)
    if received is None or int(received[1]) != expected:
        raise RunFailed(f"received {received[1] if received else 'no'} bytes of content, expected were {expected}")
    took = re.search(r"finished in ([\d.]+)(us|ms|s)", text)
    if took is None:
        raise RunFailed("h2load doesn't say how long it took")
    return float(took[1]) * {"us": 1e-6, "ms": 1e-3, "s": 1}[took[2]]


def over_http3(load, port, context):
    paths = context.folder / "paths"
    load.listing.write(paths, "")
    [text] = outputs([started([
        context.http3_load, "--connect", f"127.0.0.1:{port}", "--ca", context.identity / "ca.pem", "--paths", paths,
        "--requests", load.requests, "--bytes", load.bytes(), "--connections", load.connections,
        "--in-flight", load.in_flight,
    ], context)], context)
    done = json.loads(text.strip().splitlines()[-1])
    return {"seconds": done["seconds"], "p50": done["p50_us"], "p99": done["p99_us"]}
