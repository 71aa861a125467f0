"""Packet protection (RFC 9001, section 5; RFC 9369, section 3.3), for reading only: keys from a key log,
header protection, and opening packets."""

import hashlib
import hmac
from dataclasses import dataclass

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM, ChaCha20Poly1305

from .packets import VERSION_2

INITIAL_SALT = {
    False: bytes.fromhex("38762cf7f55934b34d179ae6a4c80cadccbb7f0a"),
    True: bytes.fromhex("0dede3def700a6db819381be6e269dcbf9bd2ed9"),
}
AES_128, AES_256, CHACHA20 = 0x1301, 0x1302, 0x1303
SAMPLE = 16
TAG = 16


@dataclass(frozen=True)
class Suite:
    hash: str
    key_size: int


SUITES = {
    AES_128: Suite("sha256", 16),
    AES_256: Suite("sha384", 32),
    CHACHA20: Suite("sha256", 32),
}


def expand_label(secret, label, size, hash_name):
    """HKDF-Expand-Label with an empty context (RFC 8446, section 7.1)."""
    full = b"tls13 " + label.encode()
    info = size.to_bytes(2, "big") + bytes([len(full)]) + full + b"\0"
    result = block = b""
    counter = 1
    while len(result) < size:
        block = hmac.digest(secret, block + info + bytes([counter]), hash_name)
        result += block
        counter += 1
    return result[:size]


def initial_secrets(dcid, version):
    """Secrets of client and server for Initial packets."""
    secret = hmac.digest(INITIAL_SALT[version == VERSION_2], dcid, "sha256")
    size = hashlib.sha256().digest_size
    return [expand_label(secret, label, size, "sha256") for label in ("client in", "server in")]


class Opener:
    """Opens the packets that one side has protected with one secret, and, if these are 1-RTT packets,
    with the secrets that follow from it by key updates."""

    def __init__(self, secret, suite, version):
        self.suite = suite
        self.label = "quicv2 " if version == VERSION_2 else "quic "
        parameters = SUITES[suite]
        self.hash = parameters.hash
        self.header_key = expand_label(secret, self.label + "hp", parameters.key_size, self.hash)
        self.secrets = [secret]
        self.packet_keys = []
        self.generation = 0
        # By packet number space: one for each path.
        self.largest = {}

    def keys(self, generation):
        while len(self.packet_keys) <= generation:
            if len(self.secrets) <= len(self.packet_keys):
                last = self.secrets[-1]
                self.secrets.append(expand_label(last, self.label + "ku", len(last), self.hash))
            secret = self.secrets[len(self.packet_keys)]
            key = expand_label(secret, self.label + "key", SUITES[self.suite].key_size, self.hash)
            iv = expand_label(secret, self.label + "iv", 12, self.hash)
            aead = ChaCha20Poly1305(key) if self.suite == CHACHA20 else AESGCM(key)
            self.packet_keys.append((aead, iv))
        return self.packet_keys[generation]

    def mask(self, sample):
        if self.suite == CHACHA20:
            cipher = Cipher(algorithms.ChaCha20(self.header_key, sample), None)
            return cipher.encryptor().update(bytes(5))
        return Cipher(algorithms.AES(self.header_key), modes.ECB()).encryptor().update(sample)[:5]

    def open(self, packet, number_at, path=0):
        """Packet number, generation of the keys and payload; None if the packet doesn't open. The nonce has the
        identifier of the path (RFC 10069, section 2.4)."""
        sample = packet[number_at + 4 : number_at + 4 + SAMPLE]
        if len(sample) < SAMPLE:
            return None
        mask = self.mask(sample)
        long = packet[0] & 0x80
        first = packet[0] ^ (mask[0] & (0x0F if long else 0x1F))
        size = (first & 3) + 1
        truncated = bytes(a ^ b for a, b in zip(packet[number_at : number_at + size], mask[1:]))
        header = bytes([first]) + packet[1:number_at] + truncated
        largest = self.largest.get(path, -1)
        number = full_number(largest, int.from_bytes(truncated, "big"), 8 * size)
        for generation in self.candidates(first, long):
            aead, iv = self.keys(generation)
            nonce = (int.from_bytes(iv, "big") ^ path << 64 ^ number).to_bytes(12, "big")
            try:
                payload = aead.decrypt(nonce, packet[number_at + size :], header)
            except InvalidTag:
                continue
            self.largest[path] = max(largest, number)
            self.generation = max(self.generation, generation)
            return number, generation, payload
        return None

    def candidates(self, first, long):
        """Generations whose phase fits, the likeliest first (RFC 9001, section 6.3)."""
        if long:
            return [0]
        phase = first >> 2 & 1
        near = [self.generation, self.generation + 1, self.generation - 1]
        return [it for it in near if it >= 0 and it & 1 == phase]


def full_number(largest, truncated, bits):
    """RFC 9000, appendix A.3."""
    expected = largest + 1
    window = 1 << bits
    candidate = expected & ~(window - 1) | truncated
    if candidate <= expected - window // 2:
        return candidate + window
    if candidate > expected + window // 2 and candidate >= window:
        return candidate - window
    return candidate


class KeyLog:
    """Secrets by label and client random, from files in the format of NSS."""

    def __init__(self, *paths):
        self.secrets = {}
        for path in paths:
            if not path.exists():
                continue
            for line in path.read_text(errors="replace").splitlines():
                parts = line.split()
                if len(parts) == 3 and not line.startswith("#"):
                    self.secrets[parts[0], parts[1].lower()] = bytes.fromhex(parts[2])

    def get(self, label, client_random):
        return self.secrets.get((label, client_random.hex()))
