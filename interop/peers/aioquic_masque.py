"""aioquic as a proxy for UDP and as a client of one (RFC 9298).

`proxy` forwards to any target until it is killed; `client` sends datagrams to a target that sends them back, and
prints one JSON object. Exits with 1 if anything went wrong.
"""

import argparse
import asyncio
import hashlib
import json
import os
import socket
import sys
from urllib.parse import quote, unquote

from aioquic.asyncio import QuicConnectionProtocol, connect, serve
from aioquic.buffer import Buffer, encode_uint_var
from aioquic.h3.connection import H3Connection
from aioquic.h3.events import DatagramReceived, DataReceived, HeadersReceived
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import StreamReset

WELL_KNOWN = "/.well-known/masque/udp/"
# How long an answer may take, seconds.
PATIENCE = 5
# The context of UDP payloads.
UDP = 0
# The largest UDP payload that fits into a packet; what is larger would block aioquic's queue for good.
LARGEST = 1207


def configuration(is_client):
    # 1252 bytes carry the first packets of QUIC.
    return QuicConfiguration(
        is_client=is_client,
        alpn_protocols=["h3"],
        idle_timeout=30.0,
        max_datagram_frame_size=65535,
        max_datagram_size=1252,
    )


def payload_of(datagram):
    """The UDP payload of an HTTP datagram; None in other contexts."""
    buffer = Buffer(data=datagram)
    if buffer.pull_uint_var() != UDP:
        return None
    return datagram[buffer.tell():]


class Target(asyncio.DatagramProtocol):
    """The socket of a tunnel at the proxy."""

    def __init__(self, tell):
        self.tell = tell

    def datagram_received(self, data, _address):
        self.tell(data)


class Proxy(QuicConnectionProtocol):
    """The proxy's end of a connection."""

    def __init__(self, quic, stream_handler=None):
        super().__init__(quic, stream_handler)
        self.http = H3Connection(quic, enable_webtransport=True)
        self.tunnels = {}
        # Received before the socket was open.
        self.early = {}

    def quic_event_received(self, event):
        for happened in self.http.handle_event(event):
            stream = getattr(happened, "stream_id", None)
            if isinstance(happened, HeadersReceived):
                asyncio.ensure_future(self.open(stream, dict(happened.headers)))
            elif isinstance(happened, DatagramReceived):
                payload = payload_of(happened.data)
                transport = self.tunnels.get(stream)
                if payload is None:
                    pass
                elif transport is not None:
                    transport.sendto(payload)
                else:
                    self.early.setdefault(stream, []).append(payload)
            elif isinstance(happened, DataReceived) and happened.stream_ended:
                self.close(stream)
        if isinstance(event, StreamReset):
            self.close(event.stream_id, end=False)
        self.transmit()

    async def open(self, stream, headers):
        path = headers.get(b":path", b"").decode()
        if headers.get(b":protocol") != b"connect-udp" or not path.startswith(WELL_KNOWN):
            self.answer(stream, b"404", True)
            return
        host, port = path[len(WELL_KNOWN):].rstrip("/").split("/")
        loop = asyncio.get_running_loop()

        def to_client(data):
            if len(data) > LARGEST:
                return
            self.http.send_datagram(stream, encode_uint_var(UDP) + data)
            self.transmit()

        transport, _ = await loop.create_datagram_endpoint(
            lambda: Target(to_client), remote_addr=(unquote(host), int(port))
        )
        self.tunnels[stream] = transport
        for payload in self.early.pop(stream, []):
            transport.sendto(payload)
        self.answer(stream, b"200", False)
        print("tunnel to", unquote(host), port, flush=True)

    def answer(self, stream, status, end):
        fields = [(b":status", status), (b"capsule-protocol", b"?1")]
        self.http.send_headers(stream, fields, end_stream=end)
        self.transmit()

    def close(self, stream, end=True):
        transport = self.tunnels.pop(stream, None)
        if transport is None:
            return
        transport.close()
        if end:
            self.http.send_data(stream, b"", True)


async def run_proxy(arguments):
    settings = configuration(False)
    settings.load_cert_chain(arguments.cert, arguments.key)
    host, _, port = arguments.listen.rpartition(":")
    await serve(host, int(port), configuration=settings, create_protocol=Proxy)
    print("listening on", arguments.listen, flush=True)
    await asyncio.Event().wait()


class Client(QuicConnectionProtocol):
    """The client's end."""

    def __init__(self, quic, stream_handler=None):
        super().__init__(quic, stream_handler)
        self.http = H3Connection(quic, enable_webtransport=True)
        self.answered = asyncio.get_running_loop().create_future()
        self.payloads = asyncio.Queue()

    def quic_event_received(self, event):
        for happened in self.http.handle_event(event):
            if isinstance(happened, HeadersReceived) and not self.answered.done():
                self.answered.set_result(dict(happened.headers))
            elif isinstance(happened, DatagramReceived):
                payload = payload_of(happened.data)
                if payload is not None:
                    self.payloads.put_nowait(payload)


async def run_client(arguments):
    settings = configuration(True)
    settings.load_verify_locations(cafile=arguments.ca)
    settings.server_name = "localhost"
    host, _, port = arguments.connect.rpartition(":")
    target_host, _, target_port = arguments.target.rpartition(":")
    path = f"{WELL_KNOWN}{quote(target_host, safe='')}/{target_port}/"
    async with connect(
        host, int(port), configuration=settings, create_protocol=Client
    ) as client:
        await client.ping()
        stream = client._quic.get_next_available_stream_id()
        fields = [
            (b":method", b"CONNECT"),
            (b":protocol", b"connect-udp"),
            (b":scheme", b"https"),
            (b":authority", arguments.connect.encode()),
            (b":path", path.encode()),
            (b"capsule-protocol", b"?1"),
        ]
        if arguments.token:
            fields.append((b"proxy-authorization", b"Bearer " + arguments.token.encode()))
        client.http.send_headers(stream, fields)
        client.transmit()
        headers = await asyncio.wait_for(client.answered, PATIENCE)
        report = {
            "status": int(headers[b":status"]),
            "proxy_status": headers.get(b"proxy-status", b"").decode(),
            "sent": 0,
            "same": 0,
        }
        if report["status"] == 200:
            # An unknown capsule and an unknown context, which a proxy passes over.
            client.http.send_data(stream, encode_uint_var(0x29 * 5 + 0x17) + b"\x03abc", False)
            client.http.send_datagram(stream, encode_uint_var(4) + b"of another context")
            for number in range(arguments.count):
                payload = hashlib.sha256(b"%d" % number).digest() * (1 + number % 37)
                client.http.send_datagram(stream, encode_uint_var(UDP) + payload)
                client.transmit()
                report["sent"] += 1
                got = await asyncio.wait_for(client.payloads.get(), PATIENCE)
                report["same"] += got == payload
            client.http.send_data(stream, b"", True)
            client.transmit()
    print(json.dumps(report))
    return 0 if report["status"] == 200 and report["same"] == report["sent"] else 1


def parse():
    parser = argparse.ArgumentParser(description=__doc__)
    roles = parser.add_subparsers(dest="role", required=True)
    proxy = roles.add_parser("proxy")
    proxy.add_argument("--listen", required=True)
    proxy.add_argument("--cert", required=True)
    proxy.add_argument("--key", required=True)
    client = roles.add_parser("client")
    client.add_argument("--connect", required=True)
    client.add_argument("--ca", required=True)
    client.add_argument("--target", required=True)
    client.add_argument("--token", default=os.environ.get("TOKEN", ""))
    client.add_argument("--count", type=int, default=100)
    return parser.parse_args()


def main():
    arguments = parse()
    run = run_proxy if arguments.role == "proxy" else run_client
    return asyncio.run(run(arguments))


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (OSError, asyncio.TimeoutError, ConnectionError, socket.gaierror) as error:
        print(f"error: {type(error).__name__} {error}", file=sys.stderr)
        sys.exit(1)
