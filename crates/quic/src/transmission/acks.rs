//! Acknowledgements: which packets carry those of which paths, and when one is due (RFC 9000, section 13.2;
//! draft-ietf-quic-multipath-21, sections 4.1 and 5.3; -10, sections 6.3 and 7.1).

use swiftwater_units::PathId;
use swiftwater_wire::frame;

use crate::crypto::EncryptionLevel;
use crate::frame_writer::{Carried, FrameWriter};
use crate::path::PathState;
use crate::space::Space;

use super::Transmission;
use super::plan::Packet;

impl Transmission<'_> {
    /// True if an acknowledgement of 1-RTT packets is to be sent on the path now.
    #[inline]
    pub(super) fn ack_is_due(&self) -> bool {
        let is_due = |path: &PathState| path.space.received.ack_is_due(self.now);
        let Some(route) = self.ack_route else {
            return is_due(self.path);
        };
        let id = self.path.id;
        let carries = |path: &PathState| route.carrier(path) == id && is_due(path);
        carries(self.path) || self.others.iter().any(carries)
    }

    /// Appends the acknowledgements that the packet is to carry.
    pub(super) fn fill_acks(&mut self, packet: Packet, writer: &mut FrameWriter<'_, '_>) {
        if packet.level != EncryptionLevel::OneRtt {
            return self.fill_handshake_ack(packet.level, writer);
        }
        // A packet that elicits an acknowledgement repeats this end's: the last ACK may have been lost, and the
        // peer backs off while it waits for it. Not in Initial and Handshake packets: their ACKs carry no
        // delay, so a late one would look like a long round trip.
        let repeats = packet.data && (packet.probe || self.path.space.ping);
        let exponent = self.identity.config.ack_delay_exponent;
        let (now, id, route) = (self.now, self.path.id, self.ack_route);
        let own = std::iter::once((repeats, &mut *self.path));
        let others = self.others.iter_mut().map(|path| (false, path));
        for (repeats, path) in own.chain(others) {
            let named = match route {
                None if path.id == id => None,
                Some(route) if route.carrier(path) == id => Some(path.id),
                _ => continue,
            };
            let received = &mut path.space.received;
            if received.has_unacked() || repeats {
                let delay = (received.ack_delay(now).as_micros() as u64) >> exponent;
                write_ack(&mut path.space, (path.id, named), delay, writer);
            }
        }
    }

    fn fill_handshake_ack(&mut self, level: EncryptionLevel, writer: &mut FrameWriter<'_, '_>) {
        let path = self.path.id;
        if let Some(space) = self.space_mut(level)
            && space.received.has_unacked()
        {
            write_ack(space, (path, None), 0, writer);
        }
    }
}

/// Acknowledges what was received in `space`, which belongs to `path`; the frame names `named`.
fn write_ack(
    space: &mut Space,
    (path, named): (PathId, Option<PathId>),
    delay: u64,
    writer: &mut FrameWriter<'_, '_>,
) {
    let received = &mut space.received;
    let Some(largest) = received.largest() else {
        return;
    };
    let (room, version) = (writer.remaining(), writer.multipath_version());
    let written = frame::write_ack(
        writer.raw(),
        (version, named),
        received.ranges(),
        delay,
        received.ecn(),
        room,
    );
    if let Some(ranges) = written {
        received.on_ack_sent(ranges);
        writer.wrote(Carried::Ack { path, largest }, false);
    }
}
