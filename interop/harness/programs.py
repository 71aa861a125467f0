"""The programs of each stack, and how processes are started, watched and ended."""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

from .packets import ask_versions

INTEROP = Path(__file__).resolve().parent.parent
REPOSITORY = INTEROP.parent
# A server must answer this soon after its start, seconds.
READY = 15
# Swiftwater's client gives up a handshake after this, seconds; far more than any case needs.
CONNECT = 18


class Failure(Exception):
    """A case went wrong; the text says how."""


class Unsupported(Exception):
    """A stack can't do what a case needs; the text says what."""


@dataclass
class Server:
    """What a server is to do."""

    directory: Path
    identity: object
    retry: bool = False
    key_update: bool = False
    # Packets after which swiftwater updates its keys.
    key_update_every: int | None = None
    suite: str = "any"
    version: int | None = None
    # How swiftwater repairs losses, and its congestion controller.
    recovery: str | None = None
    controller: str | None = None
    # Where swiftwater writes qlog.
    qlog: Path | None = None


@dataclass
class Client:
    """What a client is to do."""

    urls: list[str]
    output: Path
    ca: Path
    key_update: bool = False
    key_update_every: int | None = None
    suite: str = "any"
    version: int | None = None


def foreign_options(task):
    if task.key_update_every is not None:
        raise Unsupported("only swiftwater updates its keys by packets")
    options = ["--suite", task.suite]
    if task.key_update:
        options.append("--key-update")
    if task.version is not None:
        options += ["--quic-version", f"{task.version:x}"]
    return options


class Swiftwater:
    name = "swiftwater"

    def __init__(self, program):
        self.program = str(program)

    @staticmethod
    def options(task):
        if task.key_update:
            raise Unsupported("swiftwater updates its keys by packets, not again and again")
        if task.version is not None:
            raise Unsupported("swiftwater has no flag for versions")
        options = [] if task.suite == "any" else ["--suite", task.suite]
        if task.key_update_every is not None:
            options += ["--key-update-every", str(task.key_update_every)]
        return options

    def server(self, task, address):
        identity = ["--cert", str(task.identity.certificate), "--key", str(task.identity.key)]
        retry = ["--retry"] if task.retry else []
        repair = ["--recovery", task.recovery] if task.recovery is not None else []
        control = ["--cc", task.controller] if task.controller is not None else []
        log = ["--qlog", str(task.qlog)] if task.qlog is not None else []
        command = [self.program, "serve", str(task.directory), "--listen", address, "-v"]
        return command + identity + retry + repair + control + log + self.options(task)

    def client(self, task):
        trust = ["--ca", str(task.ca), "--connect-timeout", f"{CONNECT}s"]
        place = ["-o", str(task.output), "-j", "100", "--json", "-v"]
        return [self.program, "get", *task.urls, *trust, *place, *self.options(task)]

    def relay(self, listen, to, link):
        return [self.program, "relay", "--listen", listen, "--to", to, "--json", *link]


class Foreign:
    """A stack whose server and client take the options of interop/peers."""

    def __init__(self, name, server, client):
        self.name = name
        self.server_command = server
        self.client_command = client

    def server(self, task, address):
        if any(it is not None for it in (task.recovery, task.controller, task.qlog)):
            raise Unsupported("only swiftwater's server takes a recovery policy")
        identity = ["--cert", str(task.identity.certificate), "--key", str(task.identity.key)]
        retry = ["--retry"] if task.retry else []
        place = ["--dir", str(task.directory), "--listen", address]
        return [*self.server_command, *place, *identity, *retry, *foreign_options(task)]

    def client(self, task):
        place = ["--out", str(task.output), "--ca", str(task.ca)]
        return [*self.client_command, *place, *foreign_options(task), *task.urls]


def aioquic():
    script = [sys.executable, str(INTEROP / "peers" / "aioquic_peer.py")]
    return Foreign("aioquic", [*script, "server"], [*script, "client"])


def quinn(directory):
    return Foreign("quinn", [str(directory / "quinn-server")], [str(directory / "quinn-client")])


def build(manifest, arguments):
    """Runs cargo on a manifest and returns the folder with the programs."""
    command = ["cargo", "build", "--locked", "--quiet", "--manifest-path", str(manifest)]
    print("interop:", " ".join(command[:3] + arguments), "in", manifest.parent.name, file=sys.stderr)
    subprocess.run(command + arguments, check=True)


def target_directory(workspace):
    """Where cargo puts a workspace's programs. A set CARGO_TARGET_DIR holds for all workspaces."""
    return Path(os.environ.get("CARGO_TARGET_DIR") or workspace / "target")


def build_quinn(profile="smoke"):
    peers = INTEROP / "peers"
    build(peers / "Cargo.toml", ["--profile", profile])
    return target_directory(peers) / profile


def build_swiftwater():
    build(REPOSITORY / "Cargo.toml", ["--release", "-p", "swiftwater-cli"])
    return target_directory(REPOSITORY) / "release" / "swiftwater"


def executable(path):
    found = shutil.which(path)
    if found is None:
        raise SystemExit(f"interop: no program {path}")
    return Path(found).resolve()


def free_port(host):
    """A UDP port that was free a moment ago."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        probe.bind((host, 0))
        return probe.getsockname()[1]


@dataclass
class Running:
    """A started program, its output in files."""

    name: str
    process: subprocess.Popen
    out: Path
    err: Path
    versions: list[int] = field(default_factory=list)

    def output(self):
        return self.out.read_text(errors="replace")

    def everything(self):
        return self.output() + self.err.read_text(errors="replace")

    def last_words(self):
        """The last line it printed, for the table."""
        lines = [line for line in self.everything().splitlines() if line.strip()]
        return lines[-1].strip()[:300] if lines else "no output"

    def alive(self):
        return self.process.poll() is None

    def wait_for(self, words, seconds):
        """Waits until the program has printed `words`."""
        end = time.monotonic() + seconds
        while words not in self.everything():
            if time.monotonic() > end:
                raise Failure(f"{self.name} never said '{words}': {self.last_words()}")
            time.sleep(0.02)

    def stop(self, gently=False):
        """Ends the program and what it has started."""
        try:
            if gently and self.alive():
                self.process.send_signal(signal.SIGINT)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self.process.wait(5)
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()


class Bench:
    """Starts programs for one case and keeps their logs in a folder."""

    def __init__(self, folder):
        self.folder = folder
        self.stack = contextlib.ExitStack()
        folder.mkdir(parents=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stack.close()

    def start(self, name, command, gently=False):
        """Starts a program that is ended with the case at the latest."""
        out, err = self.folder / f"{name}.out", self.folder / f"{name}.err"
        with (self.folder / "commands").open("a") as log:
            print(f"{name}:", " ".join(command), file=log)
        with out.open("wb") as out_file, err.open("wb") as err_file:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=out_file,
                stderr=err_file,
                start_new_session=True,
                env={**os.environ, "RUST_BACKTRACE": "1", "NO_COLOR": "1"},
            )
        running = Running(name, process, out, err)
        self.stack.callback(running.stop, gently)
        return running

    def start_server(self, peer, task, host="127.0.0.1"):
        """Starts a server, waits until it answers, and returns it with its address."""
        address = (host, free_port(host))
        running = self.start(f"{peer.name}-server", peer.server(task, text(address)))
        running.versions = self.wait_ready(running, address)
        return running, address

    def start_relay(self, swiftwater, to, link):
        address = (to[0], free_port(to[0]))
        command = swiftwater.relay(text(address), text(to), link)
        running = self.start("relay", command, gently=True)
        self.wait_ready(running, address)
        return running, address

    @staticmethod
    def wait_ready(running, address):
        versions = ask_versions(address, READY, running.alive)
        if versions is not None:
            return versions
        if not running.alive():
            raise Failure(f"{running.name} ended: {running.last_words()}")
        raise Failure(f"{running.name} answers no Version Negotiation probe")

    def run_client(self, peer, task, seconds):
        """Runs a client to its end; exceeding the time is a failure."""
        task.output.mkdir(exist_ok=True)
        running = self.start(f"{peer.name}-client", peer.client(task))
        try:
            running.process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise Failure(f"{running.name} still runs after {seconds} s: {running.last_words()}")
        if "panicked at" in running.everything():
            raise Failure(f"{running.name} panicked: {running.last_words()}")
        return running


def text(address):
    host, port = address
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
