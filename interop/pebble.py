"""A local certificate authority (Pebble), and programs that run beside it, for the scripts in this directory."""

import contextlib
import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

INTEROP = Path(__file__).resolve().parent
REPOSITORY = INTEROP.parent
PYTHON = INTEROP / ".venv" / "bin" / "python"
MODULE = "github.com/letsencrypt/pebble/v2"
VERSION = "v2.10.3"
# How long a program may take to be ready, and a certificate to come, seconds.
READY, PATIENCE = 15, 60


class Failure(Exception):
    """A case failed."""


def check(condition, text):
    if not condition:
        raise Failure(text)


def free_port():
    """A port that is free for TCP and UDP."""
    while True:
        with socket.socket() as tcp, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
            tcp.bind(("127.0.0.1", 0))
            port = tcp.getsockname()[1]
            with contextlib.suppress(OSError):
                udp.bind(("127.0.0.1", port))
                return port


class Program:
    """A program that runs, and what it has printed so far."""

    def __init__(self, words, log, env=None, pass_fds=()):
        self.log = log
        self.output = open(log, "w")
        env = {**os.environ, **(env or {})}
        self.process = subprocess.Popen(
            words, stdout=self.output, stderr=subprocess.STDOUT, env=env, pass_fds=pass_fds)

    def text(self):
        return Path(self.log).read_text()

    def wait_for(self, text, patience=READY, times=1):
        until = time.monotonic() + patience
        while self.text().count(text) < times:
            if self.process.poll() is not None or time.monotonic() > until:
                raise Failure(f"no `{text}` in: {self.text()[-600:]}")
            time.sleep(0.05)

    def stop(self, by=signal.SIGTERM):
        self.process.send_signal(by)
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.output.close()


class Authority:
    """Pebble, with the DNS server that leads all names to this machine."""

    def __init__(self, directory, binaries, tls_port, http_port, validity=None):
        self.directory, self.binaries = directory, binaries
        self.port, self.management, self.dns = free_port(), free_port(), free_port()
        key, self.ca = directory / "authority-key.pem", directory / "authority.pem"
        if not self.ca.exists():
            subprocess.run(
                ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                 "-days", "2", "-subj", "/CN=authority", "-addext", "subjectAltName=DNS:localhost",
                 "-addext", "basicConstraints=critical,CA:FALSE", "-keyout", key, "-out", self.ca],
                check=True, capture_output=True)
        profiles = {"default": {"description": "of the tests", "validityPeriod": validity or 7776000}}
        config = {"pebble": {
            "listenAddress": f"127.0.0.1:{self.port}", "managementListenAddress": f"127.0.0.1:{self.management}",
            "certificate": str(self.ca), "privateKey": str(key), "httpPort": http_port, "tlsPort": tls_port,
            "externalAccountBindingRequired": False, "retryAfter": {"authz": 1, "order": 1}, "profiles": profiles}}
        self.config = directory / "pebble.json"
        self.config.write_text(json.dumps(config))
        self.url = f"https://localhost:{self.port}/dir"

    def __enter__(self):
        log = self.directory / "dns.log"
        self.resolver = Program(
            [self.binaries / "pebble-challtestsrv", "-defaultIPv4", "127.0.0.1", "-defaultIPv6", "",
             "-dnsserver", f"127.0.0.1:{self.dns}", "-http01", "", "-https01", "", "-tlsalpn01", "", "-doh", "",
             "-management", f"127.0.0.1:{free_port()}"], log)
        self.pebble = Program(
            [self.binaries / "pebble", "-config", self.config, "-dnsserver", f"127.0.0.1:{self.dns}"],
            self.directory / "pebble.log", {"PEBBLE_VA_NOSLEEP": "1", "PEBBLE_WFE_NONCEREJECT": "10"})
        self.pebble.wait_for("ACME directory available")
        return self

    def __exit__(self, *_):
        self.pebble.stop()
        self.resolver.stop()

    def roots(self):
        """The file of the root that certificates lead to."""
        trust = ssl.create_default_context(cafile=self.ca)
        url = f"https://localhost:{self.management}/roots/0"
        path = self.directory / "roots.pem"
        path.write_bytes(urllib.request.urlopen(url, context=trust, timeout=10).read())
        return path


def build(swiftwater):
    """The program to test and the directory of Pebble, built if they are missing."""
    if swiftwater is None:
        subprocess.run(["cargo", "build", "--release", "--locked", "--quiet"], cwd=REPOSITORY, check=True)
        swiftwater = REPOSITORY / "target" / "release" / "swiftwater"
    binaries = REPOSITORY / "target" / "interop" / f"pebble-{VERSION}"
    if not (binaries / "pebble-challtestsrv").exists():
        programs = [f"{MODULE}/cmd/{name}@{VERSION}" for name in ["pebble", "pebble-challtestsrv"]]
        env = {**os.environ, "GOBIN": str(binaries)}
        subprocess.run(["go", "install", *programs], check=True, env=env, cwd=tempfile.gettempdir())
    return Path(swiftwater).resolve(), binaries


def install_packages():
    """The Python packages of these scripts, in a virtual environment."""
    if not PYTHON.exists():
        subprocess.run([sys.executable, "-m", "venv", PYTHON.parent.parent], check=True)
    requirements = INTEROP / "requirements.txt"
    subprocess.run([PYTHON, "-m", "pip", "install", "--quiet", "-r", requirements], check=True)
