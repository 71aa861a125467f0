//! Opening packets: whether there are keys, header protection, packet number, authentication, duplicates
//! (RFC 9001, sections 5.3 to 5.7 and 9.5).

use std::ops::Range;

use swiftwater_wire::{ErrorCode, PlainFirstByte, TruncatedPacketNumber};

use crate::crypto::EncryptionLevel;
use crate::error::TransportError;
use crate::handshake::{Fit, KeysUnavailable, OpenError, Opened, PacketName};
use crate::observe::Observation;
use crate::space::SpaceId;
use crate::transmit::DatagramMeta;

use super::{OpenedPacket, Origin, ProtectedPacket, Received, Reception};

impl Reception<'_> {
    /// Removes the protection of a packet, or buffers or drops it. `Err` closes the connection.
    #[inline]
    pub(crate) fn receive(
        &mut self,
        meta: &DatagramMeta,
        origin: &Origin<'_>,
        packet: &mut ProtectedPacket<'_>,
    ) -> Result<Received, TransportError> {
        let (level, header) = (packet.level, packet.header);
        if level == EncryptionLevel::ZeroRtt && self.identity.side.is_client() {
            return Ok(self.dropped("early data of a server"));
        }
        let fit = match level {
            EncryptionLevel::OneRtt => Fit::Current,
            level => self.handshake.fit(level, header.version),
        };
        if let Err(reason) = self.check_header(level, fit, origin) {
            return Ok(self.dropped(reason));
        }
        if !self.can_open(level) || fit == Fit::NotYet {
            return Ok(self.on_packet_without_keys(meta, level, packet.bytes));
        }
        if let Err(reason) = self.check_source(level, header) {
            return Ok(self.dropped(reason));
        }
        let opened = match fit {
            Fit::Other => self.open_other_version(origin, packet)?,
            _ => self.open_packet(origin, packet)?,
        };
        Ok(opened.map_or(Received::Dropped, Received::Opened))
    }

    /// Removes the protection of a packet that came after the connection closed; where its plaintext
    /// lies, `None` if it can't be opened.
    pub(crate) fn receive_after_close(
        &mut self,
        origin: &Origin<'_>,
        packet: &mut ProtectedPacket<'_>,
    ) -> Option<Range<usize>> {
        let level = packet.level;
        let is_ours = match level {
            EncryptionLevel::OneRtt => true,
            EncryptionLevel::ZeroRtt => false,
            EncryptionLevel::Initial | EncryptionLevel::Handshake => {
                packet.header.version == self.handshake.version()
            }
        };
        if !is_ours || !self.can_open(level) {
            return None;
        }
        let opened = self.open_packet(origin, packet).ok()??;
        Some(opened.payload)
    }

    /// There are no keys for a packet: keys that are discarded never come back, those that are not
    /// there yet may come.
    fn on_packet_without_keys(
        &mut self,
        meta: &DatagramMeta,
        level: EncryptionLevel,
        bytes: &[u8],
    ) -> Received {
        let keys = self.handshake.keys();
        if level == EncryptionLevel::ZeroRtt && keys.has(EncryptionLevel::OneRtt) {
            let early_data = &mut self.establishment.early_data;
            early_data.on_packet_refused(self.now, self.monitor);
            return self.dropped("early data were rejected");
        }
        let may_come = !self.handshake.is_complete() && level != EncryptionLevel::Initial;
        let buffered = &mut self.establishment.buffered;
        if !may_come || !buffered.keep(self.now, meta, bytes) {
            return self.dropped("no keys");
        }
        let size = bytes.len();
        let observation = Observation::PacketBuffered { level, size };
        self.monitor.observe(self.now, &observation);
        let has_handshake_keys = self.handshake.keys().has(EncryptionLevel::Handshake);
        Received::Buffered {
            misses_initial: self.identity.side.is_client() && !has_handshake_keys,
        }
    }

    /// True if there are keys and it is time to use them: a server must not open 1-RTT packets
    /// before the handshake is complete (RFC 9001, section 5.7).
    fn can_open(&self, level: EncryptionLevel) -> bool {
        self.handshake.keys().has(level)
            && (level != EncryptionLevel::OneRtt || self.handshake.is_complete())
    }

    /// Opens an Initial packet of another version than the current one. A client finds out from it which
    /// version the server has chosen (RFC 9369, section 4.1).
    fn open_other_version(
        &mut self,
        origin: &Origin<'_>,
        packet: &mut ProtectedPacket<'_>,
    ) -> Result<Option<OpenedPacket>, TransportError> {
        let version = packet.header.version;
        self.handshake.exchange_initial(version);
        let opened = self.open_packet(origin, packet);
        if matches!(opened, Ok(Some(_))) && self.identity.side.is_client() {
            self.handshake.follow_server(version)?;
            // Handshake packets of that version may have come first.
            self.establishment.buffered.on_new_keys();
        } else {
            self.handshake.exchange_initial(self.handshake.version());
        }
        opened
    }

    /// Removes the protection of a packet; `None` if it is dropped.
    #[inline]
    fn open_packet(
        &mut self,
        origin: &Origin<'_>,
        packet: &mut ProtectedPacket<'_>,
    ) -> Result<Option<OpenedPacket>, TransportError> {
        let (level, pn_offset) = (packet.level, packet.header.pn_offset);
        let id = SpaceId::of(level, origin.path);
        let (Ok(mut keys), Some(path)) =
            (self.handshake.active_keys(), self.paths.get(origin.path))
        else {
            return Err(KeysUnavailable.into());
        };
        if !keys.unprotect_header(level, pn_offset, packet.bytes) {
            self.monitor.dropped(self.now, "too short");
            return Ok(None);
        }
        let first = PlainFirstByte(packet.bytes[0]);
        let pn_len = first.packet_number_len();
        let header_len = pn_offset + pn_len;
        let truncated = packet.bytes[pn_offset..header_len].iter();
        let value = truncated.fold(0, |value, &byte| (value << 8) | u32::from(byte));
        let truncated = TruncatedPacketNumber { value, len: pn_len };
        let mut phase_numbers = path.key_phase_numbers;
        let Some(space) = self.paths.space(id) else {
            return Ok(None);
        };
        let number = truncated.expand(space.received.largest());
        let is_duplicate = space.received.is_duplicate(number);
        let name = PacketName {
            level,
            path: origin.path,
            number,
        };
        let (header, payload) = packet.bytes.split_at_mut(header_len);
        let opened = keys.open(name, &mut phase_numbers, first.key_phase(), header, payload);
        let Some(opened) = self.check_opened(opened)? else {
            return Ok(None);
        };
        // Not before: an attacker that guesses packet numbers must not be able to infer from the time
        // that an answer takes (RFC 9001, section 9.5).
        if is_duplicate {
            self.monitor.dropped(self.now, "duplicate");
            return Ok(None);
        }
        if first.reserved_bits() != 0 {
            return Err(TransportError::new(
                ErrorCode::PROTOCOL_VIOLATION,
                "reserved header bits are set",
            ));
        }
        self.on_key_phase(name, opened, phase_numbers)?;
        Ok(Some(OpenedPacket {
            level,
            number,
            payload: header_len..header_len + opened.len,
            size: packet.bytes.len(),
        }))
    }

    /// Counts what failed authentication; `None` if the packet is dropped.
    fn check_opened(
        &mut self,
        opened: Result<Opened, OpenError>,
    ) -> Result<Option<Opened>, TransportError> {
        match opened {
            Ok(opened) => Ok(Some(opened)),
            Err(OpenError::Inauthentic | OpenError::NoKeys) => {
                self.monitor.dropped(self.now, "failed authentication");
                Ok(None)
            }
            Err(OpenError::KeyUpdate) => Err(TransportError::new(
                ErrorCode::KEY_UPDATE_ERROR,
                "a key update that is not permitted yet",
            )),
            Err(OpenError::IntegrityLimit) => Err(TransportError::new(
                ErrorCode::AEAD_LIMIT_REACHED,
                "too many packets failed authentication",
            )),
        }
    }
}
