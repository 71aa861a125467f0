"""The programs, each a server and a client, and which of our controllers they are held against."""

import os
from dataclasses import dataclass
from pathlib import Path

PEERS = Path(__file__).resolve().parent.parent
# Of the contract in README.md.
CONTRACT_SERVER = "server --listen 127.0.0.1:{port} --cert {cert} --key {key} --controller {controller}"
CONTRACT_CLIENT = "client --connect 127.0.0.1:{relay} --ca {ca} --controller {controller} bulk --bytes {bytes}"


@dataclass(frozen=True)
class Pair:
    """A server and a client; words in braces are filled in, and where the words of one begin with a slash, they
    begin with the name of a file beside the program."""

    name: str
    # Environment variable that has the program's path.
    variable: str
    # Ours that it is held against.
    ours: str
    server: str
    client: str
    # Where it is without the variable.
    usual: Path | None = None

    def program(self, swiftwater):
        """Its path; `None` if it is not known."""
        if self.variable == "SWIFTWATER":
            return Path(os.environ.get(self.variable, swiftwater))
        named = os.environ.get(self.variable)
        return Path(named) if named else self.usual

    def is_present(self, swiftwater):
        program = self.program(swiftwater)
        return program is not None and os.access(program, os.X_OK)

    def command(self, words, swiftwater, values):
        """The program with its words."""
        program = self.program(swiftwater)
        if words.startswith("/"):
            name, _, words = words[1:].partition(" ")
            program = program.with_name(name)
        return [str(program), *(word.format(**values) for word in words.split())]


def swiftwater():
    """The command line's usual place."""
    return PEERS.parent.parent / "target" / "release" / "swiftwater"


def contract(library, controller):
    """A program of this workspace."""
    fill = {"controller": controller}
    keep = {key: f"{{{key}}}" for key in ("port", "relay", "cert", "key", "ca", "bytes")}
    return Pair(
        f"{library}-{controller}", f"PEER_{library.upper().replace('-', '_')}", controller,
        CONTRACT_SERVER.format(**fill, **keep), CONTRACT_CLIENT.format(**fill, **keep),
        PEERS / "target" / "release" / library,
    )


def picoquic(controller, ours):
    return Pair(
        f"picoquic-{ours}", "PICOQUICDEMO", ours,
        f"-G {controller} -p {{port}} -c {{cert}} -k {{key}}",
        "-a h3 -n localhost -D 127.0.0.1 {relay} 0:/{bytes}",
    )


def xquic(controller, ours):
    return Pair(
        f"xquic-{ours}", "XQUIC_TEST_SERVER", ours,
        f"-a 127.0.0.1 -p {{port}} -c {controller} -C -s {{bytes}} -l e",
        "/test_client -a 127.0.0.1 -p {relay} -h localhost -G -t 5 -l e",
    )


def own(controller):
    return Pair(
        f"swiftwater-{controller}", "SWIFTWATER", controller,
        f"perf server --listen 127.0.0.1:{{port}} --no-tcp --cert {{cert}} --key {{key}} --cc {controller}",
        "perf client --ca {ca} localhost:{relay} download --bytes {bytes}",
    )


PAIRS = [
    own("bbr1"), own("bbr2"), own("bbr3"),
    picoquic("bbr1", "bbr1"), contract("quinn", "bbr1"), contract("tquic", "bbr1"), xquic("bbr", "bbr1"),
    contract("quiche", "bbr2"), contract("s2n-quic", "bbr2"), xquic("bbr2", "bbr2"),
    picoquic("bbr", "bbr3"), contract("tquic", "bbr3"), contract("noq", "bbr3"),
]
