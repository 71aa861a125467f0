"""The generators of requests: h2load for HTTP/1.1 and HTTP/2, `http3-load` of the peers' workspace for HTTP/3."""

import json
import os
import re
import subprocess

from .jobs import H1, H3, PLAIN

# Both ends of TLS prefer it; other suites would make another comparison.
SUITE = "TLS_AES_128_GCM_SHA256"


class RunFailed(Exception):
    """A run went wrong; the text says how."""


def run(job, requests, listing, port, context):
    """Sends so many requests and checks that all were answered with the right amount of content. Returns seconds,
    processor seconds of the generator, and the latencies' median and 99th percentile in microseconds."""
    expected = listing.bytes(requests, job.connections)
    generate = over_http3 if job.protocol == H3 else over_tcp
    before = os.times()
    result = generate(job, requests, expected, port, listing, context)
    after = os.times()
    result["load_cpu"] = sum(after[2:4]) - sum(before[2:4])
    result["bytes"] = expected
    return result


def ended(command, context):
    """Standard output of a generator that succeeded."""
    try:
        process = subprocess.run(
            [str(word) for word in command], capture_output=True, text=True, check=False, timeout=context.timeout,
            stdin=subprocess.DEVNULL,
            preexec_fn=None if context.core is None else lambda: os.sched_setaffinity(0, {context.core}),
        )
    except subprocess.TimeoutExpired:
        raise RunFailed("the generator didn't end in time") from None
    if process.returncode != 0:
        raise RunFailed(f"the generator failed: {process.stderr.strip().splitlines()[-1:]}")
    return process.stdout


def over_tcp(job, requests, expected, port, listing, context):
    scheme = "http" if job.protocol == PLAIN else "https"
    uris, log = context.folder / "uris", context.folder / "latencies"
    listing.write(uris, f"{scheme}://localhost:{port}")
    log.unlink(missing_ok=True)
    output = ended([
        context.h2load, "-n", requests, "-c", job.connections, "-m", job.in_flight, "-t", 1, "-i", uris,
        "--log-file", log, "--tls13-ciphers", SUITE, *(["--h1"] if job.protocol in (H1, PLAIN) else []),
    ], context)
    failures = re.search(r"status codes: (\d+) 2xx", output)
    if failures is None or int(failures[1]) != requests:
        raise RunFailed(f"not every request was answered with 2xx: {failures[0] if failures else output[-200:]}")
    received = re.search(r"\((\d+)\) data", output)
    if received is None or int(received[1]) != expected:
        raise RunFailed(f"received {received[1] if received else 'no'} bytes of content, expected were {expected}")
    took = re.search(r"finished in ([\d.]+)(us|ms|s)", output)
    if took is None:
        raise RunFailed("h2load doesn't say how long it took")
    seconds = float(took[1]) * {"us": 1e-6, "ms": 1e-3, "s": 1}[took[2]]
    latencies = sorted(int(line.split("\t")[2]) for line in log.read_text().splitlines())
    p50, p99 = (latencies[len(latencies) * share // 100] for share in (50, 99))
    return {"seconds": seconds, "p50": p50, "p99": p99}


def over_http3(job, requests, expected, port, listing, context):
    paths = context.folder / "paths"
    listing.write(paths, "")
    output = ended([
        context.http3_load, "--connect", f"127.0.0.1:{port}", "--ca", context.identity / "ca.pem", "--paths", paths,
        "--requests", requests, "--bytes", expected, "--connections", job.connections, "--in-flight", job.in_flight,
    ], context)
    done = json.loads(output.strip().splitlines()[-1])
    return {"seconds": done["seconds"], "p50": done["p50_us"], "p99": done["p99_us"]}
