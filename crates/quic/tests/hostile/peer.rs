//! A QUIC peer driven by hand: it does the handshake as it should, and then says whatever a test
//! wants, in whichever packet the test wants.
//!
//! It has no recovery, no timers and no opinions. Also used by the fuzz targets.

#![allow(
    clippy::unwrap_used,
    dead_code,
    reason = "each user takes a part; a failed unwrap is a failed test"
)]

use std::collections::BTreeMap;
use std::sync::Arc;

use swiftwater_quic::crypto::{
    ClientCrypto, EarlyKeys, EncryptionLevel, KeyPair, Keys, NewKeys, PacketKey, Primitives,
    ServerCrypto, Session,
};
use swiftwater_quic::wire::frame::{self, ConnectionClose, FrameIter};
use swiftwater_quic::wire::{
    ConnectionId, Frame, Header, MultipathVersion, PacketType, PartialHeader, PlainFirstByte,
    ResetToken, TransportParameters, TruncatedPacketNumber, Writer, write_retry,
};
use swiftwater_units::{PacketNumber, PathId, Side};

use crate::coding::{ack, acknowledges, cid, encode, ranges};
use crate::persona::Persona;

/// One packet to send; everything but the payload has a well-behaved default.
#[derive(Clone)]
pub(crate) struct Packet<'a> {
    pub(crate) level: EncryptionLevel,
    pub(crate) payload: &'a [u8],
    /// Instead of the next packet number.
    pub(crate) number: Option<u64>,
    /// Instead of the victim's connection ID.
    pub(crate) dst: Option<ConnectionId>,
    /// Instead of our own connection ID.
    pub(crate) src: Option<ConnectionId>,
    pub(crate) token: &'a [u8],
    /// Bits set in the first byte before protection.
    pub(crate) bits: u8,
    /// 1-RTT keys of this generation instead of the newest.
    pub(crate) generation: Option<usize>,
    /// The QUIC bit.
    pub(crate) quic_bit: bool,
    /// Send as 0-RTT, with the keys of `level`.
    pub(crate) zero_rtt: bool,
    /// The path whose packet number space and nonce it has; the destination must fit.
    pub(crate) path: PathId,
}

impl<'a> Packet<'a> {
    pub(crate) fn new(level: EncryptionLevel, payload: &'a [u8]) -> Self {
        Self {
            level,
            payload,
            number: None,
            dst: None,
            src: None,
            token: &[],
            bits: 0,
            generation: None,
            quic_bit: true,
            zero_rtt: false,
            path: PathId::ZERO,
        }
    }
}

/// A packet of the victim that was opened.
#[derive(Clone, Debug)]
pub(crate) struct Opened {
    pub(crate) level: EncryptionLevel,
    pub(crate) number: u64,
    pub(crate) payload: Vec<u8>,
    pub(crate) generation: usize,
    pub(crate) dst: ConnectionId,
    /// Of a long header.
    pub(crate) version: u32,
    pub(crate) quic_bit: bool,
    /// The path that its connection ID belongs to.
    pub(crate) path: PathId,
}

impl Opened {
    /// Its frames, each with its type.
    pub(crate) fn frames(&self) -> impl Iterator<Item = (u64, Frame<'_>)> {
        FrameIter::new(&self.payload).map(Result::unwrap)
    }
}

/// A CONNECTION_CLOSE of the victim.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Close {
    pub(crate) level: EncryptionLevel,
    /// Error code.
    pub(crate) code: u64,
    /// Frame type at fault; `None` for an application's close.
    pub(crate) frame_type: Option<u64>,
}

/// Handshake bytes of one encryption level.
#[derive(Default)]
struct CryptoBytes {
    arrived: BTreeMap<u64, Vec<u8>>,
    read: u64,
    to_send: Vec<u8>,
    sent: u64,
}

/// The peer.
pub(crate) struct RawPeer {
    side: Side,
    /// The version of its packets with long headers. It reads every one.
    pub(crate) version: u32,
    /// Connection ID from which Initial keys are derived.
    initial_cid: ConnectionId,
    session: Box<dyn Session>,
    primitives: Arc<dyn Primitives>,
    early: [Option<Keys>; 2],
    /// Keys of early data, if a client resumes.
    zero_rtt: Option<EarlyKeys>,
    header: Option<KeyPair<dyn swiftwater_quic::crypto::HeaderKey>>,
    /// 1-RTT packet keys by generation.
    generations: Vec<KeyPair<dyn PacketKey>>,
    /// Generation used for sending.
    pub(crate) generation: usize,
    write_level: EncryptionLevel,
    crypto: [CryptoBytes; 3],
    next: [u64; 3],
    largest: [Option<u64>; 3],
    /// Numbers received and not acknowledged, and whether that is due.
    unacked: [Vec<u64>; 3],
    eliciting: [bool; 3],
    /// Acknowledge what arrives when answering.
    pub(crate) acknowledges: bool,
    /// Our connection ID.
    pub(crate) cid: ConnectionId,
    /// The victim's.
    pub(crate) dst: ConnectionId,
    /// The destination of the client's first Initial.
    pub(crate) original_dst: ConnectionId,
    token: Vec<u8>,
    /// Our connection IDs of paths other than that of the handshake.
    path_cids: BTreeMap<ConnectionId, PathId>,
    /// The next number on each of those paths, and the largest that came.
    path_numbers: BTreeMap<PathId, (u64, Option<u64>)>,
    /// Every packet of the victim that could be opened.
    pub(crate) packets: Vec<Opened>,
    /// Packets that could not.
    pub(crate) unopened: usize,
}

impl RawPeer {
    /// A client that is about to send its first Initial.
    pub(crate) fn client(crypto: &dyn ClientCrypto, persona: &Persona) -> Self {
        let encoded = persona.encode(Side::Client, |_| {});
        let session = crypto
            .start_session(persona.version, "localhost", &encoded)
            .unwrap();
        let dst = cid(b"firstdst");
        let mut peer = Self::new(Side::Client, session, crypto.primitives(), persona, dst);
        peer.dst = dst;
        peer.drain_session();
        peer.zero_rtt = peer.session.early_keys();
        peer
    }

    /// A server that got `datagram`, the client's first, but has not read it yet. `retry` is set if
    /// the client was sent a Retry: the destination of its very first Initial.
    pub(crate) fn server(
        crypto: &dyn ServerCrypto,
        persona: &Persona,
        datagram: &[u8],
        retried: Option<ConnectionId>,
    ) -> Self {
        let header = PartialHeader::parse(datagram, 0).unwrap();
        let encoded = persona.encode(Side::Server, |parameters| {
            parameters.original_destination_connection_id = Some(retried.unwrap_or(header.dst_cid));
            parameters.retry_source_connection_id = retried.map(|_| header.dst_cid);
        });
        let session = crypto.start_session(persona.version, &encoded).unwrap();
        let primitives = crypto.primitives();
        let mut peer = Self::new(Side::Server, session, primitives, persona, header.dst_cid);
        peer.dst = header.src_cid;
        peer
    }

    fn new(
        side: Side,
        session: Box<dyn Session>,
        primitives: Arc<dyn Primitives>,
        persona: &Persona,
        original_dst: ConnectionId,
    ) -> Self {
        let initial = primitives.initial_keys(persona.version, &original_dst, side);
        Self {
            side,
            version: persona.version,
            initial_cid: original_dst,
            session,
            primitives,
            early: [Some(initial), None],
            zero_rtt: None,
            header: None,
            generations: Vec::new(),
            generation: 0,
            write_level: EncryptionLevel::Initial,
            crypto: Default::default(),
            next: [0; 3],
            largest: [None; 3],
            unacked: Default::default(),
            eliciting: [false; 3],
            acknowledges: true,
            cid: persona.cid,
            dst: ConnectionId::EMPTY,
            original_dst,
            token: Vec::new(),
            path_cids: BTreeMap::new(),
            path_numbers: BTreeMap::new(),
            packets: Vec::new(),
            unopened: 0,
        }
    }

    /// True once TLS is complete.
    pub(crate) fn is_complete(&self) -> bool {
        !self.session.is_handshaking()
    }

    /// True if packets of `level` can be sealed.
    pub(crate) fn has_keys(&self, level: EncryptionLevel) -> bool {
        match level {
            EncryptionLevel::OneRtt => self.header.is_some(),
            EncryptionLevel::ZeroRtt => self.zero_rtt.is_some(),
            early => self.early[early as usize].is_some(),
        }
    }

    /// The victim's transport parameters.
    pub(crate) fn victims_parameters(&self) -> TransportParameters {
        let bytes = self.session.peer_transport_parameters().unwrap();
        TransportParameters::decode(bytes, !self.side).unwrap()
    }

    /// Moves to the next generation of 1-RTT keys.
    pub(crate) fn update_keys(&mut self) {
        self.generation += 1;
        self.derive_up_to(self.generation);
    }

    fn derive_up_to(&mut self, generation: usize) {
        while self.generations.len() <= generation {
            let next = self.session.next_packet_keys().unwrap();
            self.generations.push(next);
        }
    }

    /// A server that accepts early data keeps their keys, to send what it must not.
    pub(crate) fn take_early_keys(&mut self) {
        self.zero_rtt = self.session.early_keys();
    }

    /// The packet number that the next packet of `level` gets.
    pub(crate) fn next_number(&self, level: EncryptionLevel) -> u64 {
        self.next[level as usize]
    }

    /// Skips packet numbers.
    pub(crate) fn set_next_number(&mut self, level: EncryptionLevel, number: u64) {
        self.next[level as usize] = number;
    }

    /// Handshake bytes that wait to be sent in `level`, taken: the test sends them, or not.
    pub(crate) fn take_crypto(&mut self, level: EncryptionLevel) -> Vec<u8> {
        let crypto = &mut self.crypto[level as usize];
        crypto.sent += crypto.to_send.len() as u64;
        std::mem::take(&mut crypto.to_send)
    }

    /// Where the handshake bytes sent in `level` end.
    pub(crate) fn crypto_offset(&self, level: EncryptionLevel) -> u64 {
        self.crypto[level as usize].sent
    }

    /// Seals one packet.
    pub(crate) fn seal(&mut self, packet: &Packet<'_>) -> Vec<u8> {
        let level = packet.level;
        let space = match level {
            EncryptionLevel::ZeroRtt => EncryptionLevel::OneRtt as usize,
            level => level as usize,
        };
        let next = match packet.path {
            PathId::ZERO => &mut self.next[space],
            path => &mut self.path_numbers.entry(path).or_default().0,
        };
        let number = packet.number.unwrap_or(*next);
        *next = (*next).max(number + 1);
        let generation = packet.generation.unwrap_or(self.generation);
        if level == EncryptionLevel::OneRtt {
            self.derive_up_to(generation);
        }
        let (dst, src) = (
            packet.dst.unwrap_or(self.dst),
            packet.src.unwrap_or(self.cid),
        );
        let token = match packet.token {
            [] => &self.token,
            token => token,
        };
        let header = match level {
            _ if packet.zero_rtt => Header::ZeroRtt { dst, src },
            EncryptionLevel::ZeroRtt => Header::ZeroRtt { dst, src },
            EncryptionLevel::Initial => Header::Initial { dst, src, token },
            EncryptionLevel::Handshake => Header::Handshake { dst, src },
            EncryptionLevel::OneRtt => Header::OneRtt {
                dst,
                spin: false,
                key_phase: generation % 2 == 1,
            },
        };
        let (header_key, packet_key) = match level {
            EncryptionLevel::OneRtt => (
                &self.header.as_ref().unwrap().local,
                &self.generations[generation].local,
            ),
            EncryptionLevel::ZeroRtt => {
                let keys = self.zero_rtt.as_ref().unwrap();
                (&keys.header, &keys.packet)
            }
            early => {
                let keys = self.early[early as usize].as_ref().unwrap();
                (&keys.header.local, &keys.packet.local)
            }
        };
        let truncated = TruncatedPacketNumber {
            value: number as u32,
            len: 4,
        };
        let size = header.size(truncated.len) + packet.payload.len() + packet_key.tag_len();
        let mut out = vec![0; size];
        let mut writer = Writer::new(&mut out);
        let layout = header.encode(self.version, truncated, &mut writer);
        writer.bytes(packet.payload);
        if level != EncryptionLevel::OneRtt {
            layout.patch_length(&mut out, size - layout.pn_offset);
        }
        out[0] |= packet.bits;
        if !packet.quic_bit {
            layout.clear_quic_bit(&mut out);
        }
        packet_key.encrypt(
            packet.path,
            PacketNumber::new(number),
            layout.header_len,
            &mut out,
        );
        header_key.encrypt(layout.pn_offset, &mut out);
        out
    }

    /// The frame that gives the victim our only connection ID for a path, `version` of the extension.
    pub(crate) fn issue_path_cid(&mut self, version: MultipathVersion, path: PathId) -> Vec<u8> {
        let mut bytes = *b"path0000";
        bytes[4..].copy_from_slice(&path.get().to_be_bytes());
        let cid = cid(&bytes);
        self.path_cids.insert(cid, path);
        let frame = Frame::NewConnectionId(frame::NewConnectionId {
            path: Some(path),
            sequence: 0,
            retire_prior_to: 0,
            cid,
            reset_token: ResetToken(*b"resets this path"),
        });
        let mut out = vec![0; frame.size_in(version)];
        frame.encode_in(version, &mut Writer::new(&mut out));
        out
    }

    /// The newest connection ID that the victim issued for a path.
    pub(crate) fn victims_cid_of(&self, path: PathId) -> Option<ConnectionId> {
        let mut packets = self.packets.iter().rev();
        packets.find_map(|packet| {
            let mut frames = packet.frames();
            frames.find_map(|(_, frame)| match frame {
                Frame::NewConnectionId(new) if new.path == Some(path) => Some(new.cid),
                _ => None,
            })
        })
    }

    /// Seals a packet on a path that the victim issued a connection ID for, or else `None`.
    pub(crate) fn seal_on_path(&mut self, path: PathId, payload: &[u8]) -> Option<Vec<u8>> {
        self.seal_with_nonce(path, path, payload)
    }

    /// The same, with the space and nonce of any path.
    pub(crate) fn seal_with_nonce(
        &mut self,
        path: PathId,
        nonce: PathId,
        payload: &[u8],
    ) -> Option<Vec<u8>> {
        let dst = match path {
            PathId::ZERO => self.dst,
            path => self.victims_cid_of(path)?,
        };
        Some(self.seal(&Packet {
            dst: Some(dst),
            path: nonce,
            ..Packet::new(EncryptionLevel::OneRtt, payload)
        }))
    }

    /// Moves the number of the next packet on a path other than that of the handshake.
    pub(crate) fn skip_on_path(&mut self, path: PathId, distance: i16) {
        let next = &mut self.path_numbers.entry(path).or_default().0;
        *next = next.saturating_add_signed(distance.into());
    }

    /// Its role.
    pub(crate) fn side(&self) -> Side {
        self.side
    }

    /// Seals a 1-RTT packet.
    pub(crate) fn seal_payload(&mut self, payload: &[u8]) -> Vec<u8> {
        self.seal(&Packet::new(EncryptionLevel::OneRtt, payload))
    }

    /// Seals an Initial packet so that it fills a datagram of `size` bytes.
    pub(crate) fn seal_initial(&mut self, payload: &[u8], size: usize) -> Vec<u8> {
        let mut payload = payload.to_vec();
        let overhead = {
            let number = self.next_number(EncryptionLevel::Initial);
            let probe = self.seal(&Packet::new(EncryptionLevel::Initial, &payload));
            self.next[EncryptionLevel::Initial as usize] = number;
            probe.len()
        };
        payload.resize(payload.len() + size.saturating_sub(overhead), 0);
        self.seal(&Packet::new(EncryptionLevel::Initial, &payload))
    }

    /// What a well-behaved peer would say now: handshake bytes, acknowledgements, HANDSHAKE_DONE
    /// excepted. One datagram per packet; Initial ones have 1200 bytes.
    pub(crate) fn answers(&mut self) -> Vec<Vec<u8>> {
        let mut datagrams = Vec::new();
        for level in EncryptionLevel::SPACES {
            if !self.has_keys(level) {
                continue;
            }
            loop {
                let mut payload = self.ack_payload(level);
                let crypto = &mut self.crypto[level as usize];
                let len = crypto.to_send.len().min(1000);
                if len > 0 {
                    let data: Vec<u8> = crypto.to_send.drain(..len).collect();
                    let offset = crypto.sent;
                    crypto.sent += len as u64;
                    payload.extend(encode(&[Frame::Crypto(frame::Crypto {
                        offset,
                        data: &data,
                    })]));
                }
                if payload.is_empty() {
                    break;
                }
                datagrams.push(match level {
                    EncryptionLevel::Initial => self.seal_initial(&payload, 1200),
                    level => self.seal(&Packet::new(level, &payload)),
                });
            }
        }
        datagrams
    }

    /// An ACK frame for what arrived in `level`, if one is due and enabled.
    fn ack_payload(&mut self, level: EncryptionLevel) -> Vec<u8> {
        let at = level as usize;
        if !self.acknowledges || !std::mem::take(&mut self.eliciting[at]) {
            return Vec::new();
        }
        let numbers = std::mem::take(&mut self.unacked[at]);
        ack(&ranges(numbers), None)
    }

    /// Opens every packet of a datagram, notes what was in them, and reads handshake bytes.
    pub(crate) fn open(&mut self, datagram: &[u8]) {
        let mut rest = datagram;
        while !rest.is_empty() {
            let Ok(header) = PartialHeader::parse(rest, self.cid.len()) else {
                self.unopened += 1;
                return;
            };
            let (packet, tail) = rest.split_at(header.packet_len);
            rest = tail;
            let level = match header.packet_type {
                PacketType::Initial => EncryptionLevel::Initial,
                PacketType::Handshake => EncryptionLevel::Handshake,
                PacketType::OneRtt => EncryptionLevel::OneRtt,
                _ => continue,
            };
            match self.open_packet(level, &header, packet) {
                Some(opened) => self.on_opened(&header, opened),
                None => self.unopened += 1,
            }
        }
    }

    fn open_packet(
        &mut self,
        level: EncryptionLevel,
        header: &PartialHeader,
        packet: &[u8],
    ) -> Option<Opened> {
        let mut packet = packet.to_vec();
        let initial = self
            .primitives
            .initial_keys(header.version, &self.initial_cid, self.side);
        match level {
            EncryptionLevel::Initial => &initial.header.remote,
            EncryptionLevel::Handshake => &self.early[1].as_ref()?.header.remote,
            EncryptionLevel::OneRtt => &self.header.as_ref()?.remote,
            EncryptionLevel::ZeroRtt => return None,
        }
        .decrypt(header.pn_offset, &mut packet);
        let first = PlainFirstByte(packet[0]);
        let pn_len = first.packet_number_len();
        let (head, payload) = packet.split_at_mut(header.pn_offset + pn_len);
        let value = head[header.pn_offset..]
            .iter()
            .fold(0, |n, &byte| n << 8 | u32::from(byte));
        let path = match level {
            EncryptionLevel::OneRtt => self.path_cids.get(&header.dst_cid),
            _ => None,
        };
        let path = path.copied().unwrap_or_default();
        let largest = match path {
            PathId::ZERO => self.largest[level as usize],
            path => self.path_numbers.get(&path).and_then(|numbers| numbers.1),
        };
        let number =
            TruncatedPacketNumber { value, len: pn_len }.expand(largest.map(PacketNumber::new));
        let generations = match level {
            EncryptionLevel::OneRtt => {
                // One ahead: the victim may have moved on.
                self.derive_up_to(self.generations.len().max(self.generation + 2) - 1);
                (0..self.generations.len())
                    .filter(|generation| (generation % 2 == 1) == first.key_phase())
                    .collect()
            }
            _ => vec![0],
        };
        for generation in generations.into_iter().rev() {
            let key = match level {
                EncryptionLevel::Initial => &initial.packet.remote,
                EncryptionLevel::Handshake => &self.early[1].as_ref()?.packet.remote,
                EncryptionLevel::OneRtt => &self.generations[generation].remote,
                EncryptionLevel::ZeroRtt => return None,
            };
            let mut plain = payload.to_vec();
            if let Ok(len) = key.decrypt(path, number, head, &mut plain) {
                plain.truncate(len);
                return Some(Opened {
                    level,
                    number: number.get(),
                    payload: plain,
                    generation,
                    dst: header.dst_cid,
                    version: header.version,
                    quic_bit: header.quic_bit,
                    path,
                });
            }
        }
        None
    }

    fn on_opened(&mut self, header: &PartialHeader, opened: Opened) {
        let at = opened.level as usize;
        if opened.level == EncryptionLevel::Initial && self.side.is_client() {
            self.dst = header.src_cid;
        }
        if opened.path != PathId::ZERO {
            let numbers = self.path_numbers.entry(opened.path).or_default();
            numbers.1 = numbers.1.max(Some(opened.number));
            self.packets.push(opened);
            return;
        }
        self.largest[at] = self.largest[at].max(Some(opened.number));
        self.unacked[at].push(opened.number);
        for (_, frame) in opened.frames() {
            self.eliciting[at] |= frame.is_ack_eliciting();
            if let Frame::Crypto(crypto) = frame {
                self.crypto[at]
                    .arrived
                    .insert(crypto.offset, crypto.data.to_vec());
            }
        }
        let level = opened.level;
        self.packets.push(opened);
        self.read_crypto(level);
    }

    fn read_crypto(&mut self, level: EncryptionLevel) {
        let crypto = &mut self.crypto[level as usize];
        while let Some((offset, data)) = crypto.arrived.pop_first() {
            if offset > crypto.read {
                crypto.arrived.insert(offset, data);
                break;
            }
            let skip = ((crypto.read - offset) as usize).min(data.len());
            crypto.read += (data.len() - skip) as u64;
            // The victim behaves; whatever the session says against it is a bug.
            if !data[skip..].is_empty() {
                self.session.read_handshake(level, &data[skip..]).unwrap();
            }
        }
        self.drain_session();
    }

    fn drain_session(&mut self) {
        loop {
            let out = &mut self.crypto[self.write_level as usize].to_send;
            let before = out.len();
            let keys = self.session.write_handshake(out);
            let wrote = out.len() > before;
            match keys {
                Some(NewKeys { level, keys }) => {
                    self.write_level = level;
                    match level {
                        EncryptionLevel::OneRtt => {
                            self.header = Some(keys.header);
                            self.generations.push(keys.packet);
                        }
                        early => self.early[early as usize] = Some(keys),
                    }
                }
                None if !wrote => break,
                None => {}
            }
        }
    }

    /// Goes on as a client that got this Retry.
    pub(crate) fn follow_retry(&mut self, retry: &[u8]) {
        let header = PartialHeader::parse(retry, self.cid.len()).unwrap();
        self.token = retry[header.token].to_vec();
        self.dst = header.src_cid;
        let keys = self
            .primitives
            .initial_keys(self.version, &header.src_cid, self.side);
        self.initial_cid = header.src_cid;
        self.early[0] = Some(keys);
    }

    /// A Retry that answers the client's first datagram, with the integrity tag that QUIC requires.
    pub(crate) fn retry(
        primitives: &dyn Primitives,
        datagram: &[u8],
        src: ConnectionId,
        token: &[u8],
    ) -> Vec<u8> {
        let header = PartialHeader::parse(datagram, 0).unwrap();
        let mut out = vec![0; 7 + header.src_cid.len() + src.len() + token.len() + 16];
        let mut w = Writer::new(&mut out);
        write_retry(&mut w, header.version, header.src_cid, src, token, 0);
        let tag = primitives.retry_tag(header.version, &header.dst_cid, w.filled_mut());
        w.bytes(&tag);
        out
    }

    /// Every CONNECTION_CLOSE of the victim.
    pub(crate) fn closes(&self) -> Vec<Close> {
        let mut closes = Vec::new();
        for packet in &self.packets {
            for (_, frame) in packet.frames() {
                let (code, frame_type) = match frame {
                    Frame::ConnectionClose(ConnectionClose::Transport {
                        error,
                        frame_type,
                        ..
                    }) => (error.0, Some(frame_type)),
                    Frame::ConnectionClose(ConnectionClose::Application { error, .. }) => {
                        (error, None)
                    }
                    _ => continue,
                };
                closes.push(Close {
                    level: packet.level,
                    code,
                    frame_type,
                });
            }
        }
        closes
    }

    /// How many frames for which `wanted` holds the victim has sent.
    pub(crate) fn count(&self, wanted: impl Fn(&Frame<'_>) -> bool) -> usize {
        self.packets
            .iter()
            .flat_map(|packet| {
                packet
                    .frames()
                    .filter(|(_, frame)| wanted(frame))
                    .map(|_| ())
            })
            .count()
    }

    /// Every packet number that the victim sent in `level`.
    pub(crate) fn numbers(&self, level: EncryptionLevel) -> Vec<u64> {
        self.packets
            .iter()
            .filter(|packet| packet.level == level && packet.path == PathId::ZERO)
            .map(|packet| packet.number)
            .collect()
    }

    /// True if the victim acknowledged `number` of `level`.
    pub(crate) fn is_acked(&self, level: EncryptionLevel, number: u64) -> bool {
        self.packets.iter().any(|packet| {
            packet.level == level
                && packet.frames().any(|(_, frame)| match frame {
                    Frame::Ack(ack) if ack.path.unwrap_or_default() == PathId::ZERO => {
                        acknowledges(&ack, number)
                    }
                    _ => false,
                })
        })
    }

    /// Connection IDs that the victim issued, with sequence number and token.
    pub(crate) fn issued(&self) -> Vec<(u64, ConnectionId, ResetToken)> {
        self.packets
            .iter()
            .flat_map(|packet| {
                packet.frames().filter_map(|(_, frame)| match frame {
                    Frame::NewConnectionId(new) => Some((new.sequence, new.cid, new.reset_token)),
                    _ => None,
                })
            })
            .collect()
    }
}
