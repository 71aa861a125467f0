"""The cases of `interop/tunnels` with programs of the web: curl and Chromium through Swiftwater's proxy.

Which version of HTTP they used to the proxy is read from the proxy's access log.
"""

import contextlib
import hashlib
import json
import shutil
import socket
import subprocess
import time
from pathlib import Path

from devtools import QUIET, Browser, key_digest
from tunnel_bench import INTEROP, PATIENCE, PYTHON, READY, SIZE, TOKEN, Failure, Skipped, free_port, program

# libcurl for Python. Only the case that needs it installs it: not every machine has a built package of it.
PYCURL = "pycurl==7.49.0"

# The page has no picture and no style: what it loads is what is compared.
PAGE = """<!doctype html><meta charset="utf-8"><title>tunnel</title><link rel="icon" href="data:,"><pre id="result"></pre>
<script>
(async () => {
  const bytes = await (await fetch("file")).arrayBuffer();
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  return [...digest].map(byte => byte.toString(16).padStart(2, "0")).join("");
})().catch(error => String(error)).then(text => document.getElementById("result").textContent = text);
</script>
"""


@contextlib.contextmanager
def logging_proxy(bench, *users):
    """Swiftwater's proxy: its port, and a function that returns the versions of HTTP of its tunnels so far."""
    port = free_port(socket.SOCK_STREAM)
    words = [bench.swiftwater, "tunnel", "serve", "--listen", f"127.0.0.1:{port}", "--json", *users]
    words += ["--state-dir", str(bench.state), "--target-port", "1-65535", "--allow-target", "127.0.0.0/8"]
    log = bench.log("proxy")

    def tunnels():
        lines = [line for line in log.read_text().splitlines() if line.startswith("{")]
        # A browser has further requests, to hosts of its maker.
        requests = [event for event in map(json.loads, lines) if event.get("method") == "CONNECT"]
        return {event["protocol"] for event in requests if event["status"] == 200}

    with program(words, log, '"address"'):
        yield port, tunnels


def check_log(tunnels, protocol):
    """Fails unless the proxy had tunnels of this `protocol` only. They are logged when they end."""
    until = time.monotonic() + READY
    while not (seen := tunnels()) and time.monotonic() < until:
        time.sleep(0.05)
    if seen != {protocol}:
        raise Failure(f"the proxy had tunnels of {sorted(seen) or 'no version'}")


def version_of(curl):
    return subprocess.run([curl, "--version"], capture_output=True, text=True).stdout.split()[1]


def need_curl():
    if curl := shutil.which("curl"):
        return curl
    raise Skipped("there is no curl")


def curl_through_tls(bench):
    """curl gets a file through the proxy by CONNECT of HTTP/1.1 over TLS; without a token it is refused."""
    curl = need_curl()
    if "HTTPS-proxy" not in subprocess.run([curl, "--version"], capture_output=True, text=True).stdout:
        raise Skipped("this curl has no TLS to proxies")
    return by_program(bench, curl, [], "http/1.1")


def curl_http2(bench):
    """The same by HTTP/2: with curl's program if it can, which takes version 8.1, else with libcurl's binding to Python."""
    curl = shutil.which("curl")
    if curl:
        options = subprocess.run([curl, "--help", "all"], capture_output=True, text=True).stdout
        if "--proxy-http2" in options:
            return by_program(bench, curl, ["--proxy-http2"], "h2")
    install = [str(PYTHON), "-m", "pip", "install", "--quiet", "--only-binary", ":all:", PYCURL]
    if subprocess.run(install, capture_output=True).returncode != 0:
        raise Skipped(f"curl has no --proxy-http2, and {PYCURL} can't be installed")
    origin, received = free_port(socket.SOCK_STREAM), bench.folder / "received"
    with bench.origin(origin), logging_proxy(bench, "--tokens", str(bench.tokens)) as (proxy, tunnels):
        words = [str(PYTHON), str(INTEROP / "peers" / "curl_get.py"), f"https://127.0.0.1:{origin}/file"]
        words += ["--out", str(received), "--proxy", f"127.0.0.1:{proxy}", "--type", "https2", "--ca", bench.cert]
        version = bench.run([*words, "--proxy-header", f"Proxy-Authorization: Bearer {TOKEN}"], "libcurl")
        bench.compare(received)
        check_log(tunnels, "h2")
    return f"{SIZE / 1e6:.0f} MB, {version.strip()}"


def by_program(bench, curl, flags, protocol):
    origin, received = free_port(socket.SOCK_STREAM), bench.folder / "received"
    with bench.origin(origin), logging_proxy(bench, "--tokens", str(bench.tokens)) as (proxy, tunnels):
        words = [curl, "--silent", "--show-error", "--fail", "--cacert", bench.cert, "--proxy-cacert", bench.cert]
        words += ["--proxy", f"https://127.0.0.1:{proxy}", *flags, f"https://127.0.0.1:{origin}/file"]
        credentials = ["--proxy-header", f"Proxy-Authorization: Bearer {TOKEN}"]
        bench.run([*words, *credentials, "--output", str(received)], "curl")
        bench.compare(received)
        check_log(tunnels, protocol)
        refused = subprocess.run(words, capture_output=True, timeout=PATIENCE)
        if refused.returncode == 0 or b"407" not in refused.stderr:
            raise Failure(f"without a token: exit {refused.returncode}, {refused.stderr[-200:]}")
    return f"{SIZE / 1e6:.0f} MB, curl {version_of(curl)}; refused without a token"


def curl_local(bench):
    """curl gets a file through the local SOCKS 5 and HTTP CONNECT of `tunnel connect`, which lead through the proxy."""
    curl, received = need_curl(), bench.folder / "received"
    origin, proxy, socks, http = (free_port(socket.SOCK_STREAM) for _ in range(4))
    words = [bench.swiftwater, "tunnel", "connect", f"127.0.0.1:{proxy}", "--socks", str(socks), "--http", str(http)]
    words += ["--ca", bench.cert, "--token-file", str(bench.tokens)]
    ways = [["--socks5-hostname", f"127.0.0.1:{socks}"], ["--proxy", f"http://127.0.0.1:{http}"]]
    with (
        bench.origin(origin),
        bench.proxy("swiftwater", proxy),
        program(words, bench.log("connect"), "HTTP CONNECT at"),
    ):
        for way in ways:
            get = [curl, "--silent", "--show-error", "--fail", "--cacert", bench.cert, *way]
            # The name goes to the proxy, which resolves it.
            bench.run([*get, f"https://localhost:{origin}/file", "--output", str(received)], "curl")
            bench.compare(received)
    return f"{len(ways)} x {SIZE / 1e6:.0f} MB, curl {version_of(curl)}"


def chromium(bench, scheme, protocol):
    """Chromium loads a page through the proxy, and the page a file, whose digest it shows."""
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if not browser:
        raise Skipped("there is no Chromium")
    (bench.site / "digest.html").write_text(PAGE)
    origin = free_port(socket.SOCK_STREAM)
    errors = bench.log("chromium")
    # It sends no bearer token, so the proxy is for anyone.
    with bench.origin(origin), logging_proxy(bench, "--proxy-for-anyone") as (proxy, tunnels):
        flags = [
            *QUIET,
            f"--user-data-dir={bench.folder / f'chromium-{scheme}'}",
            f"--proxy-server={scheme}://localhost:{proxy}",
            # Else it goes to addresses of this machine directly.
            "--proxy-bypass-list=<-loopback>",
            f"--ignore-certificate-errors-spki-list={key_digest(Path(bench.cert))}",
        ]
        with Browser(browser, flags, errors) as page:
            page.open(f"https://localhost:{origin}/digest.html")
            seen = page.wait_for('document.getElementById("result")?.textContent', PATIENCE if scheme == "https" else 5)
        wanted = hashlib.sha256((bench.site / "file").read_bytes()).hexdigest()
        version = subprocess.run([browser, "--version"], capture_output=True, text=True).stdout.split()
        version = next((word for word in version if word[0].isdigit()), "?")
        if scheme == "quic" and not seen and not tunnels():
            raise Skipped(f"Chromium {version} has no proxies over QUIC: nothing came to the proxy")
        if seen != wanted:
            raise Failure(f"the page says {seen or 'nothing'}: {errors.read_text()[-200:]}")
        check_log(tunnels, protocol)
    return f"{SIZE / 1e6:.0f} MB, Chromium {version}"


CASES = [
    ("swiftwater", "curl", "CONNECT, HTTP/1.1", curl_through_tls),
    ("swiftwater", "curl", "CONNECT, HTTP/2", curl_http2),
    ("swiftwater", "curl", "SOCKS 5, HTTP CONNECT", curl_local),
    ("swiftwater", "chromium", "CONNECT, HTTP/2", lambda bench: chromium(bench, "https", "h2")),
    ("swiftwater", "chromium", "CONNECT, HTTP/3", lambda bench: chromium(bench, "quic", "h3")),
]
