"""Several paths in a connection (RFC 10069): what a program is to do with them, as options."""

from dataclasses import dataclass

from .verdicts import Unsupported

# Local addresses of a client: all of 127.0.0.0/8 is this machine's.
FIRST, SECOND, THIRD = "127.0.0.1", "127.0.0.2", "127.0.0.3"


@dataclass(frozen=True)
class Paths:
    """What one end does. `None` in place of this is an end without the extension."""

    # Where a client opens paths from, the first one included.
    addresses: tuple[str, ...] = ()
    # How many may be open at once; `None` is the program's default.
    maximum: int | None = None
    # (bytes sent and received, "abandon" | "backup" | "available", path), in the order of the bytes.
    operations: tuple[tuple[int, str, int], ...] = ()
    # Go over to fresh connection IDs after so many bytes.
    rotate_after: tuple[int, ...] = ()
    # Send something on each path from time to time, whatever the scheduler does.
    probes: bool = False
    # The version of the extension, as an option of Swiftwater; `None` is that of RFC 10069.
    version: str | None = None


# Swiftwater's programs send a PING on each path whenever they have sent and received so many bytes more, up to the size of
# a case's transfer.
PROBE_EVERY, PROBE_UNTIL = 250_000, 5_000_000


def of_swiftwater(paths, command):
    """The options of `swiftwater serve` and `get`."""
    if paths is None:
        return []
    options = ["--multipath"] if command == "serve" else []
    for address in paths.addresses:
        options += ["--path", address]
    if paths.maximum is not None:
        options += ["--max-paths", str(paths.maximum)]
    if paths.version is not None:
        options += ["--multipath-version", paths.version]
    for after, action, path in paths.operations:
        options += ["--path-operation", f"{after},{action},{path}"]
    for after in paths.rotate_after:
        options += ["--path-operation", f"{after},rotate"]
    if paths.probes:
        for after in range(PROBE_EVERY, PROBE_UNTIL, PROBE_EVERY):
            for path in range(len(paths.addresses)):
                options += ["--path-operation", f"{after},ping,{path}"]
    return options


# noq's programs permit as many paths as Swiftwater by default.
NOQ_PATHS = 4
# It replaces its connection IDs by time, milliseconds: several times in a transfer.
NOQ_CID_LIFETIME = 400


def of_noq(paths):
    """The options of noq's programs."""
    if paths is None:
        return []
    options = ["--max-paths", str(paths.maximum or NOQ_PATHS)]
    for address in paths.addresses[1:]:
        options += ["--path", address]
    for after, action, path in paths.operations:
        options += ["--path-operation", f"{after},{action},{path}"]
    if paths.rotate_after:
        options += ["--cid-lifetime", str(NOQ_CID_LIFETIME)]
    options += ["--probe-paths"] if paths.probes else []
    return options


def of_single_path(paths):
    """For stacks without the extension."""
    if paths is not None:
        raise Unsupported("there is one path only")
    return []
