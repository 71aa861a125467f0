"""The part of QUIC packets that is readable on the path: long headers (RFC 8999; RFC 9000, section 17)."""

import os
import socket
import struct
import time
from dataclasses import dataclass, field

VERSION_1 = 1
VERSION_2 = 0x6B3343CF
# A version of the form reserved to force negotiation (RFC 9000, section 15).
RESERVED_VERSION = 0x1A2A3A4A
# Least size of a datagram with a client's Initial packet (RFC 9000, section 14.1).
MIN_INITIAL_DATAGRAM = 1200

LONG_TYPES = {
    VERSION_1: ["Initial", "0-RTT", "Handshake", "Retry"],
    # RFC 9369, section 3.2.
    VERSION_2: ["Retry", "Initial", "0-RTT", "Handshake"],
}


@dataclass
class Packet:
    """A packet's readable part. `kind` is a long type, "Version Negotiation" or "short"."""

    kind: str
    version: int = 0
    dcid: bytes = b""
    scid: bytes = b""
    token: bytes = b""
    versions: list[int] = field(default_factory=list)
    # Its bytes, and where in them the packet number is, if there is one and it can be found.
    data: bytes = b""
    number_at: int = 0


class Reader:
    def __init__(self, data):
        self.data = data
        self.at = 0

    def take(self, size):
        if self.at + size > len(self.data):
            raise ValueError("truncated")
        piece = self.data[self.at : self.at + size]
        self.at += size
        return piece

    def byte(self):
        return self.take(1)[0]

    def varint(self):
        first = self.byte()
        size = 1 << (first >> 6)
        return int.from_bytes(bytes([first & 0x3F]) + self.take(size - 1), "big")


def packets(datagram):
    """The packets of a datagram, as far as they can be told apart without keys."""
    reader = Reader(datagram)
    found = []
    try:
        while reader.at < len(datagram):
            start = reader.at
            first = reader.byte()
            if first & 0x80 == 0:
                # What follows the last long-header packet may also be padding. The QUIC bit doesn't tell,
                # because some stacks grease it (RFC 9287).
                if start == 0 or any(datagram[start:]):
                    found.append(Packet("short", data=datagram[start:]))
                break
            packet = long_packet(first, reader)
            packet.data = datagram[start : reader.at]
            packet.number_at -= start
            found.append(packet)
            if packet.kind in ("Retry", "Version Negotiation", "unknown version"):
                break
    except ValueError:
        found.append(Packet("garbled"))
    return found


def long_packet(first, reader):
    version = struct.unpack(">I", reader.take(4))[0]
    packet = Packet("", version, reader.take(reader.byte()), reader.take(reader.byte()))
    if version == 0:
        packet.kind = "Version Negotiation"
        rest = reader.take(len(reader.data) - reader.at)
        packet.versions = [version for (version,) in struct.iter_unpack(">I", rest)]
    elif version not in LONG_TYPES:
        packet.kind = "unknown version"
    else:
        packet.kind = LONG_TYPES[version][first >> 4 & 3]
        if packet.kind == "Initial":
            packet.token = reader.take(reader.varint())
        if packet.kind == "Retry":
            reader.at = len(reader.data)
        else:
            size = reader.varint()
            packet.number_at = reader.at
            reader.take(size)
    return packet


def ask_versions(address, seconds, alive=lambda: True):
    """Makes the server at `address` send Version Negotiation, and returns the versions.

    This also is how a server's readiness is found out: it needs neither keys nor state. None if
    there was no valid answer in time, or as soon as `alive` says that waiting is no use.
    """
    family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
    dcid, scid = os.urandom(8), os.urandom(8)
    probe = bytes([0xC0]) + struct.pack(">I", RESERVED_VERSION)
    probe += bytes([len(dcid)]) + dcid + bytes([len(scid)]) + scid
    probe += bytes(MIN_INITIAL_DATAGRAM - len(probe))
    end = time.monotonic() + seconds
    with socket.socket(family, socket.SOCK_DGRAM) as probing:
        probing.settimeout(0.1)
        probing.connect(address)
        while time.monotonic() < end and alive():
            try:
                probing.send(probe)
                answer = packets(probing.recv(65536))
            except TimeoutError:
                continue
            except ConnectionRefusedError:
                time.sleep(0.05)
                continue
            for packet in answer:
                # Connection IDs must come back exchanged (RFC 9000, section 17.2.1).
                if packet.kind == "Version Negotiation" and (packet.dcid, packet.scid) == (scid, dcid):
                    return packet.versions
    return None
