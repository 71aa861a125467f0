//! CONNECTION_CLOSE packets (RFC 9000, section 10.2).

use swiftwater_units::Instant;

use crate::crypto::EncryptionLevel;
use crate::datagram_size::MIN_INITIAL_SIZE;
use crate::space::SpaceId;
use crate::transmit::Transmit;

use super::super::Connection;

impl Connection {
    /// Sends our close, in every encryption level that the peer may be able to read.
    pub(super) fn transmit_close(&mut self, now: Instant, buf: &mut [u8]) -> Option<Transmit> {
        let frame = self.lifecycle.close_to_send()?.clone();
        let path = self.paths.primary();
        let (id, link) = (path.id, &path.link);
        let budget = usize::try_from(link.amplification.budget()).unwrap_or(usize::MAX);
        let limit = usize::from(link.mtu.current()).min(buf.len()).min(budget);
        let levels = EncryptionLevel::SPACES.into_iter().filter(|&level| {
            self.handshake.keys().has(level)
                && self.paths.space(SpaceId::of(level, id)).is_some()
                && (level != EncryptionLevel::OneRtt || self.handshake.is_complete())
        });
        let levels: Vec<EncryptionLevel> = levels.collect();
        self.lifecycle.on_close_sent();
        let (mut transmission, buffers) = self.transmission(now, id)?;
        let mut size = 0;
        for (nth, &level) in levels.iter().enumerate() {
            let is_last = nth + 1 == levels.len();
            let pads =
                is_last && levels[0] == EncryptionLevel::Initial && limit >= MIN_INITIAL_SIZE;
            let pad_to = if pads {
                MIN_INITIAL_SIZE.saturating_sub(size)
            } else {
                0
            };
            let frame = frame.for_level(level);
            let out = &mut buf[size..limit];
            // A close that can't be protected is not sent: the peer's idle timeout ends it.
            let built = transmission.build_close(level, &frame, pad_to, out, buffers);
            size += built.unwrap_or(0);
        }
        if size == 0 {
            return None;
        }
        transmission.path.link.on_datagram_sent(size);
        transmission.monitor.on_datagram_sent(size);
        let address = transmission.path.link.address;
        Some(Transmit::single(id, &address, None, size))
    }
}
