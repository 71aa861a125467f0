"""What the cases of `interop/tunnels` share: programs, ports, and the files and certificates of a run."""

import contextlib
import hashlib
import os
import signal
import socket
import subprocess
import time
from pathlib import Path

INTEROP = Path(__file__).resolve().parent
REPOSITORY = INTEROP.parent
PYTHON = INTEROP / ".venv" / "bin" / "python"
TOKEN = "a-token-of-the-interop-run"
# How long a program may take to be ready, and a case to end, seconds.
READY, PATIENCE = 15, 60
# Size of the file that is downloaded, bytes.
SIZE = 3_000_000


class Failure(Exception):
    """A case failed."""


class Skipped(Exception):
    """A case can't run here."""


def free_port(kind):
    with socket.socket(socket.AF_INET, kind) as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextlib.contextmanager
def program(words, log, ready):
    """A program that runs until the block ends; the block begins when its output has the text `ready`."""
    with open(log, "w") as output:
        process = subprocess.Popen(words, stdout=output, stderr=subprocess.STDOUT)
        try:
            until = time.monotonic() + READY
            while ready not in Path(log).read_text():
                if process.poll() is not None or time.monotonic() > until:
                    raise Failure(f"{words[0]} is not ready: {Path(log).read_text()[-300:]}")
                time.sleep(0.02)
            yield
        finally:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


class Bench:
    """The programs and files of all cases."""

    def __init__(self, swiftwater, go, folder):
        self.swiftwater, self.go, self.folder = str(swiftwater), str(go), folder
        self.state = folder / "state"
        self.tokens = folder / "tokens"
        self.tokens.write_text(f"interop {TOKEN}\n")
        self.site = folder / "site"
        self.site.mkdir()
        (self.site / "file").write_bytes(os.urandom(SIZE))
        self.runs = 0

    @property
    def cert(self):
        return str(self.state / "dev-cert.pem")

    def log(self, name):
        self.runs += 1
        return self.folder / f"{self.runs:02}-{name}.log"

    def origin(self, port):
        words = [self.swiftwater, "serve", str(self.site), "--hq", "--tecc", "--listen", f"127.0.0.1:{port}"]
        return program([*words, "--state-dir", str(self.state)], self.log("origin"), "HTTP/3")

    def proxy(self, kind, port):
        listen = f"127.0.0.1:{port}"
        if kind == "swiftwater":
            words = [self.swiftwater, "tunnel", "serve", "--listen", listen, "--tokens", str(self.tokens)]
            words += ["--state-dir", str(self.state), "--target-port", "1-65535"]
            return program([*words, "--allow-target", "127.0.0.0/8"], self.log("proxy"), "HTTP/3")
        key = str(self.state / "dev-identity.pem")
        identity = ["--listen", listen, "--cert", self.cert, "--key", key]
        if kind == "aioquic":
            words = [str(PYTHON), "-u", str(INTEROP / "peers" / "aioquic_masque.py"), "proxy"]
        else:
            words = [self.go, "masque-proxy"]
        return program([*words, *identity], self.log("proxy"), "listening")

    def connect(self, port, local, target):
        words = [self.swiftwater, "tunnel", "connect", f"127.0.0.1:{port}", "-L", f"{local}:{target}"]
        words += ["--ca", self.cert, "--token-file", str(self.tokens)]
        return program(words, self.log("connect"), "leads to")

    def run(self, words, name):
        log = self.log(name)
        with open(log, "w") as output:
            done = subprocess.run(words, stdout=output, stderr=subprocess.STDOUT, timeout=PATIENCE)
        text = log.read_text()
        if done.returncode != 0:
            raise Failure(f"{name}: exit {done.returncode}, {text[-300:]}")
        return text

    def compare(self, received):
        same = hashlib.sha256(received.read_bytes()).digest()
        if same != hashlib.sha256((self.site / "file").read_bytes()).digest():
            raise Failure("the content differs")
        received.unlink()
