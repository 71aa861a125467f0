//! ECN marks and their validation (RFC 9000, section 13.4 and appendix A.4).

use swiftwater_congestion::{EcnCounts, EctCodepoint};
use swiftwater_units::{Instant, PacketCount};

use crate::crypto::EncryptionLevel;
use crate::lazy_box::LazyBox;
use crate::observe::EcnState;
use crate::transmit::EcnCodepoint;

/// Packets marked while testing whether the path carries marks.
const TESTING_PACKETS: u8 = 10;
/// Packets that may still be marked for the test after a probe timeout: a side that only receives has
/// no timeout of its own, so its acknowledgements mustn't be risked for long.
const RETESTING_PACKETS: u8 = 2;
/// Probe timeouts, each after marked packets of which none was acknowledged, after which the path is
/// taken to drop marked packets.
const MAX_TIMEOUTS: u8 = 3;

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum State {
    /// Marked packets of the path before may still arrive, and the peer counts them together with
    /// those of this path: nothing is marked until then.
    Settling { until: Instant },
    /// Marking the first packets; those sent until `since` were not marked.
    Testing { sent: u8, since: Instant },
    /// The test packets are sent; not marking until one is acknowledged.
    Unknown { since: Instant },
    /// The path carries marks.
    Capable,
    /// It doesn't, or ECN is switched off.
    Failed,
}

/// Marks in one packet-number space: each counts for itself (RFC 9000, section 13.4.1).
#[derive(Clone, Copy, Debug, Default)]
struct Marks {
    /// Counts of the last ACK that raised the largest acknowledged packet.
    reported: [u64; 3],
    /// Packets that left with the mark, under all addresses.
    sent: u64,
}

/// ECN state of a path for one direction of sending.
#[derive(Debug)]
pub(crate) struct Ecn {
    state: State,
    /// The mark of packets sent: ECT(0) or ECT(1).
    codepoint: EcnCodepoint,
    /// Of 1-RTT packets.
    marks: Marks,
    /// Of Initial and Handshake packets.
    handshake_marks: LazyBox<[Marks; 2]>,
    /// Acknowledgements of unmarked packets alone, since the test packets are out.
    unmarked_acks: u64,
    /// The state that was emitted last.
    emitted: Option<EcnState>,
    /// The peer's counts include marks of another path: the next ones are taken as they are.
    stale: bool,
    /// CE marks reported in all.
    ce_total: u64,
    /// A probe timeout expired: nothing is marked until something is acknowledged, in case the
    /// marks are the reason.
    paused: bool,
    /// Marked packets were sent since one was acknowledged.
    unanswered: bool,
    /// Probe timeouts since a marked packet was acknowledged, repeated ones counting once.
    timeouts: u8,
}

impl Ecn {
    /// A path on which nothing was sent yet. `codepoint` is the controller's; nothing is
    /// marked unless `enabled`.
    pub(crate) fn new(enabled: bool, codepoint: EctCodepoint) -> Self {
        let state = if enabled && codepoint != EctCodepoint::NotEct {
            State::Testing {
                sent: 0,
                since: Instant::ZERO,
            }
        } else {
            State::Failed
        };
        Self {
            state,
            codepoint: match codepoint {
                EctCodepoint::Ect1 => EcnCodepoint::Ect1,
                EctCodepoint::NotEct | EctCodepoint::Ect0 => EcnCodepoint::Ect0,
            },
            marks: Marks::default(),
            handshake_marks: LazyBox::default(),
            unmarked_acks: 0,
            emitted: (state == State::Failed).then_some(EcnState::Failed),
            stale: false,
            ce_total: 0,
            paused: false,
            unanswered: false,
            timeouts: 0,
        }
    }

    /// Another path is in use, which has to be validated anew. The peer's counts go on, so the marks of
    /// the path before, which arrive until `settled_at`, must not count for this one. Returns what was
    /// known of the path before.
    pub(crate) fn restart(
        &mut self,
        enabled: bool,
        codepoint: EctCodepoint,
        settled_at: Instant,
    ) -> Self {
        let mut new = Self {
            marks: self.marks,
            handshake_marks: std::mem::take(&mut self.handshake_marks),
            emitted: self.emitted,
            ce_total: self.ce_total,
            stale: true,
            ..Self::new(enabled, codepoint)
        };
        new.settle(settled_at);
        std::mem::replace(self, new)
    }

    /// The path before is in use again, after `interim`, whose marks arrive until `settled_at`: what was
    /// known of it holds.
    pub(crate) fn resume(&mut self, interim: &Self, settled_at: Instant) {
        self.marks = interim.marks;
        self.emitted = interim.emitted;
        self.ce_total = interim.ce_total;
        self.stale = true;
        self.settle(settled_at);
    }

    /// A test that is to come, or is not decided, has to wait for the counts of another path's marks.
    fn settle(&mut self, until: Instant) {
        if matches!(self.state, State::Capable | State::Failed) {
            return;
        }
        self.unmarked_acks = 0;
        self.state = State::Settling { until };
    }

    /// The handshake is confirmed: no packet of its levels is acknowledged from now on.
    pub(crate) fn on_handshake_confirmed(&mut self) {
        self.handshake_marks.release();
    }

    fn marks_of(&mut self, level: EncryptionLevel) -> &mut Marks {
        match level.space() {
            EncryptionLevel::Initial => &mut self.handshake_marks.need()[0],
            EncryptionLevel::Handshake => &mut self.handshake_marks.need()[1],
            EncryptionLevel::ZeroRtt | EncryptionLevel::OneRtt => &mut self.marks,
        }
    }

    /// The mark for the next packet.
    pub(crate) fn mark(&self) -> Option<EcnCodepoint> {
        let marks = matches!(self.state, State::Testing { .. } | State::Capable) && !self.paused;
        marks.then_some(self.codepoint)
    }

    /// A packet of `level` is part of a datagram that will be marked.
    pub(crate) fn on_marked(&mut self, level: EncryptionLevel) {
        self.marks_of(level).sent += 1;
    }

    /// What is known, for observers.
    pub(crate) fn state(&self) -> EcnState {
        match self.state {
            State::Settling { .. } | State::Testing { .. } => EcnState::Testing,
            State::Unknown { .. } => EcnState::Unknown,
            State::Capable => EcnState::Capable,
            State::Failed => EcnState::Failed,
        }
    }

    /// The state, if it has changed since this was asked last.
    pub(crate) fn take_change(&mut self) -> Option<EcnState> {
        let state = self.state();
        (self.emitted.replace(state) != Some(state)).then_some(state)
    }

    /// A datagram with a mark was sent.
    pub(crate) fn on_sent(&mut self) {
        self.unanswered = true;
        if let State::Testing { sent, since } = &mut self.state {
            *sent += 1;
            if *sent >= TESTING_PACKETS {
                self.state = State::Unknown { since: *since };
            }
        }
    }

    /// Takes the counts as they are, as long as another path's marks are among them; then the test
    /// begins.
    fn settle_counts(
        &mut self,
        now: Instant,
        until: Instant,
        level: EncryptionLevel,
        counts: Option<[u64; 3]>,
    ) {
        if let Some(counts) = counts {
            self.marks_of(level).reported = counts;
        }
        if until <= now {
            self.stale = false;
            self.state = State::Testing {
                sent: 0,
                since: now,
            };
        }
    }

    /// True unless validation failed.
    pub(crate) fn is_usable(&self) -> bool {
        self.state != State::Failed
    }

    /// CE marks reported so far.
    pub(crate) fn ce_total(&self) -> u64 {
        self.ce_total
    }

    /// A probe timeout expired. The probes go unmarked, so that a path which drops marked packets
    /// costs one timeout instead of the connection.
    pub(crate) fn on_probe_timeout(&mut self) {
        // What failed isn't tested any more; a long connection has any number of timeouts.
        if !self.paused && self.unanswered && self.is_usable() {
            self.timeouts += 1;
            if self.timeouts >= MAX_TIMEOUTS {
                self.state = State::Failed;
            }
        }
        if let State::Testing { sent, .. } = &mut self.state {
            *sent = (*sent).max(TESTING_PACKETS - RETESTING_PACKETS);
        }
        self.paused = true;
    }

    /// An ACK of `level` that raised the largest acknowledged packet, sent at `sent_at`, newly
    /// acknowledged `newly_marked` packets that this end had marked. Returns the increases to act on.
    pub(crate) fn on_ack(
        &mut self,
        now: Instant,
        sent_at: Instant,
        level: EncryptionLevel,
        newly_marked: u64,
        counts: Option<[u64; 3]>,
    ) -> EcnCounts {
        self.paused = false;
        if let State::Settling { until } = self.state {
            self.settle_counts(now, until, level, counts);
            return EcnCounts::default();
        }
        self.note_answer(sent_at, newly_marked);
        if self.state == State::Failed {
            return EcnCounts::default();
        }
        let Some(counts) = counts else {
            if newly_marked > 0 {
                // Marks were bleached on the way, or the peer doesn't report.
                self.state = State::Failed;
            }
            return EcnCounts::default();
        };
        let Some([ect0, ect1, ce]) = self.validated_increase(level, newly_marked, counts) else {
            self.state = State::Failed;
            return EcnCounts::default();
        };
        let is_stale = std::mem::take(&mut self.stale);
        self.marks_of(level).reported = counts;
        if is_stale {
            return EcnCounts::default();
        }
        self.ce_total += ce;
        if newly_marked > 0 {
            self.state = State::Capable;
        }
        EcnCounts {
            ect0: PacketCount::new(ect0),
            ect1: PacketCount::new(ect1),
            ce: PacketCount::new(ce),
        }
    }

    /// An ACK of a packet sent at `sent_at` acknowledged `newly_marked` packets with marks. If what was
    /// sent after the test arrives, and what was sent for it doesn't, the path drops marked packets.
    fn note_answer(&mut self, sent_at: Instant, newly_marked: u64) {
        if newly_marked > 0 {
            self.unanswered = false;
            self.timeouts = 0;
        } else if let State::Unknown { since } = self.state
            && sent_at > since
        {
            self.unmarked_acks += 1;
            if self.unmarked_acks >= u64::from(TESTING_PACKETS) {
                self.state = State::Failed;
            }
        }
    }

    /// By how much the peer's counts grew; `None` if they can't be right (RFC 9000, section 13.4.2.1).
    /// While another path's marks are among them only their sum is checked.
    fn validated_increase(
        &mut self,
        level: EncryptionLevel,
        newly_marked: u64,
        counts: [u64; 3],
    ) -> Option<[u64; 3]> {
        let Marks { reported, sent } = *self.marks_of(level);
        let sum = counts.iter().fold(0, |sum: u64, n| sum.saturating_add(*n));
        if sum > sent {
            return None;
        }
        if self.stale {
            return Some([0; 3]);
        }
        let [ect0, ect1, ce] = std::array::from_fn(|i| counts[i].checked_sub(reported[i]));
        let (ect0, ect1, ce) = (ect0?, ect1?, ce?);
        // This end sends one codepoint only: any report of the other is re-marked or false.
        let (marked, other) = match self.codepoint {
            EcnCodepoint::Ect1 => (ect1, ect0),
            _ => (ect0, ect1),
        };
        let is_complete = marked.saturating_add(ce) >= newly_marked;
        (is_complete && other == 0).then_some([ect0, ect1, ce])
    }
}
