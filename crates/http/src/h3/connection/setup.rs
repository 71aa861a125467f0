//! Start of the connection: the unidirectional streams and SETTINGS of this end (RFC 9114, sections
//! 3.2, 6.2 and 7.2.4), and reserved values (greasing; sections 6.2.3, 7.2.4.1 and 7.2.8).

use swiftwater_quic as quic;
use swiftwater_units::{Dir, Instant, StreamId};

use super::Connection;
use crate::h3::code::Code;
use crate::h3::error::Fault;
use crate::h3::event::Event;
use crate::h3::frame::{FrameType, put_frame};
use crate::h3::grease::Grease;
use crate::h3::stream_type::{StreamType, put_int};

impl Connection {
    /// Data can be sent: 0-RTT or 1-RTT keys are available.
    pub(super) fn on_ready(&mut self, now: Instant, quic: &mut quic::Connection) {
        if self.reports.ready {
            return;
        }
        self.reports.ready = true;
        self.write_preamble();
        self.open_own_streams(now, quic);
        if self.side.is_client() {
            self.report(Event::Ready);
        }
    }

    /// First bytes of the streams of this end.
    fn write_preamble(&mut self) {
        let grease = self.config.grease.map(Grease::new);
        let mut settings = self.config.settings(self.side).to_bytes();
        let control = self.own.control.out();
        put_int(control, StreamType::Control.to_wire());
        if let Some(grease) = &grease {
            put_int(&mut settings, grease.setting());
            put_int(&mut settings, grease.value());
        }
        put_frame(control, FrameType::Settings, &settings);
        if let Some(grease) = &grease {
            let frame_type = FrameType::Unknown(grease.frame_type());
            put_frame(control, frame_type, &grease.payload());
        }
        put_int(self.own.encoder.out(), StreamType::QpackEncoder.to_wire());
        put_int(self.own.decoder.out(), StreamType::QpackDecoder.to_wire());
    }

    /// Opens those streams of this end that the peer's stream limit permits now.
    pub(super) fn open_own_streams(&mut self, now: Instant, quic: &mut quic::Connection) {
        if !self.reports.ready {
            return;
        }
        while let Some(stream) = self.own.unopened() {
            let Some(id) = quic.open(Dir::Uni) else {
                return;
            };
            stream.open(id);
            // All other streams depend on the critical ones.
            let _ = quic
                .send_stream(id)
                .set_priority(quic::Priority::new(0, true));
        }
        self.flush_own_streams(now, quic);
        self.open_grease_stream(quic);
    }

    fn open_grease_stream(&mut self, quic: &mut quic::Connection) {
        let Some(seed) = self.config.grease else {
            return;
        };
        if std::mem::replace(&mut self.own.greased, true) {
            return;
        }
        let grease = Grease::new(seed);
        let Some(id) = quic.open(Dir::Uni) else {
            return;
        };
        let mut bytes = Vec::new();
        put_int(&mut bytes, grease.stream_type());
        bytes.extend_from_slice(&grease.payload());
        let mut stream = quic.send_stream(id);
        // This stream may arrive in part: nothing depends on it.
        let _ = stream.write(&bytes).and_then(|_| stream.finish());
    }

    /// Writes to the transport the waiting data of the control and QPACK streams.
    pub(super) fn flush_own_streams(&mut self, now: Instant, quic: &mut quic::Connection) {
        let _ = self.own.flush(quic);
        if self.own.backlog() > self.config.limits.max_control_backlog {
            let reason = "no credit for control or QPACK streams";
            self.fail(now, quic, Fault::connection(Code::EXCESSIVE_LOAD, reason));
        }
    }

    /// True if `id` is a critical stream: STOP_SENDING for it is a connection error (RFC 9114,
    /// section 6.2.1).
    pub(super) fn is_critical(&self, id: StreamId) -> bool {
        self.own.owns(id)
    }
}
