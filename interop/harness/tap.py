"""A relay that forwards datagrams unchanged, and checks what can be seen from the outside.

It serves one client connection at a time and is not meant for speed.
"""

import select
import socket
import threading
from collections import Counter

from .packets import MIN_INITIAL_DATAGRAM, packets

# A server may send this many times what it received before the address is validated (RFC 9000,
# section 8.1).
AMPLIFICATION = 3
# A connection ID of the server this long, in a client's packet, validates the client's address.
VALIDATING_CID = 8


class Tap:
    """Forwards between `client` (a socket bound here) and `server` (an address)."""

    def __init__(self, server):
        self.server = server
        family = socket.AF_INET6 if ":" in server[0] else socket.AF_INET
        self.inner = socket.socket(family, socket.SOCK_DGRAM)
        self.outer = socket.socket(family, socket.SOCK_DGRAM)
        self.outer.bind((server[0], 0))
        for each in (self.inner, self.outer):
            each.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
        self.port = self.outer.getsockname()[1]
        self.sent = {"client": Counter(), "server": Counter()}
        self.versions = []
        self.initial_with_token = False
        self.faults = []
        self.received_bytes = self.sent_bytes = 0
        self.budget_used = 0.0
        self.server_cids = set()
        self.validated = False
        self.client = None
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stopping.set()
        self.thread.join()
        self.inner.close()
        self.outer.close()

    def run(self):
        while not self.stopping.is_set():
            ready, _, _ = select.select([self.outer, self.inner], [], [], 0.1)
            for source in ready:
                try:
                    self.forward(source)
                except OSError as error:
                    # A closed port of either side shows up here; the programs notice themselves.
                    self.last_error = error

    def forward(self, source):
        if source is self.outer:
            datagram, self.client = self.outer.recvfrom(65536)
            self.from_client(datagram)
            self.inner.sendto(datagram, self.server)
        else:
            datagram = self.inner.recv(65536)
            self.from_server(datagram)
            if self.client is not None:
                self.outer.sendto(datagram, self.client)

    def from_client(self, datagram):
        found = packets(datagram)
        self.received_bytes += len(datagram)
        for packet in found:
            self.sent["client"][packet.kind] += 1
            if packet.token:
                self.initial_with_token = True
            known = len(packet.dcid) >= VALIDATING_CID and packet.dcid in self.server_cids
            if packet.kind == "Handshake" or known or packet.token:
                self.validated = True
        small = len(datagram) < MIN_INITIAL_DATAGRAM
        if small and any(packet.kind == "Initial" for packet in found):
            self.faults.append(f"client: datagram of {len(datagram)} bytes with an Initial packet")

    def from_server(self, datagram):
        self.sent_bytes += len(datagram)
        for packet in packets(datagram):
            self.sent["server"][packet.kind] += 1
            if packet.kind == "Version Negotiation":
                self.versions = packet.versions
            elif packet.kind in ("Initial", "Handshake"):
                self.server_cids.add(packet.scid)
        if not self.validated:
            if self.received_bytes:
                self.budget_used = max(self.budget_used, self.sent_bytes / self.received_bytes)
            if self.sent_bytes > AMPLIFICATION * self.received_bytes:
                self.faults.append(
                    f"server: {self.sent_bytes} bytes sent for {self.received_bytes} received "
                    "before the address was validated"
                )

    def saw(self, side, kind):
        """How many packets of a kind a side has sent."""
        return self.sent[side][kind]
