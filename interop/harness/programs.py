"""The programs of each stack, and how processes are started, watched and ended."""

import contextlib
import errno
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

from .packets import ask_versions
from .several_paths import of_noq, of_single_path, of_swiftwater
from .verdicts import Failure, Unsupported

INTEROP = Path(__file__).resolve().parent.parent
REPOSITORY = INTEROP.parent
# A server must answer this soon after its start, seconds.
READY = 15
# Handshake timeout of Swiftwater's client, seconds; far more than any case needs.
CONNECT = 18
# Handshake timeout of both of Swiftwater's ends in the cases of heavy loss, seconds.
PATIENCE = 60
# When and where to swiftwater moves as a client.
MIGRATE_AFTER = "200kB,127.0.0.2"
# The exit code of a peer whose library lacks a requested feature.
UNABLE = 3


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
    zero_rtt: bool = False
    # Version 2, by compatible negotiation from version 1.
    v2: bool = False
    # The answers of the HTTP cases, over HTTP/3, instead of files.
    http: bool = False
    # Several paths (`several_paths.Paths`); `None`: without the extension.
    paths: object = None


@dataclass
class HttpClient:
    """What a client is to do over HTTP/3."""

    server: tuple
    ca: Path
    case: str


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
    v2: bool = False
    # A connection for each file; or the first file on one connection and the others on a second one
    # that resumes its session, the requests in 0-RTT if so wanted.
    per_connection: bool = False
    resume: bool = False
    zero_rtt: bool = False
    # To another local address, in the middle.
    migrate: bool = False
    controller: str | None = None
    # Several paths, as for servers.
    paths: object = None


def foreign_options(task):
    if task.key_update_every is not None:
        raise Unsupported("only swiftwater updates its keys by packets")
    options = ["--suite", task.suite]
    if task.key_update:
        options.append("--key-update")
    if task.v2:
        options.append("--v2")
    if task.version is not None:
        options += ["--quic-version", f"{task.version:x}"]
    return options


def http_server(peer, task, address):
    """The server of the HTTP cases: the same command line for all, Swiftwater's included."""
    identity = ["--cert", str(task.identity.certificate), "--key", str(task.identity.key)]
    early = ["--zero-rtt"] if task.zero_rtt else []
    return [*peer.http, "h3-server", "--listen", address, *identity, *early]


def http_client(peer, task):
    place = ["--connect", text(task.server), "--ca", str(task.ca)]
    return [*peer.http, "h3-client", *place, "--case", task.case]


class Swiftwater:
    name = "swiftwater"
    chooses_suite = True
    several_paths = True
    # Its program runs in the cases of several paths only.
    only_several_paths = False
    # How many paths its program permits, if no option decides that.
    fixed_paths = None
    # It follows its peer.
    multipath_version = None
    # Its server refuses clients that send no server name.
    wants_name = False
    # It closes when it is without a connection ID of a path for a moment.
    needs_spare_cid = False

    def __init__(self, program, http=None):
        self.program = str(program)
        # The program of the HTTP cases, if they are wanted.
        self.http = [str(http)] if http else None
        self.helps = {}

    def require(self, command, flag):
        """A flag that this build may not have yet."""
        if command not in self.helps:
            asked = [self.program, command, "--help"]
            self.helps[command] = subprocess.run(asked, capture_output=True, text=True).stdout
        if not re.search(rf"{flag}\b", self.helps[command]):
            raise Unsupported(f"swiftwater {command} has no {flag}")
        return flag

    def may(self, command, flag):
        """Whether this build has a flag."""
        with contextlib.suppress(Unsupported):
            return bool(self.require(command, flag))
        return False

    def options(self, task, command):
        if task.key_update:
            raise Unsupported("swiftwater updates its keys by packets, not again and again")
        if task.version is not None:
            raise Unsupported("swiftwater supports no draft versions")
        options = [] if task.suite == "any" else ["--suite", task.suite]
        if task.key_update_every is not None:
            options += ["--key-update-every", str(task.key_update_every)]
        if task.v2:
            # Both would rather speak 2, and the client begins with 1 all the same.
            options += [self.require(command, "--quic-version"), "2,1"]
            if command == "get":
                options += [self.require(command, "--first-version"), "1"]
        elif self.may(command, "--quic-version"):
            options += ["--quic-version", "1"]
        if task.controller is not None:
            options += ["--cc", task.controller]
        return options + of_swiftwater(task.paths, command)

    def server(self, task, address):
        if task.http:
            return http_server(self, task, address)
        identity = ["--cert", str(task.identity.certificate), "--key", str(task.identity.key)]
        retry = ["--retry"] if task.retry else []
        repair = ["--recovery", task.recovery] if task.recovery is not None else []
        log = ["--qlog", str(task.qlog)] if task.qlog is not None else []
        command = [self.program, "serve", str(task.directory), "--listen", address, "-v"]
        command += ["--hq"] if self.may("serve", "--hq") else []
        early = [self.require("serve", "--zero-rtt"), "accept"] if task.zero_rtt else []
        patience = ["--handshake-timeout", f"{PATIENCE}s"]
        command += patience if self.may("serve", patience[0]) else []
        return command + identity + retry + repair + early + log + self.options(task, "serve")

    def clients(self, task):
        """The commands to run, one after the other."""
        connect = PATIENCE if task.per_connection else CONNECT
        trust = ["--ca", str(task.ca), "--connect-timeout", f"{connect}s"]
        place = ["-o", str(task.output), "-j", "100", "--json", "-v"]
        options = self.options(task, "get") + ["--protocol", "hq"]
        if task.resume:
            options.append(self.require("get", "--tls-resume"))
        if task.zero_rtt:
            options.append(self.require("get", "--zero-rtt"))
        if task.migrate:
            options += [self.require("get", "--migrate-after"), MIGRATE_AFTER]
        groups = [[url] for url in task.urls] if task.per_connection else [task.urls]
        return [[self.program, "get", *urls, *trust, *place, *options] for urls in groups]

    def relay(self, listen, to, link):
        return [self.program, "relay", "--listen", listen, "--to", to, "--json", *link]


class Foreign:
    """A stack whose server and client take the options of interop/peers."""

    only_several_paths = False
    fixed_paths = None
    multipath_version = None
    wants_name = False
    needs_spare_cid = False

    def __init__(self, name, server, client, version="", chooses_suite=True, http=None, paths=None):
        self.name = name
        self.version = version
        # The program of the HTTP cases, if the stack has HTTP/3.
        self.http = http
        # Whether its programs can be held to one cipher suite.
        self.chooses_suite = chooses_suite
        self.server_command = server
        self.client_command = client
        # Several paths as options, if the stack has the extension.
        self.paths = paths or of_single_path
        self.several_paths = paths is not None

    def server(self, task, address):
        if task.http:
            return http_server(self, task, address)
        if any(it is not None for it in (task.recovery, task.controller, task.qlog)):
            raise Unsupported("only swiftwater's server takes a recovery policy")
        identity = ["--cert", str(task.identity.certificate), "--key", str(task.identity.key)]
        retry = ["--retry"] if task.retry else []
        place = ["--dir", str(task.directory), "--listen", address]
        early = ["--zero-rtt"] if task.zero_rtt else []
        paths = self.paths(task.paths)
        return [*self.server_command, *place, *identity, *retry, *early, *paths, *foreign_options(task)]

    def clients(self, task):
        """The commands to run, one after the other."""
        place = ["--out", str(task.output), "--ca", str(task.ca)]
        flags = {
            "--per-connection": task.per_connection,
            "--resume": task.resume,
            "--zero-rtt": task.zero_rtt,
            "--migrate": task.migrate,
        }
        wanted = [flag for flag, set_ in flags.items() if set_]
        paths = self.paths(task.paths)
        return [[*self.client_command, *place, *wanted, *paths, *foreign_options(task), *task.urls]]


def aioquic():
    script, http = (
        [sys.executable, str(INTEROP / "peers" / name)] for name in ("aioquic_peer.py", "aioquic_h3.py")
    )
    return Foreign("aioquic", [*script, "server"], [*script, "client"], http=http)


def quinn(directory):
    return Foreign("quinn", [str(directory / "quinn-server")], [str(directory / "quinn-client")])


def quic_go():
    """Builds quic-go's program; `None`, with a line that says why, if there is no Go."""
    folder = INTEROP / "peers-go"
    program = folder / "bin" / "quic-go-peer"
    if shutil.which("go") is None:
        absent("quic-go", "Go is not installed")
        return None
    print("interop: go build in", folder.name, file=sys.stderr)
    command = ["go", "build", "-mod=readonly", "-o", str(program), "."]
    if subprocess.run(command, cwd=folder).returncode != 0:
        absent("quic-go", "its program could not be built")
        return None
    return Foreign("quic-go", [str(program), "server"], [str(program), "client"], http=[str(program)])


def ngtcp2():
    """Builds ngtcp2's program; `None`, with a line that says why, if the library isn't there."""
    folder = INTEROP / "peers-ngtcp2"
    program = str(folder / "bin" / "ngtcp2-peer")
    if shutil.which("make") is None or shutil.which("pkg-config") is None:
        absent("ngtcp2", "make or pkg-config is missing; interop/setup-ngtcp2 installs all")
        return None
    packages = ["libngtcp2 >= 0.12", "libngtcp2 < 1", "libngtcp2_crypto_gnutls", "libnghttp3 >= 0.8", "gnutls"]
    if subprocess.run(["pkg-config", "--exists", *packages]).returncode != 0:
        absent("ngtcp2", "libngtcp2 0.12 with GnuTLS, or libnghttp3 0.8, is missing; interop/setup-ngtcp2 installs it")
        return None
    print("interop: make in", folder.name, file=sys.stderr)
    if subprocess.run(["make", "--quiet"], cwd=folder).returncode != 0:
        absent("ngtcp2", "its program could not be built")
        return None
    return Foreign("ngtcp2", [program, "server"], [program, "client"], http=[program])


def absent(name, reason):
    """A peer that can't run here is left out, not a failure."""
    print(f"interop: without {name}: {reason}", file=sys.stderr)


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


def build_http():
    """Swiftwater's program of the HTTP cases."""
    build(REPOSITORY / "Cargo.toml", ["--release", "-p", "swiftwater-http", "--example", "http_peer"])
    return target_directory(REPOSITORY) / "release" / "examples" / "http_peer"


def executable(path):
    found = shutil.which(path)
    if found is None:
        raise SystemExit(f"interop: no program {path}")
    return Path(found).resolve()


class Ports:
    """Ports for servers and relays. They are below those that systems give to clients, and workers that
    run cases at the same time have ranges of their own."""

    FIRST, COUNT = 20_000, 1_000

    def __init__(self):
        self.next = self.first = self.FIRST

    def be_worker(self, number):
        self.next = self.first = self.FIRST + number * self.COUNT

    def free(self, host):
        """A UDP port that was free a moment ago, and that was not given out lately."""
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        for _ in range(self.COUNT):
            port = self.next
            self.next = self.first + (self.next + 1 - self.first) % self.COUNT
            with socket.socket(family, socket.SOCK_DGRAM) as probe:
                # No IPv6 at all is for the case to notice.
                try:
                    probe.bind((host, port))
                except OSError as error:
                    if error.errno == errno.EADDRINUSE:
                        continue
                    raise
                return port
        raise Failure(f"no port from {self.first} on is free")


ports = Ports()


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
        """The last line it printed, or the last error, for the table."""
        lines = [line for line in self.everything().splitlines() if line.strip()]
        lines = [line for line in lines if line.lower().startswith("error")] or lines
        return lines[-1].strip()[:300] if lines else "no output"

    def alive(self):
        return self.process.poll() is None

    def check_able(self):
        """Signalled by a peer's exit code: its library lacks a requested feature."""
        if self.process.poll() == UNABLE:
            raise Unsupported(self.last_words().removeprefix("unsupported: "))

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
        # TLS secrets, for a look into packets; every program appends to it.
        self.keylog = folder / "keys.log"
        self.stack = contextlib.ExitStack()
        self.at_failure = []
        folder.mkdir(parents=True)

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        self.stack.close()
        if kind is not None and kind is not Unsupported:
            for leave in self.at_failure:
                leave()

    def on_failure(self, leave):
        """`leave` is called if the case fails, to leave something in the folder."""
        self.at_failure.append(leave)

    def start(self, name, command, gently=False):
        """Starts a program that is ended with the case at the latest."""
        out, err = self.folder / f"{name}.out", self.folder / f"{name}.err"
        with (self.folder / "commands").open("a") as log:
            print(f"{name}:", " ".join(command), file=log)
        with out.open("ab") as out_file, err.open("ab") as err_file:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=out_file,
                stderr=err_file,
                start_new_session=True,
                env={
                    **os.environ,
                    "RUST_BACKTRACE": "1",
                    "NO_COLOR": "1",
                    "SSLKEYLOGFILE": str(self.keylog),
                },
            )
        running = Running(name, process, out, err)
        self.stack.callback(running.stop, gently)
        return running

    def start_server(self, peer, task, host="127.0.0.1", name=None):
        """Starts a server, waits until it answers, and returns it with its address."""
        address = (host, ports.free(host))
        command = peer.server(task, text(address))
        running = self.start(name or f"{peer.name}-server", command)
        running.versions = self.wait_ready(running, address)
        return running, address

    def start_relay(self, swiftwater, to, link):
        address = (to[0], ports.free(to[0]))
        command = swiftwater.relay(text(address), text(to), link)
        running = self.start("relay", command, gently=True)
        # No probe: whoever watches behind the relay would take it for a client.
        running.wait_for("listening", READY)
        return running, address

    @staticmethod
    def wait_ready(running, address):
        versions = ask_versions(address, READY, running.alive)
        if versions is not None:
            return versions
        if not running.alive():
            running.check_able()
            raise Failure(f"{running.name} ended: {running.last_words()}")
        raise Failure(f"{running.name} answers no Version Negotiation probe")

    def run_client(self, peer, task, seconds):
        """Runs a client to its end; exceeding the time is a failure."""
        task.output.mkdir(exist_ok=True)
        return self.run_commands(peer, peer.clients(task), seconds)

    def run_http_client(self, peer, task, seconds):
        """The same for a client of the HTTP cases."""
        return self.run_commands(peer, [http_client(peer, task)], seconds)

    def run_commands(self, peer, commands, seconds):
        end = time.monotonic() + seconds
        for command in commands:
            running = self.start(f"{peer.name}-client", command)
            try:
                running.process.wait(max(0, end - time.monotonic()))
            except subprocess.TimeoutExpired:
                raise Failure(f"{running.name} still runs after {seconds} s: {running.last_words()}")
            running.check_able()
            if "panicked at" in running.everything():
                raise Failure(f"{running.name} panicked: {running.last_words()}")
            if running.process.returncode != 0:
                break
        return running


def text(address):
    host, port = address
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
