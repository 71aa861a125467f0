"""Reads lost data and their recovery from the qlog of a server."""

import json
from dataclasses import dataclass

from .programs import Failure

# Before each record of a JSON text sequence (RFC 7464).
SEPARATOR = "\x1e"


@dataclass
class Repairs:
    """Totals over all connections of a server."""

    # Data declared lost.
    lost: int = 0
    # Replicas sent of it.
    replicas: int = 0
    # STREAM frames marked as replicas: the same, as seen among the packets.
    replica_frames: int = 0
    # Data that a replica brought first.
    brought: int = 0
    # All records.
    records: int = 0


def records(path):
    """The records of a log; anything that is no JSON text sequence is a failure."""
    for number, text in enumerate(path.read_text().split(SEPARATOR)):
        if number == 0:
            if text:
                raise Failure(f"{path.name} doesn't begin with a record separator")
            continue
        try:
            yield json.loads(text)
        except ValueError as error:
            raise Failure(f"record {number} of {path.name}: {error}") from error


def repairs(folder):
    """The content of the logs in a folder; it is a failure if there are none."""
    found = Repairs()
    for path in sorted(folder.glob("*.sqlog")):
        for record in records(path):
            found.records += 1
            count(found, record.get("name"), record.get("data", {}))
    if not found.records:
        raise Failure(f"no qlog in {folder}")
    return found


def count(found, name, data):
    if name == "swiftwater:data_lost":
        found.lost += 1
    elif name == "swiftwater:replica_sent":
        found.replicas += 1
    elif name == "swiftwater:data_recovered":
        found.brought += data["by"] == "replica"
    elif name in ("quic:packet_sent", "transport:packet_sent"):
        frames = data.get("frames", [])
        found.replica_frames += sum(frame.get("purpose") == "replica" for frame in frames)
