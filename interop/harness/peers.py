"""The foreign stacks: where each comes from, how it is built, and which version it is."""

import os
import re
import subprocess
import sys

from . import programs
from .picoquic import Picoquic
from .programs import INTEROP, Foreign, absent, build, target_directory
from .several_paths import of_noq
from .xquic import Xquic

# For interop runs only the build's duration matters. Whoever builds the same stacks for something else shares the work.
PROFILE = os.environ.get("INTEROP_PROFILE", "smoke")


def locked(workspace, package):
    """The version of a package in a workspace's lock file."""
    lock = (INTEROP / workspace / "Cargo.lock").read_text()
    found = re.search(rf'name = "{re.escape(package)}"\nversion = "([^"]+)"', lock)
    return found[1] if found else "?"


def pinned(file, pattern):
    """A version in a file of pinned versions."""
    found = re.search(pattern, (INTEROP / file).read_text())
    return found[1] if found else "?"


def aioquic():
    peer = programs.aioquic()
    peer.version = pinned("requirements.txt", r"aioquic==(\S+)")
    return peer


def rust(name, workspace, package=None, http=False, **options):
    """A stack in Rust: builds its programs, one for the HTTP cases among them if it has HTTP/3."""
    folder = INTEROP / workspace
    try:
        build(folder / "Cargo.toml", ["--profile", PROFILE])
    except subprocess.CalledProcessError:
        absent(name, f"interop/{workspace} could not be built")
        return None
    programs = target_directory(folder) / PROFILE
    prefix = name.removesuffix("-quic")
    server, client = ([str(programs / f"{prefix}-{role}")] for role in ("server", "client"))
    version = locked(workspace, package or name)
    program = [str(programs / f"{prefix}-h3")] if http else None
    return Foreign(name, server, client, version, http=program, **options)


def quinn():
    return rust("quinn", "peers", http=True)


def noq():
    return rust("noq", "peers", paths=of_noq)


def s2n_quic():
    return rust("s2n-quic", "peers-s2n")


def quiche():
    return rust("quiche", "peers-quiche", http=True, chooses_suite=False)


def quic_go():
    peer = programs.quic_go()
    if peer:
        peer.version = pinned("peers-go/go.mod", r"quic-go/quic-go v(\S+)")
    return peer


def ngtcp2():
    peer = programs.ngtcp2()
    if peer:
        asked = ["pkg-config", "--modversion", "libngtcp2"]
        peer.version = subprocess.run(asked, capture_output=True, text=True).stdout.strip()
    return peer


def built_elsewhere(kind):
    """A stack whose program no registry has: an environment variable names it."""

    def find():
        program = os.environ.get(kind.variable)
        if not program:
            absent(kind.name, f"{kind.variable} names no program")
            return None
        if not os.access(program, os.X_OK):
            absent(kind.name, f"{kind.variable}={program} is no program")
            return None
        peer = kind(os.path.abspath(program))
        return peer

    return find


# Builders by name. Those that --quick leaves out take long to build, or need what CI lacks.
PEERS = {
    "quinn": quinn,
    "noq": noq,
    "quiche": quiche,
    "s2n-quic": s2n_quic,
    "aioquic": aioquic,
    "quic-go": quic_go,
    "ngtcp2": ngtcp2,
    Picoquic.name: built_elsewhere(Picoquic),
    Xquic.name: built_elsewhere(Xquic),
}
QUICK = ("quinn", "noq", "s2n-quic", "aioquic", "quic-go", Picoquic.name, Xquic.name)

# Those with several paths in a connection.
SEVERAL_PATHS = ("noq", Picoquic.name)


def available(names):
    """The peers of these names that can be had here; says which can't."""
    found = [PEERS[name]() for name in names]
    sys.stderr.flush()
    return [peer for peer in found if peer is not None]
