//! Probes of a connection on which nothing arrives although data are expected; one state for all of its
//! paths.
//!
//! An end that only receives has nothing in flight, so that no probe timeout expires when its path
//! fails. If a NAT gave it another address, the server can't find it either, and both would wait for
//! the idle timeout. A PING ends that: a path that works answers, and a server follows it to the
//! new address (RFC 9000, sections 9.3 and 10.1.2; RFC 9308, section 3.2).
//!
//! On a path that works nothing is sent: data keep arriving, or nothing is expected. While a peer
//! takes its time over an answer, the intervals double.

/// Doublings of the interval at most.
const MAX_DOUBLINGS: u8 = 16;

/// Probes sent since stream data made progress.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Liveness {
    /// `Streams::progress` when a connection without packets was last probed, its lower bits: a connection is small.
    progress: u32,
    /// Probes since then; `None` if no data were expected: that changes with progress only.
    probes: Option<u8>,
}

impl Liveness {
    /// How many times the interval is doubled; `None` if nothing is to be done.
    pub(crate) fn doublings(self, progress: u64) -> Option<u8> {
        if self.progress == progress as u32 {
            self.probes
        } else {
            Some(0)
        }
    }

    /// Nothing was received for the time of a probe.
    pub(crate) fn on_silence(&mut self, progress: u64, awaits_data: bool) {
        let doublings = self.doublings(progress).unwrap_or_default();
        self.probes = awaits_data.then_some(doublings.saturating_add(1).min(MAX_DOUBLINGS));
        self.progress = progress as u32;
    }
}
