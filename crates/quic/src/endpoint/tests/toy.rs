//! Cryptography that authenticates but hides nothing, and builders for the packets of clients.

use std::any::Any;
use std::net::SocketAddr;
use std::sync::Arc;

use swiftwater_units::{Instant, PacketNumber, PathId, Side};
use swiftwater_wire::frame::{ConnectionClose, FrameIter};
use swiftwater_wire::{
    ConnectionId, ErrorCode, Frame, Header, PartialHeader, PlainFirstByte, ResetToken,
    TransportParameters, TruncatedPacketNumber, VERSION_1, Writer,
};

use crate::config::{ClientConfig, EndpointConfig, RetryPolicy, ServerConfig, TransportConfig};
use crate::connection::Connection;
use crate::crypto::{
    ClientCrypto, CryptoError, EncryptionLevel, EndpointKey, HeaderKey, KeyPair, Keys, NewKeys,
    PacketKey, Primitives, ServerCrypto, Session, SessionError, TlsError,
};
use crate::endpoint::{ConnectionHandle, Endpoint, Routed};
use crate::transmit::{DatagramMeta, SocketId, Transmit};

pub(super) const TAG: usize = 16;

/// Packets that may fail authentication.
pub(super) const INTEGRITY_LIMIT: u64 = 1_000;

/// A checksum good enough to notice changes.
fn digest(parts: &[&[u8]]) -> [u8; TAG] {
    let mut state = 0xcbf2_9ce4_8422_2325_u128;
    for part in parts {
        for &byte in *part {
            state = (state ^ u128::from(byte)).wrapping_mul(0x0000_0001_0000_01b3_0000_0000_013b);
        }
        state = state.wrapping_add(0x9e37).rotate_left(29);
    }
    state.to_be_bytes()
}

struct Checksum(Vec<u8>);

impl PacketKey for Checksum {
    fn encrypt(&self, _: PathId, number: PacketNumber, header_len: usize, packet: &mut [u8]) {
        let (content, tag) = packet.split_at_mut(packet.len() - TAG);
        let (header, payload) = content.split_at(header_len);
        tag.copy_from_slice(&digest(&[
            &self.0,
            &number.get().to_be_bytes(),
            header,
            payload,
        ]));
    }

    fn decrypt(
        &self,
        _: PathId,
        number: PacketNumber,
        header: &[u8],
        payload: &mut [u8],
    ) -> Result<usize, CryptoError> {
        let len = payload.len().checked_sub(TAG).ok_or(CryptoError)?;
        let (plain, tag) = payload.split_at(len);
        let expected = digest(&[&self.0, &number.get().to_be_bytes(), header, plain]);
        if tag == expected {
            Ok(len)
        } else {
            Err(CryptoError)
        }
    }

    fn tag_len(&self) -> usize {
        TAG
    }

    fn confidentiality_limit(&self) -> u64 {
        u64::MAX
    }

    fn integrity_limit(&self) -> u64 {
        INTEGRITY_LIMIT
    }
}

/// Flips bits of the first byte and the packet number as the sample says.
struct Mask;

impl Mask {
    fn bits(pn_offset: usize, packet: &[u8]) -> u8 {
        packet[pn_offset + 4..pn_offset + 20]
            .iter()
            .fold(0x5a, |mask, byte| mask ^ byte)
    }
}

impl HeaderKey for Mask {
    fn encrypt(&self, pn_offset: usize, packet: &mut [u8]) {
        let mask = Self::bits(pn_offset, packet);
        let pn_len = PlainFirstByte(packet[0]).packet_number_len();
        packet[0] ^= mask & 0x0f;
        packet[pn_offset..pn_offset + pn_len]
            .iter_mut()
            .for_each(|byte| *byte ^= mask);
    }

    fn decrypt(&self, pn_offset: usize, packet: &mut [u8]) {
        let mask = Self::bits(pn_offset, packet);
        packet[0] ^= mask & 0x0f;
        let pn_len = PlainFirstByte(packet[0]).packet_number_len();
        packet[pn_offset..pn_offset + pn_len]
            .iter_mut()
            .for_each(|byte| *byte ^= mask);
    }

    fn sample_len(&self) -> usize {
        16
    }
}

struct Silent;

impl Session for Silent {
    fn read_handshake(&mut self, _: EncryptionLevel, _: &[u8]) -> Result<(), TlsError> {
        Ok(())
    }

    fn write_handshake(&mut self, _: &mut Vec<u8>) -> Option<NewKeys> {
        None
    }

    fn is_handshaking(&self) -> bool {
        true
    }

    fn peer_transport_parameters(&self) -> Option<&[u8]> {
        None
    }

    fn next_packet_keys(&mut self) -> Option<KeyPair<dyn PacketKey>> {
        None
    }

    fn alpn(&self) -> Option<&[u8]> {
        None
    }

    fn server_name(&self) -> Option<&str> {
        None
    }

    fn peer_certificates(&self) -> Vec<Vec<u8>> {
        Vec::new()
    }

    fn export_keying_material(&self, _: &mut [u8], _: &[u8], _: &[u8]) -> Result<(), CryptoError> {
        Err(CryptoError)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

#[derive(Debug)]
pub(super) struct Toy;

impl Primitives for Toy {
    fn initial_keys(&self, version: u32, dst_cid: &ConnectionId, side: Side) -> Keys {
        let key = |sender: Side| {
            let mut key = vec![sender as u8];
            key.extend_from_slice(&version.to_be_bytes());
            key.extend_from_slice(dst_cid.as_bytes());
            Box::new(Checksum(key))
        };
        Keys {
            header: KeyPair {
                local: Box::new(Mask),
                remote: Box::new(Mask),
            },
            packet: KeyPair {
                local: key(side),
                remote: key(!side),
            },
        }
    }

    fn retry_tag(&self, version: u32, original_dst_cid: &ConnectionId, packet: &[u8]) -> [u8; 16] {
        digest(&[
            b"retry",
            &version.to_be_bytes(),
            original_dst_cid.as_bytes(),
            packet,
        ])
    }
}

/// Refuses the server name `refused` and checks the parameters of each side.
impl ClientCrypto for Toy {
    fn start_session(
        &self,
        _: u32,
        server_name: &str,
        parameters: &[u8],
    ) -> Result<Box<dyn Session>, SessionError> {
        assert!(TransportParameters::decode(parameters, Side::Client).is_ok());
        if server_name == "refused" {
            return Err(SessionError("refused".into()));
        }
        Ok(Box::new(Silent))
    }

    fn primitives(&self) -> Arc<dyn Primitives> {
        Arc::new(Self)
    }
}

impl ServerCrypto for Toy {
    fn start_session(&self, _: u32, parameters: &[u8]) -> Result<Box<dyn Session>, SessionError> {
        assert!(TransportParameters::decode(parameters, Side::Server).is_ok());
        Ok(Box::new(Silent))
    }

    fn primitives(&self) -> Arc<dyn Primitives> {
        Arc::new(Self)
    }
}

impl EndpointKey for Toy {
    fn reset_token(&self, cid: &ConnectionId) -> ResetToken {
        ResetToken(digest(&[b"reset", cid.as_bytes()]))
    }

    fn seal_token(&self, nonce: [u8; 12], plaintext: &[u8]) -> Vec<u8> {
        [
            &nonce[..],
            plaintext,
            &digest(&[b"token", &nonce, plaintext]),
        ]
        .concat()
    }

    fn open_token(&self, token: &[u8]) -> Option<Vec<u8>> {
        let (nonce, rest) = token.split_at_checked(12)?;
        let (plaintext, tag) = rest.split_at_checked(rest.len().checked_sub(TAG)?)?;
        (tag == digest(&[b"token", nonce, plaintext])).then(|| plaintext.to_vec())
    }

    fn mask(&self, input: &[u8; 16]) -> [u8; 4] {
        let [a, b, c, d, ..] = digest(&[b"mask", input]);
        [a, b, c, d]
    }
}

pub(super) fn endpoint_config() -> EndpointConfig {
    EndpointConfig::new(Arc::new(Toy))
}

pub(super) fn server_config(retry: RetryPolicy) -> ServerConfig {
    ServerConfig {
        retry,
        address_token_lifetime: std::time::Duration::from_secs(1000),
        ..ServerConfig::new(Arc::new(Toy), Arc::new(TransportConfig::default()))
    }
}

pub(super) fn client_config() -> ClientConfig {
    ClientConfig {
        crypto: Arc::new(Toy),
        transport: Arc::new(TransportConfig::default()),
    }
}

pub(super) fn server(retry: RetryPolicy) -> Endpoint {
    Endpoint::new(
        endpoint_config(),
        Some(Arc::new(server_config(retry))),
        [7; 32],
    )
}

pub(super) fn client() -> Endpoint {
    Endpoint::new(endpoint_config(), None, [8; 32])
}

pub(super) fn addr(port: u16) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, 1], port))
}

pub(super) fn meta(port: u16) -> DatagramMeta {
    DatagramMeta {
        remote: addr(port),
        local_ip: Some([198, 51, 100, 1].into()),
        socket: SocketId::default(),
        ecn: None,
    }
}

pub(super) fn cid(bytes: &[u8]) -> ConnectionId {
    ConnectionId::new(bytes).unwrap()
}

/// A client's first Initial from `src` to `dst`, padded with frames to `size` bytes.
pub(super) fn initial(dst: ConnectionId, src: ConnectionId, token: &[u8], size: usize) -> Vec<u8> {
    numbered_initial(dst, src, token, size, 0, 0)
}

/// The same with another number, and with a frame of this type, which has no fields, before the
/// padding.
pub(super) fn numbered_initial(
    dst: ConnectionId,
    src: ConnectionId,
    token: &[u8],
    size: usize,
    number: u16,
    frame_type: u8,
) -> Vec<u8> {
    let mut packet = vec![0; size];
    let pn = TruncatedPacketNumber {
        value: u32::from(number),
        len: 2,
    };
    let mut w = Writer::new(&mut packet);
    let layout = Header::Initial { dst, src, token }.encode(VERSION_1, pn, &mut w);
    layout.patch_length(&mut packet, size - layout.pn_offset);
    packet[layout.header_len] = frame_type;
    let keys = Toy.initial_keys(VERSION_1, &dst, Side::Client);
    keys.packet.local.encrypt(
        PathId::ZERO,
        PacketNumber::new(number.into()),
        layout.header_len,
        &mut packet,
    );
    keys.header.local.encrypt(layout.pn_offset, &mut packet);
    packet
}

/// A first packet of the client number `n`, without a token.
pub(super) fn first_initial(n: u8) -> Vec<u8> {
    initial(cid(&[n; 8]), cid(&[n, 0xee]), &[], 1200)
}

/// A packet with a short header.
pub(super) fn short_packet(dst: ConnectionId, size: usize) -> Vec<u8> {
    let mut packet = vec![0x4c; size];
    packet[1..=dst.len()].copy_from_slice(dst.as_bytes());
    packet
}

/// What `route` made of a datagram that came at second 100.
pub(super) fn route(endpoint: &mut Endpoint, port: u16, datagram: &[u8]) -> (Routed, Vec<u8>) {
    route_at(endpoint, 100, port, datagram)
}

/// What `route` made of a datagram, and the bytes of the answer.
pub(super) fn route_at(
    endpoint: &mut Endpoint,
    second: u64,
    port: u16,
    datagram: &[u8],
) -> (Routed, Vec<u8>) {
    let mut out = vec![0; 1500];
    let now = Instant::from_millis(second * 1000);
    let routed = endpoint.route(now, &meta(port), datagram, &mut out);
    match &routed {
        Routed::Response(transmit) => {
            out.truncate(transmit.size);
            assert_eq!(transmit.destination, addr(port));
            assert_eq!(transmit.source_ip, meta(port).local_ip);
            assert_eq!(transmit.segment_size, None);
        }
        _ => out.clear(),
    }
    (routed, out)
}

/// The new connection, or a panic.
pub(super) fn accepted(routed: (Routed, Vec<u8>)) -> (ConnectionHandle, Box<Connection>) {
    match routed.0 {
        Routed::NewConnection { handle, connection } => (handle, connection),
        other => panic!("{other:?} instead of a new connection"),
    }
}

/// The answer, or a panic.
pub(super) fn answer(routed: (Routed, Vec<u8>)) -> Vec<u8> {
    match routed.0 {
        Routed::Response(Transmit { .. }) => routed.1,
        other => panic!("{other:?} instead of an answer"),
    }
}

/// The connection that a datagram belongs to, or a panic.
pub(super) fn belongs(routed: (Routed, Vec<u8>)) -> ConnectionHandle {
    match routed.0 {
        Routed::Connection(handle) => handle,
        other => panic!("{other:?} instead of a connection"),
    }
}

/// Opens a server's Initial in reply to a client's to `dst` and returns the code that it closes
/// with.
pub(super) fn close_code(packet: &[u8], dst: ConnectionId, client: ConnectionId) -> ErrorCode {
    let header = PartialHeader::parse(packet, 8).unwrap();
    assert_eq!(header.dst_cid, client);
    assert_eq!(header.packet_len, packet.len());
    let mut packet = packet.to_vec();
    let keys = Toy.initial_keys(VERSION_1, &dst, Side::Client);
    keys.header.remote.decrypt(header.pn_offset, &mut packet);
    let pn_len = PlainFirstByte(packet[0]).packet_number_len();
    assert_eq!(PlainFirstByte(packet[0]).reserved_bits(), 0);
    let (head, payload) = packet.split_at_mut(header.pn_offset + pn_len);
    let len = keys
        .packet
        .remote
        .decrypt(PathId::ZERO, PacketNumber::ZERO, head, payload)
        .expect("the refusal is protected with the keys of the client's destination");
    let frames: Vec<_> = FrameIter::new(&payload[..len])
        .map(|frame| frame.unwrap().1)
        .collect();
    match frames
        .iter()
        .find(|frame| !matches!(frame, Frame::Padding { .. }))
    {
        Some(Frame::ConnectionClose(ConnectionClose::Transport { error, .. })) => *error,
        other => panic!("{other:?} instead of CONNECTION_CLOSE"),
    }
}

/// A generator for what needs one.
pub(super) fn rng() -> rand_chacha::ChaCha20Rng {
    rand_core::SeedableRng::from_seed([5; 32])
}
