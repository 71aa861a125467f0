//! Probes of a path on which nothing arrives although data are expected.
//!
//! An end that only receives has nothing in flight, so that no probe timeout expires when its path
//! dies. If a NAT gave it another address, the server can't find it either, and both would wait for
//! the idle timeout. A PING ends that: a path that is alive answers, and a server follows it to the
//! new address (RFC 9000, sections 9.3 and 10.1.2; RFC 9308, section 3.2).
//!
//! On a path that works nothing is sent: data keep arriving, or nothing is expected. While a peer
//! takes its time over an answer, the intervals double.

use std::time::Duration;

use swiftwater_units::Instant;

use super::super::Connection;

/// Probe timeouts without a packet that count as silence.
const SILENT_PTOS: u32 = 3;
/// Shortest time that counts as silence.
const MIN_SILENCE: Duration = Duration::from_secs(1);
/// Doublings of the interval at most.
const MAX_DOUBLINGS: u8 = 16;

/// Probes sent since stream data made progress.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::connection) struct Liveness {
    /// `Streams::progress` when silence was last acted on, its lower bits: a connection is small.
    progress: u32,
    /// Probes since then; `None` if no data were expected: that changes with progress only.
    probes: Option<u8>,
}

impl Liveness {
    /// How many times the interval is doubled; `None` if nothing is to be done.
    fn doublings(self, progress: u64) -> Option<u8> {
        if self.progress == progress as u32 {
            self.probes
        } else {
            Some(0)
        }
    }

    /// Silence was noticed.
    fn on_silence(&mut self, progress: u64, awaits_data: bool) {
        let doublings = self.doublings(progress).unwrap_or_default();
        self.probes = awaits_data.then_some(doublings.saturating_add(1).min(MAX_DOUBLINGS));
        self.progress = progress as u32;
    }
}

impl Connection {
    /// When the peer's silence is to be acted on. What is in flight has a probe timeout of its own.
    pub(in crate::connection) fn silence_deadline(&self) -> Option<Instant> {
        let space = &self.paths.primary().space;
        if self.identity.side.is_server()
            || !self.handshake.is_confirmed()
            || space.ping
            || space.ledger.eliciting_in_flight() > 0
        {
            return None;
        }
        let doublings = self.lifecycle.liveness.doublings(self.streams.progress())?;
        let silence = (self.longest_pto() * SILENT_PTOS).max(MIN_SILENCE);
        Some(self.lifecycle.last_activity() + silence.saturating_mul(1 << doublings))
    }

    /// The peer has been silent for long: asks whether the path is alive if data are expected.
    pub(in crate::connection) fn on_silence(&mut self) {
        let awaits_data = self.streams.is_awaiting_data();
        let progress = self.streams.progress();
        self.lifecycle.liveness.on_silence(progress, awaits_data);
        if awaits_data {
            self.ping();
        }
    }
}
