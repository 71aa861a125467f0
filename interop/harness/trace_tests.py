"""Tests of what looks into packets: keys, frames, traces and the checks on them."""

import datetime
import io
import tempfile
import unittest
from pathlib import Path
from types import SimpleNamespace

from aioquic.buffer import Buffer
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.connection import QuicConnection
from aioquic.quic.packet import pull_quic_header
from aioquic.tls import CipherSuite

from .frames import frames
from .keys import AES_128, AES_256, CHACHA20, KeyLog, Opener, full_number, initial_secrets
from .packets import VERSION_1, VERSION_2
from .programs import Failure
from .scene import check_new_cids, check_new_paths
from .site import Identity
from .tap import Datagram
from .trace import CLIENT, SERVER, Trace, transport_parameter

# RFC 9001, appendix A.5, and RFC 9369, appendix A.5.
SECRET = bytes.fromhex("9ac312a7f877468ebe69422748ad00a15443f18203a07d6060f688f30f21632b")
SHORT = {
    VERSION_1: "4cfe4189655e5cd55c41f69080575d7999c25a5bfb",
    VERSION_2: "5558b1c60ae7b6b932bc27d786f4bc2bb20f2162ba",
}
NUMBER = 654360564
# RFC 9001, appendix A.1, and RFC 9369, appendix A.1.
DCID = bytes.fromhex("8394c8f03e515708")
INITIAL = {
    VERSION_1: [
        "c00cf151ca5be075ed0ebfb5c80323c42d6b7db67881289af4008f1f6c357aea",
        "3c199828fd139efd216c155ad844cc81fb82fa8d7446fa7d78be803acdda951b",
    ],
    VERSION_2: [
        "14ec9d6eb9fd7af83bf5a668bc17a7e283766aade7ecd0891f70f9ff7f4bf47b",
        "0263db1782731bf4588e7e4d93b7463907cb8cd8200b5da55a8bd488eafc37c1",
    ],
}
FIRST_PATH, SECOND_PATH = ("127.0.0.1", 1), ("127.0.0.2", 2)


class Keys(unittest.TestCase):
    def test_initial_secrets(self):
        for version, expected in INITIAL.items():
            found = [secret.hex() for secret in initial_secrets(DCID, version)]
            self.assertEqual(found, expected)

    def test_short_packet(self):
        for version, packet in SHORT.items():
            opener = Opener(SECRET, CHACHA20, version)
            opener.largest = {0: NUMBER - 1}
            self.assertEqual(opener.open(bytes.fromhex(packet), 1), (NUMBER, 0, b"\x01"))

    def test_wrong_key(self):
        opener = Opener(SECRET[::-1], CHACHA20, VERSION_1)
        opener.largest = {0: NUMBER - 1}
        self.assertIsNone(opener.open(bytes.fromhex(SHORT[VERSION_1]), 1))

    def test_nonce_of_a_path(self):
        # draft-ietf-quic-multipath-21, section 2.4: the packet is sealed with the nonce of the text.
        opener = Opener(SECRET, CHACHA20, VERSION_1)
        aead, _ = opener.keys(0)
        opener.packet_keys[0] = (aead, bytes.fromhex("6b26114b9cba2b63a9e8dd4f"))
        header, number = bytes([0x43]), (54321).to_bytes(4, "big")
        sealed = aead.encrypt(bytes.fromhex("6b2611489cba2b63a9e8097e"), b"payload", header + number)
        mask = opener.mask(sealed[:16])
        first = bytes([header[0] ^ (mask[0] & 0x1F)])
        packet = first + bytes(a ^ b for a, b in zip(number, mask[1:])) + sealed
        self.assertEqual(opener.open(packet, 1, path=3), (54321, 0, b"payload"))
        self.assertIsNone(opener.open(packet, 1, path=2))

    def test_packet_number(self):
        # RFC 9000, appendix A.3.
        self.assertEqual(full_number(0xA82F30EA, 0x9B32, 16), 0xA82F9B32)


class Frames(unittest.TestCase):
    def test_kinds(self):
        payload = bytes.fromhex("00 01 1a 0102030405060708 03 05 00 00 05 01 02 03 0a 04 03 616263")
        found = frames(payload)
        self.assertEqual([it.kind for it in found], ["ping", "path_challenge", "ack_ecn", "stream"])
        self.assertEqual(found[1].data, bytes(range(1, 9)))
        self.assertEqual((found[2].largest, found[2].ecn), (5, [1, 2, 3]))
        self.assertEqual((found[3].id, found[3].size, found[3].end), (4, 3, False))

    def test_of_paths(self):
        payload = bytes.fromhex("7e75 01 3e 7e77 02 05 3e 03 09 00 00 01 7e78 01 02 01 04 aabbccdd") + bytes(15) + b"\1"
        found = frames(payload)
        kinds = ["path_abandon", "path_status_available", "path_ack", "path_new_connection_id"]
        self.assertEqual([it.kind for it in found], kinds)
        self.assertEqual([it.path for it in found], [1, 2, 3, 1])
        self.assertEqual((found[0].error, found[1].sequence, found[2].largest), (0x3E, 5, 9))
        self.assertEqual((found[3].sequence, found[3].retire_prior_to), (2, 1))

    def test_unknown(self):
        self.assertEqual([it.kind for it in frames(b"\x01\x3d\x01")], ["ping", "unknown"])

    def test_transport_parameters(self):
        parameters = bytes.fromhex("0702 4100 0801 3f")
        self.assertEqual(transport_parameter(parameters, 8), 63)
        self.assertEqual(transport_parameter(parameters, 7), 256)
        self.assertIsNone(transport_parameter(parameters, 4))


class Conversation:
    """Two ends of aioquic, without sockets, and what passes between them."""

    def __init__(self, folder, suite):
        identity = Identity(folder, "trace")
        self.log = io.StringIO()
        settings = QuicConfiguration(
            is_client=True, alpn_protocols=["test"], secrets_log_file=self.log,
            server_name="localhost", cipher_suites=[suite],
        )
        settings.load_verify_locations(str(identity.ca))
        self.client = QuicConnection(configuration=settings)
        self.settings = QuicConfiguration(is_client=False, alpn_protocols=["test"])
        self.settings.load_cert_chain(str(identity.certificate), str(identity.key))
        self.server = None
        self.capture = []
        self.now = datetime.datetime.now().timestamp()
        self.path = FIRST_PATH
        self.client.connect(("server", 1), self.now)

    def turn(self, from_client):
        sender, receiver = self.client, self.server
        if not from_client:
            sender, receiver = receiver, sender
        for data, _ in sender.datagrams_to_send(self.now):
            self.capture.append(Datagram(self.now, from_client, self.path, 2, data))
            if receiver is None:
                header = pull_quic_header(Buffer(data=data), host_cid_length=8)
                receiver = self.server = QuicConnection(
                    configuration=self.settings,
                    original_destination_connection_id=header.destination_cid,
                )
            receiver.receive_datagram(data, self.path if from_client else ("server", 1), self.now)
        self.now += 0.01

    def turns(self, count):
        for _ in range(count):
            self.turn(True)
            self.turn(False)

    def trace(self, folder):
        log = folder / "keys.log"
        log.write_text(self.log.getvalue())
        return Trace(self.capture, KeyLog(log))


class Traces(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def test_whole_connection(self):
        suites = {
            CipherSuite.AES_128_GCM_SHA256: AES_128,
            CipherSuite.AES_256_GCM_SHA384: AES_256,
            CipherSuite.CHACHA20_POLY1305_SHA256: CHACHA20,
        }
        for suite, code in suites.items():
            talk = Conversation(self.folder, suite)
            talk.turns(3)
            talk.client.send_stream_data(0, b"request", end_stream=True)
            talk.turns(2)
            talk.client.request_key_update()
            talk.client.send_stream_data(4, b"request", end_stream=True)
            talk.turns(2)
            (connection,) = talk.trace(self.folder).handshakes()
            self.assertEqual(sum(connection.undecrypted().values()), 0)
            handshake = connection.handshake
            self.assertEqual((handshake.suite, handshake.offered), (code, [code]))
            self.assertTrue(handshake.has_certificate)
            self.assertEqual(transport_parameter(handshake.server_parameters, 8), 128)
            streams = [frame.id for frame in connection.frames(CLIENT, "stream")]
            self.assertEqual(streams, [0, 4])
            for side in (CLIENT, SERVER):
                last = connection.sent(side, "1-RTT")[-1]
                self.assertEqual((last.generation, last.ecn), (1, 2))

    def test_without_keys(self):
        talk = Conversation(self.folder, CipherSuite.AES_128_GCM_SHA256)
        talk.turns(3)
        trace = Trace(talk.capture, KeyLog(self.folder / "none"))
        self.assertEqual(trace.connections[0].sent(CLIENT, "Initial")[0].number, 0)
        self.assertTrue(all(it.frames is None for it in trace.sent(SERVER, "1-RTT")))

    def test_migration(self):
        talk = Conversation(self.folder, CipherSuite.AES_128_GCM_SHA256)
        talk.turns(4)
        talk.path = SECOND_PATH
        talk.client.change_connection_id()
        talk.client.send_stream_data(0, b"request", end_stream=True)
        talk.turns(3)
        (connection,) = talk.trace(self.folder).handshakes()
        self.assertEqual(check_new_paths(connection), [FIRST_PATH, SECOND_PATH])
        check_new_cids(connection)

    def test_rebinding(self):
        talk = Conversation(self.folder, CipherSuite.AES_128_GCM_SHA256)
        talk.turns(4)
        talk.path = SECOND_PATH
        for stream in (0, 4):
            talk.client.send_stream_data(stream, b"request", end_stream=True)
            talk.turns(3)
        (connection,) = talk.trace(self.folder).handshakes()
        with self.assertRaisesRegex(Failure, "two paths"):
            check_new_cids(connection)


def packet(side, path, *frames_, time=0.0):
    made = [SimpleNamespace(kind=kind, data=data) for kind, data in frames_]
    return SimpleNamespace(side=side, path=path, frames=made, time=time)


class FakeConnection:
    def __init__(self, *packets):
        self.packets = packets

    def sent(self, side):
        return [it for it in self.packets if it.side == side]

    def frames(self, side, kind):
        return [frame for it in self.sent(side) for frame in it.frames if frame.kind == kind]


class Paths(unittest.TestCase):
    CHALLENGE = ("path_challenge", b"1")
    ANSWER = ("path_response", b"1")

    def check(self, *packets):
        first = packet(SERVER, FIRST_PATH, ("stream", b""))
        last = packet(SERVER, FIRST_PATH, time=9.0)
        return check_new_paths(FakeConnection(first, *packets, last))

    def test_validated(self):
        packets = [packet(SERVER, SECOND_PATH, self.CHALLENGE), packet(CLIENT, SECOND_PATH, self.ANSWER)]
        self.assertEqual(self.check(*packets), [FIRST_PATH, SECOND_PATH])

    def test_no_challenge(self):
        with self.assertRaisesRegex(Failure, "no PATH_CHALLENGE"):
            self.check(packet(SERVER, SECOND_PATH, ("stream", b"")))

    def test_probing_comes_first(self):
        probed = packet(SERVER, SECOND_PATH, self.ANSWER)
        packets = [packet(SERVER, SECOND_PATH, self.CHALLENGE), packet(CLIENT, SECOND_PATH, self.ANSWER)]
        self.assertEqual(self.check(probed, *packets), [FIRST_PATH, SECOND_PATH])
        with self.assertRaisesRegex(Failure, "no PATH_CHALLENGE"):
            self.check(probed, packet(SERVER, SECOND_PATH, ("stream", b"")))

    def test_late_challenge(self):
        late = [
            packet(SERVER, SECOND_PATH, ("ack", b"")),
            packet(SERVER, SECOND_PATH, self.CHALLENGE),
            packet(CLIENT, SECOND_PATH, self.ANSWER),
            packet(CLIENT, SECOND_PATH),
            packet(SERVER, FIRST_PATH, time=9.0),
        ]
        connection = FakeConnection(packet(SERVER, FIRST_PATH, ("stream", b"")), *late)
        self.assertEqual(check_new_paths(connection, at_once=False), [FIRST_PATH, SECOND_PATH])
        with self.assertRaisesRegex(Failure, "no PATH_CHALLENGE"):
            check_new_paths(connection)

    def test_no_answer(self):
        client = packet(CLIENT, SECOND_PATH)
        with self.assertRaisesRegex(Failure, "no answer"):
            self.check(client, client, packet(SERVER, SECOND_PATH, self.CHALLENGE))

    def test_at_the_end(self):
        client = packet(CLIENT, SECOND_PATH, time=8.9)
        late = packet(SERVER, SECOND_PATH, self.CHALLENGE, time=8.9)
        self.assertEqual(self.check(client, client, late), [FIRST_PATH, SECOND_PATH])

    def test_one_path(self):
        with self.assertRaisesRegex(Failure, "one address"):
            self.check()
