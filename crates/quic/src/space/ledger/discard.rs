//! Packets leave the ledger once their fate is final.

use swiftwater_units::Instant;

use crate::idle_memory::IdleMemory;

use super::{Entry, Ledger, State};

/// Settled packets that may stay among those in flight: moving fewer is not worth it.
const MAX_SETTLED: u64 = 1024;

impl Ledger {
    /// Discards every packet; their numbers are not used again, and acknowledgements of them count for
    /// nothing.
    pub(crate) fn discard_all(&mut self) {
        self.base = self.next_number().get();
        self.entries.clear();
        self.carried_base += self.carried.len() as u64;
        self.carried.clear();
        self.below.clear();
        self.acked.clear();
        self.settled.clear();
        self.eliciting_in_flight = 0;
    }

    /// Discards packets whose fate is final: acknowledged ones, and lost ones sent before `horizon`.
    pub(crate) fn discard(&mut self, horizon: Instant) {
        self.below.discard(horizon);
        loop {
            self.discard_acked();
            let Some(front) = self.entries.front() else {
                break;
            };
            let old = front.packet.sent_at < horizon;
            let (done, kept) = match front.state {
                State::Acked => (true, false),
                // An ACK of a skipped number is a violation only while it can be proved.
                State::Skipped | State::Lost(_) => (old || self.is_crowded(), !old),
                // It is not in flight, and may never be acknowledged.
                State::Outstanding => (!front.packet.in_flight && old, false),
            };
            if !done {
                break;
            }
            let Some(entry) = self.entries.pop_front() else {
                break;
            };
            let carried_end = entry.carried_from + u64::from(entry.carried_len);
            let left = (carried_end - self.carried_base) as usize;
            let carried = self.carried.drain(..left);
            if kept {
                let first = left - usize::from(entry.carried_len);
                self.below.push(self.base, entry, carried.skip(first));
            }
            self.carried_base = carried_end;
            self.base += 1;
        }
        self.acked.remove(0..self.base);
        self.settled.remove(0..self.base);
    }

    /// Discards the acknowledged packets at the front.
    fn discard_acked(&mut self) {
        let acked = self.entries.iter().take_while(|entry| entry.is_acked());
        let Some((last, count)) = acked.zip(1..).last() else {
            return;
        };
        let carried_end = last.carried_from + u64::from(last.carried_len);
        self.carried
            .drain(..(carried_end - self.carried_base) as usize);
        self.carried_base = carried_end;
        self.entries.drain(..count);
        self.base += count as u64;
    }

    /// True if many of the packets are settled: those that only wait for their end are better kept elsewhere.
    fn is_crowded(&self) -> bool {
        self.entries.len() as u64 > self.eliciting_in_flight + MAX_SETTLED
    }

    /// True if the oldest packet still waits for an acknowledgement though it was sent before
    /// `horizon`, or at that time: nothing behind it can be discarded.
    pub(crate) fn is_stuck(&self, horizon: Instant) -> bool {
        let front = self.entries.front();
        front.is_some_and(|entry| {
            entry.state == State::Outstanding
                && entry.packet.in_flight
                && entry.packet.sent_at <= horizon
        })
    }
}

impl IdleMemory for Ledger {
    /// Where no packet is in flight or was lost, fates that may still arrive change nothing: all are
    /// discarded.
    fn release_idle_memory(&mut self) {
        let matters = |entry: &Entry| match entry.state {
            State::Outstanding => entry.packet.in_flight,
            State::Lost(_) => true,
            State::Acked | State::Skipped => false,
        };
        if !self.entries.iter().any(matters) && !self.below.has_lost() {
            self.discard(Instant::FAR_FUTURE);
        }
        let Self {
            entries,
            base: _,
            carried,
            carried_base: _,
            below,
            acked,
            settled,
            largest_acked: _,
            acked_on_path_end: _,
            eliciting_in_flight: _,
            last_eliciting_sent_at: _,
        } = self;
        entries.shrink_to_fit();
        carried.shrink_to_fit();
        below.release_idle_memory();
        acked.shrink();
        settled.shrink();
    }
}
