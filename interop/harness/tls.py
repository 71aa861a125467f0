"""The TLS messages of a handshake, from CRYPTO frames in any order (RFC 8446, section 4)."""

from .packets import Reader

CLIENT_HELLO, SERVER_HELLO, ENCRYPTED_EXTENSIONS, CERTIFICATE = 1, 2, 8, 11
QUIC_TRANSPORT_PARAMETERS = 0x39
# The `random` of a HelloRetryRequest.
RETRY_RANDOM = bytes.fromhex("cf21ad74e59a6111be1d8c021e65b891c2a211167abb8c5e079e09e2c8a8339c")


class Crypto:
    """The bytes of one level of one side."""

    def __init__(self):
        self.pieces = {}

    def add(self, offset, data):
        if len(data) > len(self.pieces.get(offset, b"")):
            self.pieces[offset] = data

    def prefix(self):
        """What is there without a gap."""
        result = b""
        for offset, data in sorted(self.pieces.items()):
            if offset > len(result):
                break
            result += data[len(result) - offset :]
        return result

    def end(self):
        return max((offset + len(data) for offset, data in self.pieces.items()), default=0)

    def messages(self):
        """Type and body of the whole messages."""
        reader = Reader(self.prefix())
        found = []
        try:
            while reader.at < len(reader.data):
                kind = reader.byte()
                found.append((kind, reader.take(int.from_bytes(reader.take(3), "big"))))
        except ValueError:
            pass
        return found


class Handshake:
    """Values of a handshake for checks and keys; empty until seen."""

    def __init__(self):
        self.levels = {}
        self.client_random = b""
        self.offered = []
        self.suite = None
        self.has_certificate = False
        self.client_parameters = b""
        self.server_parameters = b""

    def add(self, side, level, offset, data):
        if level not in ("Initial", "Handshake"):
            return
        crypto = self.levels.setdefault((side, level), Crypto())
        crypto.add(offset, data)
        for kind, body in crypto.messages():
            if (kind, side) == (CLIENT_HELLO, "client"):
                self.client_hello(Reader(body))
            elif (kind, side) == (SERVER_HELLO, "server"):
                self.server_hello(Reader(body))
            elif (kind, side) == (ENCRYPTED_EXTENSIONS, "server"):
                extensions = read_extensions(Reader(body))
                self.server_parameters = extensions.get(QUIC_TRANSPORT_PARAMETERS, b"")
            elif (kind, side) == (CERTIFICATE, "server"):
                self.has_certificate = True

    def client_hello(self, reader):
        reader.take(2)
        self.client_random = reader.take(32)
        reader.take(reader.byte())
        suites = reader.take(int.from_bytes(reader.take(2), "big"))
        pairs = zip(suites[::2], suites[1::2])
        # Without values reserved for greasing (RFC 8701).
        self.offered = [a << 8 | b for a, b in pairs if not (a == b and a & 0xF == 0xA)]
        reader.take(reader.byte())
        self.client_parameters = read_extensions(reader).get(QUIC_TRANSPORT_PARAMETERS, b"")

    def server_hello(self, reader):
        reader.take(2)
        if reader.take(32) == RETRY_RANDOM:
            return
        reader.take(reader.byte())
        self.suite = int.from_bytes(reader.take(2), "big")

    def crypto_end(self, side, level):
        """How far a side's CRYPTO frames of a level reach."""
        crypto = self.levels.get((side, level))
        return crypto.end() if crypto else 0


def read_extensions(reader):
    """Extensions by type."""
    inner = Reader(reader.take(int.from_bytes(reader.take(2), "big")))
    found = {}
    while inner.at < len(inner.data):
        kind = int.from_bytes(inner.take(2), "big")
        found[kind] = inner.take(int.from_bytes(inner.take(2), "big"))
    return found
