"""Attacks over QUIC."""

import os
import socket
import time

from aioquic.quic import events

from . import bounds, quic
from .process import descriptors
from .quic import varint
from .scene import ATTACKER, BIG, attack

# A request's head as QPACK without the dynamic table (RFC 9204, appendix A), GET https /.
HEAD = bytes.fromhex("0000d1d7500161c1")
CLOSE, CLOSE_TRANSPORT, UNKNOWN = bytes.fromhex("1d410000"), bytes.fromhex("1c000000"), bytes.fromhex("21")
# One packet that begins something and ends the connection: ALPN, payload.
ENDS_AT_ONCE = {
    "empty stream, unknown frame": ("h3", bytes.fromhex("0a0000") + UNKNOWN),
    "gap, unknown frame": ("h3", bytes.fromhex("0e00010141") + UNKNOWN),
    "part of a head, close": ("h3", bytes.fromhex("0a00020120") + CLOSE),
    "part of a head, transport close": ("h3", bytes.fromhex("0a00020120") + CLOSE_TRANSPORT),
    "gap, close": ("h3", bytes.fromhex("0e00010141") + CLOSE),
    "part of a stream type, close": ("h3", bytes.fromhex("0a020140") + CLOSE),
    "part of SETTINGS, close": ("h3", bytes.fromhex("0a0203000410") + CLOSE),
    "beginning of a session's stream, close": ("h3", bytes.fromhex("0a00024041") + CLOSE),
    "file that is not named, close": ("hq-interop", bytes.fromhex("0a0003474554") + CLOSE),
}


@attack(seconds=(1.0, 5))
def end_within_a_head(scene):
    """One packet that begins a request and ends the connection, in every form; legal from a client that gives up
    while part of its head is lost"""
    for alpn, payload in ENDS_AT_ONCE.values():
        client = scene.quic(alpn=alpn)
        if client is None:
            if alpn == "h3":
                scene.fail("no connection between the packets")
                return
            continue
        client.send_payload(payload)
    time.sleep(scene.seconds)


def random_frames(rng):
    """Frames of a packet, mostly well formed, on the streams that a client may use."""
    payload = b""
    while len(payload) < rng.randint(4, 900):
        stream = rng.choice((0, 0, 4, 8, 2, 6, 10, 14, 3))
        data = rng.choice(
            (
                rng.randbytes(rng.randint(0, 30)),
                b"\x01" + varint(len(HEAD)) + HEAD,
                (b"\x01" + varint(len(HEAD)) + HEAD)[: rng.randint(0, 9)],
                b"\x00\x04\x00",
                b"\x00\x05hello",
                b"\x02\x3f\xe1\x1f",
                b"\x40\x54" + varint(0),
                b"\x40\x41" + varint(0),
            )
        )
        offset = rng.choice((0, 0, 0, 1, len(data), rng.randint(0, 3000)))
        kind = rng.choice((0x0E, 0x0E, 0x0E, 0x0F, 0x04, 0x05, 0x30, 0x10, 0x12, 0x1C, 0x21, None))
        match kind:
            case 0x0E | 0x0F:
                payload += bytes([kind]) + varint(stream) + varint(offset) + varint(len(data)) + data
            case 0x04:
                payload += b"\x04" + varint(stream) + varint(0x10C) + varint(offset)
            case 0x05:
                payload += b"\x05" + varint(stream) + varint(0x10C)
            case 0x30:
                return payload + b"\x30" + data
            case 0x10:
                payload += b"\x10" + varint(rng.randint(0, 1 << 30))
            case 0x12:
                payload += b"\x12" + varint(rng.randint(0, 1 << 10))
            case 0x1C if rng.random() < 0.1:
                return payload + rng.choice((CLOSE, CLOSE_TRANSPORT))
            case 0x21 if rng.random() < 0.1:
                return payload + UNKNOWN
            case None:
                payload += rng.randbytes(rng.randint(1, 3))
    return payload


@attack(seconds=(4, 120))
def random_frames_on_h3(scene):
    """Connections of HTTP/3 with packets of random frames, well formed and not, until the server closes them"""
    end, connections, packets = scene.until(), 0, 0
    while time.monotonic() < end:
        client = scene.quic()
        if client is None:
            scene.fail("no new connection")
            return
        connections += 1
        for _ in range(scene.rng.randint(1, 12)):
            client.send_payload(random_frames(scene.rng)[:1300])
            packets += 1
            client.take()
            if client.ended:
                break
        client.vanish()
    scene.note(f"{packets} packets on {connections} connections")


@attack(["--idle-timeout", "3s"])
def streams_opened_and_left(scene):
    """Every permitted stream begun with part of a head, on many connections, whose client then vanishes"""
    for client in scene.many_quic(20):
        for nth in range(99):
            client.send_payload(b"\x0a" + varint(4 * nth) + b"\x02\x01\x20")
        client.vanish()
    time.sleep(scene.seconds)


def slow_reading(scene, alpn, connections, streams, request):
    clients = scene.many_quic(connections, alpn=alpn, window=1 << 24, stream_window=4096, grants_credit=False)
    for client in clients:
        for _ in range(streams):
            request(client)
        client.flush()
    end = scene.until()
    while time.monotonic() < end:
        for client in clients:
            client.take()
            client.events.clear()
        time.sleep(0.02)
    scene.note(f"{len(clients)} connections")


@attack(["--send-timeout", "2s"], memory=bounds.MEMORY_OF_SLOW_READERS, seconds=(3, 30))
def h3_slow_readers(scene):
    """A hundred downloads on each of many connections of HTTP/3, of which each gets credit for 4 KiB, once"""
    count = 6 if scene.seconds < 10 else 40
    slow_reading(scene, "h3", count, 99, lambda client: client.request(BIG.encode()))


@attack(["--send-timeout", "2s"], memory=bounds.MEMORY_OF_SLOW_READERS, seconds=(5, 30))
def hq_slow_readers(scene):
    """The same over hq-interop where it is offered; nothing may be left of it after twice the send timeout"""

    def request(client):
        stream = client.quic.get_next_available_stream_id()
        client.quic.send_stream_data(stream, b"GET " + BIG.encode() + b"\r\n", end_stream=True)

    before = descriptors(scene.server.pid)
    slow_reading(scene, "hq-interop", 4, 99, request)
    held = descriptors(scene.server.pid) - before
    if held > 50:
        scene.fail(f"{held} files are still open, {scene.seconds:.0f} s after the last byte was taken")


def resets(scene, client, begin):
    """Begins and cancels requests as fast as it can; how many."""
    end, count = scene.until(), 0
    while time.monotonic() < end and not client.ended:
        credit = client.quic._remote_max_streams_bidi
        payload = b""
        while len(payload) < 1000 and count < credit:
            stream = varint(4 * count)
            payload += b"\x0a" + stream + varint(len(begin)) + begin
            payload += b"\x04" + stream + varint(0x10C) + varint(len(begin))
            count += 1
        if payload:
            client.send_payload(payload)
        client.take()
        client.events.clear()
    return count


# A connection on which more requests were cancelled than this, within seconds, is closed by then.
CANCELLED_AT_MOST = 2000


@attack()
def h3_rapid_reset(scene):
    """Requests over HTTP/3 that are cancelled in the packet that begins them, as many as there is credit for"""
    client = scene.quic()
    # The control stream, as every client must.
    client.send_payload(b"\x0a\x02\x03\x00\x04\x00")
    count = resets(scene, client, b"\x01" + varint(len(HEAD)) + HEAD)
    scene.note(f"{count} requests, {'closed' if client.ended else 'open'}")
    if not client.ended and count > CANCELLED_AT_MOST:
        scene.fail(f"{count} cancelled requests were taken")


@attack()
def hq_rapid_reset(scene):
    """The same over hq-interop where it is offered"""
    client = scene.quic(alpn="hq-interop")
    if client is None:
        scene.note("not offered")
        return
    count = resets(scene, client, b"GET " + BIG.encode() + b"\r\n")
    scene.note(f"{count} requests, {'closed' if client.ended else 'open'}")
    if not client.ended and count > CANCELLED_AT_MOST:
        scene.fail(f"{count} cancelled requests were taken")


@attack(memory=bounds.MEMORY)
def initial_flood(scene):
    """First packets of clients that don't exist, from many addresses"""
    sockets = []
    for nth in range(64):
        each = scene.keep(socket.socket(type=socket.SOCK_DGRAM))
        each.bind((f"127.1.0.{nth + 1}", 0))
        sockets.append(each)
    end, count = scene.until(), 0
    while time.monotonic() < end:
        for datagram in quic.initials(64):
            sockets[count % len(sockets)].sendto(datagram, scene.address)
            count += 1
    scene.note(f"{count} Initials")


@attack()
def datagrams_of_no_connection(scene):
    """Garbage, short headers of no connection, and long headers of unknown versions; what is answered is smaller
    than what came"""
    flood = scene.keep(socket.socket(type=socket.SOCK_DGRAM))
    flood.bind((ATTACKER, 0))
    flood.setblocking(False)
    end, sent, answered = scene.until(), 0, 0
    while time.monotonic() < end:
        for _ in range(50):
            size = scene.rng.choice((21, 43, 200, 1200))
            first = scene.rng.choice((b"\x40", b"\xc0\x0a\x0a\x0a\x0a\x08", os.urandom(1)))
            datagram = (first + os.urandom(size))[:size]
            flood.sendto(datagram, scene.address)
            sent += size
        try:
            while True:
                answered += len(flood.recv(2000))
        except OSError:
            pass
    scene.note(f"{sent >> 20} MB in, {answered / max(1, sent):.2f} out/in")
    if answered > sent:
        scene.fail("more is answered than was asked")


@attack(["--max-connections", "20", "--idle-timeout", "2s"], seconds=(4, 60))
def idle_quic_connections_hold_all_places(scene):
    """As many connections of HTTP/3 as the server takes, from one address, none with a request, each with a PING
    every half second"""
    clients = scene.many_quic(24, patience=6)
    end = scene.until()
    while time.monotonic() < end:
        for client in clients:
            if not client.ended:
                client.send_payload(b"\x01")
                client.take()
        time.sleep(0.5)
    scene.note(f"{sum(not client.ended for client in clients)} of {len(clients)} still open")


@attack()
def floods_over_quic(scene):
    """PING, MAX_DATA, PATH_CHALLENGE and STREAM_DATA_BLOCKED frames by the packet, nothing acknowledged"""
    client = scene.quic()
    frames = [b"\x01" * 1000, (b"\x10" + varint(1 << 20)) * 200, b"\x1a" + bytes(8), (b"\x15\x00\x00") * 300]
    end, count = scene.until(), 0
    while time.monotonic() < end and not client.ended:
        for payload in frames:
            client.send_payload(payload)
            count += 1
        # Reads, so that the end is noticed, and says nothing.
        for _ in range(20):
            try:
                client.quic.receive_datagram(client.socket.recv(65536), scene.address, now=time.monotonic())
            except OSError:
                break
        while (event := client.quic.next_event()) is not None:
            client.ended |= isinstance(event, events.ConnectionTerminated)
    scene.note(f"{count} packets, {'closed' if client.ended else 'open'}")
