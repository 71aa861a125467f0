"""A relay that forwards datagrams unchanged, and checks what can be seen from the outside.

It serves one client connection at a time and is not meant for speed.
"""

import contextlib
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
    """Forwards between the clients of `port` here and `server`, an address.

    With `rebind_at` (counts of datagrams from the client), the client's address as the server sees it
    changes before each of these datagrams, as behind a NAT that has lost its state; what then still
    comes to the old address is lost.
    """

    def __init__(self, server, rebind_at=()):
        self.server = server
        self.family = socket.AF_INET6 if ":" in server[0] else socket.AF_INET
        self.inner = self.new_socket()
        self.outer = self.new_socket()
        self.outer.bind((server[0], 0))
        self.rebind_at = set(rebind_at)
        self.from_client_count = self.rebindings = 0
        self.since_rebinding = Counter()
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

    def new_socket(self):
        made = socket.socket(self.family, socket.SOCK_DGRAM)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
        return made

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
                # Closed by a rebinding since `select` has looked.
                if source.fileno() < 0:
                    continue
                # A closed port of either side shows up here; the programs notice themselves.
                with contextlib.suppress(OSError):
                    self.forward(source)

    def forward(self, source):
        if source is self.outer:
            datagram, self.client = self.outer.recvfrom(65536)
            if self.from_client_count in self.rebind_at:
                self.rebind()
            self.from_client_count += 1
            self.since_rebinding["client"] += 1
            self.from_client(datagram)
            self.inner.sendto(datagram, self.server)
        else:
            datagram = self.inner.recv(65536)
            self.since_rebinding["server"] += 1
            self.from_server(datagram)
            if self.client is not None:
                self.outer.sendto(datagram, self.client)

    def rebind(self):
        self.inner.close()
        self.inner = self.new_socket()
        self.rebindings += 1
        self.since_rebinding.clear()

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
