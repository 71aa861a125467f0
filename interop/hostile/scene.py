"""What an attack works with, and the list of all attacks on `serve`."""

import contextlib
import random
import time
from dataclasses import dataclass, field
from pathlib import Path

from . import bounds, h2, quic

ATTACKS = []

# The honest client's file, and what is too large to be taken at once.
SMALL, BIG = "/small.txt", "/big.bin"
# Bytes of the large file; it is sparse.
BIG_SIZE = 1 << 30
# Where attacks come from, and where the honest client comes from: servers may count clients by address.
ATTACKER, HONEST = "127.0.0.1", "127.0.0.9"


@dataclass
class Attack:
    """An attack on a server: what it is started with, and what it may cost."""

    act: callable
    flags: list
    # Soft and hard limit of descriptors.
    nofile: int | None = None
    memory: int = bounds.MEMORY
    # Puts more into the site's directory.
    prepare: callable = None
    # Writes a configuration for the server into the scene's directory; further flags.
    configure: callable = None
    # The server's standard output is a pipe without a reader.
    blocked_output: bool = False
    # Whether an honest client runs beside it.
    watched: bool = True
    # It takes so much processor time that no other may run beside it, as they do with --quick.
    alone: bool = False
    # Seconds, with --quick and --long.
    seconds: tuple = (1.5, 20)

    @property
    def name(self):
        return self.act.__name__.replace("_", "-")

    @property
    def help(self):
        return " ".join(self.act.__doc__.split("\n\n")[0].split())


def attack(flags=(), **options):
    """Adds a function to the list: its name and docstring are the attack's."""

    def add(act):
        ATTACKS.append(Attack(act, list(flags), **options))
        return act

    return add


@dataclass
class Scene:
    """A server under attack."""

    address: tuple
    seconds: float
    directory: Path
    site: Path
    server: object = None
    problems: list = field(default_factory=list)
    notes: list = field(default_factory=list)
    # What configurations and attacks share.
    shared: dict = field(default_factory=dict)
    rng: random.Random = field(default_factory=lambda: random.Random(7))
    # What goes with the attacker, and what with the server.
    _open: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)
    _needed: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)

    def fail(self, text):
        if text not in self.problems:
            self.problems.append(text)

    def note(self, text):
        self.notes.append(text)

    def until(self, seconds=None):
        """The moment of the monotonic clock at which the attack ends."""
        return time.monotonic() + (self.seconds if seconds is None else seconds)

    def sleep_until(self, end):
        time.sleep(max(0, end - time.monotonic()))

    def quic(self, **options):
        """A client with a complete handshake; None if it was refused."""
        client = quic.Client(self.address, source=ATTACKER, **options)
        self._open.callback(client.vanish)
        return client if client.connect() else None

    def many_quic(self, count, **options):
        clients = quic.connect_many(count, self.address, source=ATTACKER, **options)
        for client in clients:
            self._open.callback(client.vanish)
        return clients

    def h2(self, **options):
        """A connection of HTTP/2; None if it was refused."""
        try:
            connection = h2.Connection(self.address, source=ATTACKER, **options)
        except OSError:
            return None
        self._open.callback(connection.close)
        return connection

    def h1(self, **options):
        """A TLS connection of HTTP/1.1; None if it was refused."""
        try:
            connection = h2.connect(self.address, protocols=("http/1.1",), source=ATTACKER, **options)
        except OSError:
            return None
        self._open.callback(connection.close)
        return connection

    def keep(self, resource):
        """Closes it when the attack is over."""
        self._open.callback(resource.close)
        return resource

    def leave(self):
        """The attacker goes."""
        with contextlib.suppress(OSError):
            self._open.close()

    def provide(self, resource):
        """What the server needs, such as an upstream: stays when the attacker has gone."""
        self._needed.callback(resource.close)
        return resource

    def close(self):
        self.leave()
        self._needed.close()
