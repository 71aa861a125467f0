"""The frames of a packet (RFC 9000, section 19; RFC 9221; and those extensions that peers negotiate with
us), as far as checks need them."""

from dataclasses import dataclass, field

from .packets import Reader


@dataclass
class Frame:
    """`fields` has the values for checks; an unknown type ends the list of a packet."""

    kind: str
    fields: dict = field(default_factory=dict)

    def __str__(self):
        values = (
            f"{name}={value.hex() if len(value) <= 20 else f'{len(value)} bytes'}"
            if isinstance(value, bytes)
            else f"{name}={value}"
            for name, value in self.fields.items()
        )
        return f"{self.kind}({', '.join(values)})"

    def __getattr__(self, name):
        try:
            return self.fields[name]
        except KeyError:
            raise AttributeError(name) from None


# Frames of variable-length integers only, and how many.
PLAIN = {
    0x01: ("ping", 0),
    0x04: ("reset_stream", 3),
    0x05: ("stop_sending", 2),
    0x10: ("max_data", 1),
    0x11: ("max_stream_data", 2),
    0x12: ("max_streams", 1),
    0x13: ("max_streams", 1),
    0x14: ("data_blocked", 1),
    0x15: ("stream_data_blocked", 2),
    0x16: ("streams_blocked", 1),
    0x17: ("streams_blocked", 1),
    0x1E: ("handshake_done", 0),
    0x1F: ("immediate_ack", 0),
    0x24: ("reset_stream_at", 4),
    0xAF: ("ack_frequency", 4),
}
# The same of paths (RFC 9000, RFC 10069), and the names of the values.
OF_PATHS = {
    0x19: ("retire_connection_id", ("sequence",)),
    0x3E75: ("path_abandon", ("path", "error")),
    0x3E76: ("path_status_backup", ("path", "sequence")),
    0x3E77: ("path_status_available", ("path", "sequence")),
    0x3E79: ("path_retire_connection_id", ("path", "sequence")),
    0x3E7A: ("max_path_id", ("max",)),
    0x3E7B: ("paths_blocked", ("max",)),
    0x3E7C: ("path_cids_blocked", ("path", "next_sequence")),
}
# The types of draft-ietf-quic-multipath-10 for the same, as those of RFC 10069.
OF_DRAFT_10 = {
    0x15228C00: 0x3E,
    0x15228C01: 0x3F,
    0x15228C05: 0x3E75,
    0x15228C07: 0x3E76,
    0x15228C08: 0x3E77,
    0x15228C09: 0x3E78,
    0x15228C0A: 0x3E79,
    0x15228C0C: 0x3E7A,
}


def frames(payload):
    """The frames of a packet's payload. PADDING is left out."""
    reader = Reader(payload)
    found = []
    while reader.at < len(payload):
        if payload[reader.at] == 0:
            reader.at += 1
            continue
        frame = one(reader)
        found.append(frame)
        if frame.kind == "unknown":
            break
    return found


def one(reader):
    code = reader.varint()
    if code in OF_DRAFT_10:
        frame = of_type(reader, OF_DRAFT_10[code])
        if frame.kind == "path_abandon":
            frame.fields["reason"] = reader.take(reader.varint())
        return frame
    return of_type(reader, code)


def of_type(reader, code):
    if code in PLAIN:
        kind, count = PLAIN[code]
        return Frame(kind, {"values": [reader.varint() for _ in range(count)]})
    if code in OF_PATHS:
        kind, names = OF_PATHS[code]
        return Frame(kind, {name: reader.varint() for name in names})
    if code in (0x3E, 0x3F):
        path = reader.varint()
        return Frame("path_ack", {"path": path} | ack(reader, code == 0x3F).fields)
    if code in (0x02, 0x03):
        return ack(reader, code == 0x03)
    if code == 0x06:
        offset = reader.varint()
        return Frame("crypto", {"offset": offset, "data": reader.take(reader.varint())})
    if code == 0x07:
        return Frame("new_token", {"token": reader.take(reader.varint())})
    if 0x08 <= code <= 0x0F:
        return stream(reader, code)
    if code == 0x18:
        return new_connection_id(reader, "new_connection_id", {})
    if code == 0x3E78:
        return new_connection_id(reader, "path_new_connection_id", {"path": reader.varint()})
    if code in (0x1A, 0x1B):
        kind = "path_challenge" if code == 0x1A else "path_response"
        return Frame(kind, {"data": reader.take(8)})
    if code in (0x1C, 0x1D):
        error = reader.varint()
        if code == 0x1C:
            reader.varint()
        reason = reader.take(reader.varint())
        return Frame("connection_close", {"error": error, "reason": reason, "application": code == 0x1D})
    if code in (0x30, 0x31):
        size = reader.varint() if code == 0x31 else len(reader.data) - reader.at
        return Frame("datagram", {"data": reader.take(size)})
    return Frame("unknown", {"code": code})


def new_connection_id(reader, kind, fields):
    sequence, retire_prior_to = reader.varint(), reader.varint()
    cid = reader.take(reader.byte())
    reader.take(16)
    return Frame(kind, fields | {"sequence": sequence, "retire_prior_to": retire_prior_to, "cid": cid})


def ack(reader, with_ecn):
    largest, _, count, _ = (reader.varint() for _ in range(4))
    for _ in range(2 * count):
        reader.varint()
    fields = {"largest": largest}
    if with_ecn:
        fields["ecn"] = [reader.varint() for _ in range(3)]
    return Frame("ack_ecn" if with_ecn else "ack", fields)


def stream(reader, code):
    identifier = reader.varint()
    offset = reader.varint() if code & 4 else 0
    size = reader.varint() if code & 2 else len(reader.data) - reader.at
    data = reader.take(size)
    end = bool(code & 1)
    return Frame("stream", {"id": identifier, "offset": offset, "size": size, "end": end, "data": data})
