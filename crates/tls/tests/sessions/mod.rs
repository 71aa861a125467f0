//! Two sessions talking to each other, and packets protected by hand.

#![allow(
    clippy::unwrap_used,
    reason = "a helper that fails is a test that fails"
)]
#![allow(
    dead_code,
    unreachable_pub,
    reason = "shared by several test programs, none of which uses all of it"
)]

use std::iter;

use swiftwater_quic::crypto::{
    ClientCrypto, CryptoError, EncryptionLevel, HeaderKey, KeyPair, Keys, NewKeys, PacketKey,
    ServerCrypto, Session, TlsError,
};
use swiftwater_units::{PacketNumber, PathId};
use swiftwater_wire::{ConnectionId, VERSION_1};

/// Bytes of a long header packet's first bytes up to its packet number in [`seal`].
const PN_OFFSET: usize = 9;

pub const CLIENT_PARAMETERS: &[u8] = b"\x01\x02\x67\x10 parameters of the client";
pub const SERVER_PARAMETERS: &[u8] = b"\x01\x02\x67\x10 parameters of the server, longer";

pub fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    digits
        .chunks(2)
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}

/// A session with all that it has said so far.
pub struct Peer {
    pub session: Box<dyn Session>,
    pub keys: Vec<NewKeys>,
    /// Bytes to the other side by encryption level.
    pub said: [Vec<u8>; 3],
    heard: [usize; 3],
    write_level: EncryptionLevel,
}

impl Peer {
    pub fn new(session: Box<dyn Session>) -> Self {
        let mut peer = Self {
            session,
            keys: Vec::new(),
            said: Default::default(),
            heard: [0; 3],
            write_level: EncryptionLevel::Initial,
        };
        peer.speak();
        peer
    }

    /// Follows the contract of `write_handshake` to the end.
    pub fn speak(&mut self) {
        loop {
            let mut bytes = Vec::new();
            let keys = self.session.write_handshake(&mut bytes);
            let done = bytes.is_empty() && keys.is_none();
            self.said[self.write_level as usize].extend_from_slice(&bytes);
            if let Some(keys) = keys {
                assert_eq!(keys.level as usize, self.write_level as usize + 1);
                self.write_level = keys.level;
                self.keys.push(keys);
            }
            if done {
                break;
            }
        }
    }

    /// Takes at most `len` bytes of what `other` said, from the lowest encryption level that has news; false
    /// if there are none.
    pub fn listen(&mut self, other: &Self, len: usize) -> Result<bool, TlsError> {
        for level in EncryptionLevel::SPACES {
            let from = self.heard[level as usize];
            let news = &other.said[level as usize][from..];
            if !news.is_empty() {
                let part = &news[..len.clamp(1, news.len())];
                self.heard[level as usize] += part.len();
                self.session.read_handshake(level, part)?;
                self.speak();
                return Ok(true);
            }
        }
        Ok(false)
    }

    pub fn keys(&self, level: EncryptionLevel) -> &Keys {
        let found = self.keys.iter().find(|keys| keys.level == level);
        &found.expect("keys of this level").keys
    }
}

/// Lets both talk until neither has news, in fragments of the given lengths, over and over.
pub fn converse(client: &mut Peer, server: &mut Peer, fragments: &[usize]) -> Result<(), TlsError> {
    for &len in fragments.iter().cycle() {
        let to_server = server.listen(client, len)?;
        let to_client = client.listen(server, len)?;
        if !to_server && !to_client {
            break;
        }
    }
    Ok(())
}

pub fn peers(client: &dyn ClientCrypto, server: &dyn ServerCrypto, name: &str) -> (Peer, Peer) {
    let client = client
        .start_session(VERSION_1, name, CLIENT_PARAMETERS)
        .unwrap();
    let server = server.start_session(VERSION_1, SERVER_PARAMETERS).unwrap();
    (Peer::new(client), Peer::new(server))
}

/// A whole handshake in large pieces.
pub fn handshake(
    client: &dyn ClientCrypto,
    server: &dyn ServerCrypto,
    name: &str,
) -> Result<(Peer, Peer), TlsError> {
    let (mut client, mut server) = peers(client, server, name);
    converse(&mut client, &mut server, &[usize::MAX])?;
    assert!(!client.session.is_handshaking() && !server.session.is_handshaking());
    Ok((client, server))
}

/// A packet with a short header, a packet number of two bytes and `payload`, fully protected.
pub fn seal(
    packet_key: &dyn PacketKey,
    header_key: &dyn HeaderKey,
    path: u32,
    number: u64,
    payload: &[u8],
) -> Vec<u8> {
    let mut packet = vec![0x41];
    packet.extend(iter::repeat_n(0xcd, PN_OFFSET - 1));
    packet.extend_from_slice(&(number as u16).to_be_bytes());
    let header_len = packet.len();
    packet.extend_from_slice(payload);
    packet.resize(packet.len() + packet_key.tag_len(), 0);
    let number = PacketNumber::new(number);
    packet_key.encrypt(PathId::new(path), number, header_len, &mut packet);
    header_key.encrypt(PN_OFFSET, &mut packet);
    packet
}

/// Undoes [`seal`].
pub fn open(
    packet_key: &dyn PacketKey,
    header_key: &dyn HeaderKey,
    path: u32,
    mut packet: Vec<u8>,
) -> Result<(u64, Vec<u8>), CryptoError> {
    header_key.decrypt(PN_OFFSET, &mut packet);
    let number_len = usize::from(packet[0] & 3) + 1;
    let (header, payload) = packet.split_at_mut(PN_OFFSET + number_len);
    let number = header[PN_OFFSET..]
        .iter()
        .fold(0, |number, byte| number << 8 | u64::from(*byte));
    let path = PathId::new(path);
    let len = packet_key.decrypt(path, PacketNumber::new(number), header, payload)?;
    Ok((number, payload[..len].to_vec()))
}

/// What `from` seals `to` opens, on two paths.
pub fn assert_agree(from: &Keys, to: &Keys) {
    assert_packets_agree(&from.packet, &to.packet, &from.header, &to.header);
}

/// As [`assert_agree`], with packet keys of another phase.
pub fn assert_packets_agree(
    from: &KeyPair<dyn PacketKey>,
    to: &KeyPair<dyn PacketKey>,
    from_header: &KeyPair<dyn HeaderKey>,
    to_header: &KeyPair<dyn HeaderKey>,
) {
    for path in [0, 7] {
        let payload = b"some frames of a packet";
        let packet = seal(&*from.local, &*from_header.local, path, 513, payload);
        let opened = open(&*to.remote, &*to_header.remote, path, packet.clone());
        assert_eq!(opened, Ok((513, payload.to_vec())));
        let other_path = open(&*to.remote, &*to_header.remote, path + 1, packet);
        assert_eq!(other_path, Err(CryptoError));
    }
}

/// Two ends agree in both directions, through `updates` key updates, and phases don't mix.
pub fn assert_phases_agree(client: &mut Peer, server: &mut Peer, updates: usize) {
    let mut packets = Vec::new();
    for _ in 0..updates {
        let ours = client.session.next_packet_keys().unwrap();
        let theirs = server.session.next_packet_keys().unwrap();
        let (client, server) = (
            client.keys(EncryptionLevel::OneRtt),
            server.keys(EncryptionLevel::OneRtt),
        );
        assert_packets_agree(&ours, &theirs, &client.header, &server.header);
        assert_packets_agree(&theirs, &ours, &server.header, &client.header);
        for old in &packets {
            let opened = open(&*theirs.remote, &*server.header.remote, 0, Vec::clone(old));
            assert_eq!(opened, Err(CryptoError), "a packet of an earlier phase");
        }
        packets.push(seal(&*ours.local, &*client.header.local, 0, 9, b"phase"));
    }
}

/// Where the packet number starts in the examples of Initial packets.
pub const SAMPLE_PN_OFFSET: usize = 18;

/// The destination of the client's Initial in the examples of RFC 9001 and RFC 9369.
pub fn sample_dst_cid() -> ConnectionId {
    ConnectionId::new(&hex("8394c8f03e515708")).unwrap()
}

/// `header` and `payload`, protected.
pub fn protect(keys: &Keys, number: u64, header: &str, payload: &[u8]) -> Vec<u8> {
    let mut packet = hex(header);
    let header_len = packet.len();
    packet.extend_from_slice(payload);
    packet.resize(packet.len() + keys.packet.local.tag_len(), 0);
    let number = PacketNumber::new(number);
    keys.packet
        .local
        .encrypt(PathId::ZERO, number, header_len, &mut packet);
    keys.header.local.encrypt(SAMPLE_PN_OFFSET, &mut packet);
    packet
}

/// The payload of `packet`, which must have this `header`.
pub fn unprotect(keys: &Keys, number: u64, header: &str, packet: &str) -> Vec<u8> {
    let mut packet = hex(packet);
    keys.header.remote.decrypt(SAMPLE_PN_OFFSET, &mut packet);
    let header = hex(header);
    assert_eq!(packet[..header.len()], header);
    let payload = &mut packet[header.len()..];
    let number = PacketNumber::new(number);
    let len = keys
        .packet
        .remote
        .decrypt(PathId::ZERO, number, &header, payload)
        .unwrap();
    payload[..len].to_vec()
}
