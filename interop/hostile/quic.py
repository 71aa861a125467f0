"""QUIC by hand: aioquic does the handshake and seals packets, and the attack chooses their payload."""

import contextlib
import os
import select
import socket
import ssl
import time

from aioquic.buffer import Buffer, encode_uint_var
from aioquic.h3.connection import H3Connection
from aioquic.quic import events
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.connection import QuicConnection
from aioquic.quic.crypto import CryptoPair
from aioquic.quic.packet import QuicFrameType, QuicPacketType
from aioquic.quic.packet_builder import QuicPacketBuilder
from aioquic.tls import Epoch

varint = encode_uint_var
HANDSHAKE = 5.0


class Transport(QuicConnection):
    """A connection whose packets can carry any payload, and whose credit can stay as it was."""

    grants_credit = True

    def _write_connection_limits(self, builder, space):
        if self.grants_credit:
            super()._write_connection_limits(builder, space)

    def _write_stream_limits(self, builder, space, stream):
        if self.grants_credit:
            super()._write_stream_limits(builder, space, stream)

    def _get_or_create_stream(self, frame_type, stream_id):
        # Streams that were opened by hand are ours as well.
        known = stream_id in self._streams or self._stream_is_discarded(stream_id)
        if self._is_client and stream_id % 4 == 0 and not known:
            return self._get_or_create_stream_for_send(stream_id)
        return super()._get_or_create_stream(frame_type, stream_id)

    def sealed(self, payload):
        """One 1-RTT packet with this payload, as a datagram."""
        builder = QuicPacketBuilder(
            host_cid=self.host_cid,
            is_client=self._is_client,
            max_datagram_size=1452,
            packet_number=self._packet_number,
            peer_cid=self._peer_cid.cid,
            peer_token=b"",
            quic_logger=None,
            spin_bit=False,
            version=self._version,
        )
        builder.start_packet(QuicPacketType.ONE_RTT, self._cryptos[Epoch.ONE_RTT])
        # Any frame type makes room; the payload, types included, takes its place.
        buffer = builder.start_frame(QuicFrameType.PADDING, capacity=len(payload))
        buffer.seek(buffer.tell() - 1)
        buffer.push_bytes(payload)
        datagrams, _ = builder.flush()
        self._packet_number = builder.packet_number
        return datagrams[0]


class Client:
    """A client over a socket of its own."""

    def __init__(self, address, alpn="h3", source=None, window=1 << 20, stream_window=1 << 20, grants_credit=True):
        configuration = QuicConfiguration(
            is_client=True,
            alpn_protocols=[alpn],
            server_name="localhost",
            verify_mode=ssl.CERT_NONE,
            max_data=window,
            max_stream_data=stream_window,
            idle_timeout=60,
        )
        self.address = address
        self.quic = Transport(configuration=configuration)
        self.quic.grants_credit = grants_credit
        self.socket = socket.socket(type=socket.SOCK_DGRAM)
        self.socket.bind((source or "127.0.0.1", 0))
        self.socket.setblocking(False)
        self.events = []
        self.ended = False
        self.quic.connect(address, now=time.monotonic())
        self.flush()
        self.h3 = None
        self._alpn = alpn

    def flush(self):
        for data, _ in self.quic.datagrams_to_send(now=time.monotonic()):
            self.raw(data)

    def raw(self, datagram):
        with contextlib.suppress(OSError):
            self.socket.sendto(datagram, self.address)

    def send_payload(self, payload):
        """Sends one 1-RTT packet with this payload."""
        self.raw(self.quic.sealed(payload))

    def take(self):
        """Takes in what has come, and answers it; the new events."""
        with contextlib.suppress(BlockingIOError, ConnectionError):
            while True:
                data = self.socket.recv(65536)
                self.quic.receive_datagram(data, self.address, now=time.monotonic())
        timer = self.quic.get_timer()
        if timer is not None and timer <= time.monotonic():
            self.quic.handle_timer(now=time.monotonic())
        self.flush()
        new = []
        while (event := self.quic.next_event()) is not None:
            new.append(event)
            self.ended |= isinstance(event, events.ConnectionTerminated)
        self.events += new
        return new

    def wait(self, until):
        """Waits for a datagram or a moment."""
        timer = self.quic.get_timer()
        end = until if timer is None else min(until, timer)
        select.select([self.socket], [], [], max(0, end - time.monotonic()))

    def run(self, done, patience):
        """Until `done` holds of the events so far; False if that takes too long or the connection ends."""
        end = time.monotonic() + patience
        while time.monotonic() < end:
            self.take()
            if done():
                return True
            if self.ended:
                return False
            self.wait(end)
        return False

    def connect(self, patience=HANDSHAKE):
        """Completes the handshake; False if there is none."""
        if not self.run(lambda: any(isinstance(e, events.HandshakeCompleted) for e in self.events), patience):
            return False
        if self._alpn == "h3":
            self.h3 = H3Connection(self.quic)
        self.flush()
        return True

    def request(self, path, method=b"GET", end=True, extra=()):
        """Sends a request over HTTP/3; its stream."""
        stream = self.quic.get_next_available_stream_id()
        fields = [
            (b":method", method),
            (b":scheme", b"https"),
            (b":authority", b"localhost"),
            (b":path", path),
            *extra,
        ]
        self.h3.send_headers(stream, fields, end_stream=end)
        return stream

    def get(self, path, patience):
        """Status and content of a request over HTTP/3; None if there is no whole answer in time."""
        stream = self.request(path)
        self.flush()
        end = time.monotonic() + patience
        head, body, seen = None, b"", len(self.events)
        while time.monotonic() < end:
            self.take()
            for event in self.events[seen:]:
                for part in self.h3.handle_event(event):
                    if part.stream_id != stream:
                        continue
                    head = head or dict(getattr(part, "headers", {}) or {})
                    body += getattr(part, "data", b"")
                    if part.stream_ended:
                        return int(head[b":status"]), body
            seen = len(self.events)
            if self.ended:
                return None
            self.wait(end)
        return None

    def get_hq(self, path, patience):
        """The content of a file over hq-interop; None if the stream is reset or never ends."""
        stream = self.quic.get_next_available_stream_id()
        self.quic.send_stream_data(stream, b"GET " + path + b"\r\n", end_stream=True)
        self.flush()
        over = lambda: any(
            isinstance(e, events.StreamReset)
            and e.stream_id == stream
            or isinstance(e, events.StreamDataReceived)
            and e.stream_id == stream
            and e.end_stream
            for e in self.events
        )
        self.run(over, patience)
        parts = [e for e in self.events if getattr(e, "stream_id", None) == stream]
        if any(isinstance(e, events.StreamReset) for e in parts) or not over():
            return None
        return b"".join(e.data for e in parts if isinstance(e, events.StreamDataReceived))

    def close(self):
        """Says goodbye and lets go of the socket."""
        self.quic.close()
        self.flush()
        self.socket.close()

    def vanish(self):
        """Lets go of the socket without a word."""
        self.socket.close()


def connect_many(count, address, patience=10, **options):
    """Clients whose handshakes run together; those that succeed."""
    clients = [Client(address, **options) for _ in range(count)]
    end = time.monotonic() + patience
    ready = lambda client: any(isinstance(e, events.HandshakeCompleted) for e in client.events)
    while time.monotonic() < end:
        waiting = [client for client in clients if not ready(client) and not client.ended]
        if not waiting:
            break
        select.select([client.socket for client in waiting], [], [], 0.01)
        for client in clients:
            client.take()
    able = [client for client in clients if ready(client) and not client.ended]
    for client in able:
        client.connect()
    return able


def initials(count):
    """First datagrams of clients that nobody will ever hear of again: one ClientHello, other connection IDs."""
    template = Client(("127.0.0.1", 9), window=1 << 16)
    stream = template.quic._crypto_streams[Epoch.INITIAL].sender
    hello = bytes(stream._buffer) or b"\x01" + bytes(300)
    template.vanish()
    version = template.quic._version
    for _ in range(count):
        destination, source = os.urandom(8), os.urandom(8)
        pair = CryptoPair()
        pair.setup_initial(cid=destination, is_client=True, version=version)
        payload = b"\x06\x00" + varint(len(hello)) + hello
        head = Buffer(capacity=100)
        head.push_uint8(0xC1)
        head.push_uint32(version)
        head.push_bytes(bytes([8]) + destination + bytes([8]) + source + b"\x00")
        size = 1200 - head.tell() - 2
        head.push_uint16(0x4000 | size)
        head.push_uint16(0)
        payload += bytes(size - 2 - 16 - len(payload))
        yield pair.encrypt_packet(bytes(head.data), payload, 0)
