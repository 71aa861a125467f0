"""HTTP/3 as it passed the tap (RFC 9114, sections 6.2 and 7): the bytes of streams, and the frames of control
streams."""

from .packets import Reader
from .trace import CLIENT, SERVER

NO_ERROR = 0x100
REQUEST_CANCELLED = 0x10C
GOAWAY = 0x07
# Types of unidirectional streams.
CONTROL, QPACK_ENCODER = 0x00, 0x02


def is_request(identifier):
    """Whether a stream is a client's bidirectional one."""
    return identifier % 4 == 0


def stream_data(connection, side):
    """What a side has sent on each stream, as far as it is here without a gap."""
    pieces = {}
    for frame in connection.frames(side, "stream"):
        pieces.setdefault(frame.id, []).append((frame.offset, frame.data))
    return {identifier: joined(some) for identifier, some in pieces.items()}


def joined(pieces):
    data = bytearray()
    for offset, piece in sorted(pieces):
        if offset > len(data):
            break
        data += piece[len(data) - offset :]
    return bytes(data)


def uni_streams(connection, side, kind):
    """What a side has sent on its unidirectional streams of a type, the type left out."""
    remainder = 2 if side == CLIENT else 3
    found = []
    for identifier, data in sorted(stream_data(connection, side).items()):
        reader = Reader(data)
        if identifier % 4 == remainder and data and reader.varint() == kind:
            found.append(data[reader.at :])
    return found


def frames(data):
    """Type and payload of each frame; an unfinished one at the end is left out."""
    reader = Reader(data)
    found = []
    try:
        while reader.at < len(data):
            kind = reader.varint()
            found.append((kind, reader.take(reader.varint())))
    except (ValueError, IndexError):
        pass
    return found


def goaways(connection, side=SERVER):
    """The identifiers in a side's GOAWAY frames."""
    controls = uni_streams(connection, side, CONTROL)
    return [
        Reader(payload).varint()
        for control in controls
        for kind, payload in frames(control)
        if kind == GOAWAY
    ]


def requests(connection):
    """The streams on which the client has sent anything that opens, in 1-RTT packets."""
    return sorted({it.id for it in connection.frames(CLIENT, "stream") if is_request(it.id)})


def most_open(connection):
    """The most requests that were in progress at the same time: from the client's first byte on a stream to
    the end that the server has sent."""
    begun, over, most = set(), set(), 0
    for packet in connection.packets:
        for frame in packet.frames or ():
            if frame.kind != "stream" or not is_request(frame.id):
                continue
            if packet.side == CLIENT:
                begun.add(frame.id)
            elif frame.end:
                over.add(frame.id)
        most = max(most, len(begun - over))
    return most


def most_ahead(connection, stream):
    """By how many bytes at most the client was ahead of the server on a stream, as the tap saw it."""
    ends = {CLIENT: 0, SERVER: 0}
    most = 0
    for packet in connection.packets:
        for frame in packet.frames or ():
            if frame.kind == "stream" and frame.id == stream:
                ends[packet.side] = max(ends[packet.side], frame.offset + frame.size)
        most = max(most, ends[CLIENT] - ends[SERVER])
    return most


def given_up(connection, side, kind):
    """Stream and code of each frame by which a side gave up a request: `stop_sending` or `reset_stream`."""
    values = [frame.values[:2] for frame in connection.frames(side, kind)]
    return [(stream, code) for stream, code in values if is_request(stream)]
