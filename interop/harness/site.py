"""The files that are moved, and the certificates that servers show."""

import datetime
import hashlib
import ipaddress
import os
import random

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

KB, MB = 1 << 10, 1 << 20
SIZES = {"empty": 0, "one": 1, "hundred-kb": 100_000, "one-mb": 1_000_000, "five-mb": 5_000_000}
SMALL_FILES = 150
ENDLESS = 1 << 30


class Site:
    """A directory of files with known hashes."""

    def __init__(self, root, seed=1):
        self.root = root
        self.hashes = {}
        root.mkdir()
        source = random.Random(seed)
        sizes = dict(SIZES)
        self.small = [f"small-{index:03}" for index in range(SMALL_FILES)]
        sizes.update((name, source.randrange(1, 5000)) for name in self.small)
        for name, size in sizes.items():
            content = source.randbytes(size)
            (root / name).write_bytes(content)
            self.hashes[name] = hashlib.sha256(content).digest()

    def files(self, count, size, name_size=0):
        """Names of so many files of a size, made when they are first wanted. Names are at least as long
        as is said."""
        names = [f"f{size}-{index:04}".ljust(name_size, "x") for index in range(count)]
        for name in names:
            if name not in self.hashes:
                # Whoever else makes the file at the same time makes the same.
                content = random.Random(name).randbytes(size)
                whole = self.root / name
                if not whole.exists():
                    part = self.root / f".{os.getpid()}"
                    part.write_bytes(content)
                    part.rename(whole)
                self.hashes[name] = hashlib.sha256(content).digest()
        return names

    def endless(self):
        """The name of a file that no case lives to see the end of. It takes no room on the disk."""
        with (self.root / "endless").open("ab") as file:
            file.truncate(ENDLESS)
        return "endless"

    def differences(self, names, directory):
        """What is wrong with the files that a client has written; an empty list if nothing is."""
        wrong = []
        present = {path.name for path in directory.iterdir()}
        for name in names:
            if name not in present:
                wrong.append(f"{name} is missing")
            elif hashlib.sha256((directory / name).read_bytes()).digest() != self.hashes[name]:
                wrong.append(f"{name} differs")
        wrong += [f"{name} is not asked for" for name in sorted(present - set(names))]
        return wrong


class Identity:
    """A server's certificate and key, and the authority that signed it, as PEM files. Between the two may
    be further authorities."""

    def __init__(self, directory, name, extra_names=0, between=0):
        self.ca = directory / f"{name}-ca.pem"
        self.certificate = directory / f"{name}-cert.pem"
        self.key = directory / f"{name}-key.pem"
        ca_key = ec.generate_private_key(ec.SECP256R1())
        authority = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Interop test authority")])
        ca = self.sign(authority, ca_key.public_key(), authority, ca_key, is_ca=True)
        chain = []
        issuer, issuer_key = authority, ca_key
        for index in range(between):
            # The names make each certificate as large as those of public authorities.
            made = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"Authority {index}")])
            made_key = ec.generate_private_key(ec.SECP256R1())
            names = [x509.DNSName(f"{'x' * 50}-{index}-{number}.test") for number in range(16)]
            chain.append(
                self.sign(made, made_key.public_key(), issuer, issuer_key, is_ca=True, names=names)
            )
            issuer, issuer_key = made, made_key
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
        names = [x509.DNSName("localhost")]
        names += [x509.IPAddress(ipaddress.ip_address(text)) for text in ("127.0.0.1", "::1")]
        names += [x509.DNSName(f"name-{i}.{'x' * 40}.test") for i in range(extra_names)]
        leaf = self.sign(subject, key.public_key(), issuer, issuer_key, names=names)
        self.ca.write_bytes(ca.public_bytes(serialization.Encoding.PEM))
        chain.append(leaf)
        pem = [it.public_bytes(serialization.Encoding.PEM) for it in reversed(chain)]
        self.certificate.write_bytes(b"".join(pem))
        self.key.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )

    @staticmethod
    def sign(subject, public_key, issuer, issuer_key, is_ca=False, names=None):
        now = datetime.datetime.now(datetime.timezone.utc)
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(issuer)
            .public_key(public_key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(hours=1))
            .not_valid_after(now + datetime.timedelta(days=2))
            .add_extension(x509.BasicConstraints(ca=is_ca, path_length=None), critical=True)
        )
        if names:
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        return builder.sign(issuer_key, hashes.SHA256())
