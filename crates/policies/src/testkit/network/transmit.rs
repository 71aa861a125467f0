//! What the sender sends: the scheduler's path, then retransmissions, copies and new data in their order.

use std::collections::BTreeSet;

use swiftwater_quic::Priority;
use swiftwater_quic::policy::{
    CopyDemand, Demand, Occasion, PathDecision, Rank, Repair, RepairCause,
};
use swiftwater_units::{ByteCount, PathId};

use super::sending_path::SentPacket;
use super::{CELL, Cell, Event, MIN_PAUSE, Network, Sending};

/// Bytes of a datagram beside its stream data.
const OVERHEAD: u64 = 40;

impl Network {
    /// Sends as long as the scheduler finds a path with room.
    pub(super) fn transmit(&mut self) {
        if self.wait_until.is_some() {
            return;
        }
        loop {
            for at in 0..self.paths.len() {
                self.refresh(at);
            }
            let views: Vec<_> = self.paths.iter().map(|path| path.view).collect();
            let ready = views.iter().find(|view| view.is_ready(self.now));
            if !self.has_demand() && ready.is_some() && self.reinjector.can_use_spare_room() {
                self.ask(Occasion::SpareRoom);
            }
            if !self.has_demand() {
                return;
            }
            let copies = self.copy_demand();
            let demand = self.demand(&copies);
            let (id, max_bytes) = match self.scheduler.next(self.now, &views, &demand) {
                PathDecision::Path { id, max_bytes } => (id, max_bytes),
                PathDecision::Wait(until) => {
                    self.wait_until = Some(until.max(self.now + MIN_PAUSE));
                    return;
                }
                PathDecision::Blocked => {
                    let idle = views.iter().all(|view| view.bytes_in_flight.is_zero());
                    let Some(ready) = ready.filter(|_| idle) else {
                        return;
                    };
                    // Nothing would ever change that.
                    self.report.invalid_decisions += 1;
                    (ready.id, ByteCount::ZERO)
                }
            };
            let at = views.iter().position(|view| view.id == id);
            if at.is_none() {
                self.report.invalid_decisions += 1;
            }
            if !self.send_batch(at.unwrap_or(0), max_bytes) {
                return;
            }
        }
    }

    fn has_demand(&self) -> bool {
        let is_open = |cell: &usize| !self.cells[*cell].acked;
        self.unsent < self.cells.len()
            || self.retransmissions.iter().any(is_open)
            || self.copies.iter().any(|copy| is_open(&copy.cell))
    }

    fn demand<'a>(&self, copies: &'a [CopyDemand]) -> Demand<'a> {
        let bytes = |cell: &Cell| u64::from(cell.len);
        let new = self.cells[self.unsent..].iter().map(bytes).sum();
        let lost: BTreeSet<_> = self.retransmissions.iter().collect();
        let lost = lost.into_iter().map(|cell| bytes(&self.cells[*cell])).sum();
        Demand::nothing()
            .new_data(ByteCount::new(new))
            .retransmissions(ByteCount::new(lost))
            .copies(copies)
            .next_stream(self.data_range(0).stream, Priority::default())
    }

    /// Sends one datagram, and more within `max_bytes`; false if not even one left.
    fn send_batch(&mut self, at: usize, max_bytes: ByteCount) -> bool {
        let mut sent = 0;
        loop {
            self.refresh(at);
            let is_first = sent == 0;
            if !self.paths[at].view.is_ready(self.now) {
                return !is_first;
            }
            if !is_first && sent + CELL + OVERHEAD > max_bytes.get() {
                return true;
            }
            let Some((cell, sending)) = self.choose(self.paths[at].view.id) else {
                // What is left is for other paths.
                self.report.invalid_decisions += u64::from(is_first);
                return !is_first;
            };
            sent += self.send(at, cell, sending);
        }
    }

    /// What goes next on a path.
    fn choose(&mut self, id: PathId) -> Option<(usize, Sending)> {
        let copy = |cell| (cell, Sending::Replica);
        if let Some(cell) = self.take_copy(id, |rank| rank == Rank::First) {
            return Some(copy(cell));
        }
        while let Some(cell) = self.retransmissions.pop_front() {
            if !self.cells[cell].acked {
                return Some((cell, Sending::Retransmission));
            }
        }
        if let Some(cell) = self.take_copy(id, |rank| rank != Rank::AfterNewData) {
            return Some(copy(cell));
        }
        if self.unsent < self.cells.len() {
            self.unsent += 1;
            return Some((self.unsent - 1, Sending::New));
        }
        self.take_copy(id, |_| true).map(copy)
    }

    /// Sends one packet; returns its size.
    fn send(&mut self, at: usize, index: usize, sending: Sending) -> u64 {
        let now = self.now;
        let cell = &mut self.cells[index];
        cell.live += 1;
        cell.first_sent_at.get_or_insert(now);
        cell.rounds += u32::from(sending == Sending::Retransmission);
        cell.replicas += u32::from(sending == Sending::Replica);
        let (bytes, size) = (
            ByteCount::new(cell.len.into()),
            u64::from(cell.len) + OVERHEAD,
        );
        let round = cell.rounds;
        let path = &mut self.paths[at];
        let number = path.next_number;
        path.next_number += 1;
        path.last_sent_at = now;
        path.report.sent += bytes;
        let packet = SentPacket {
            cell: index,
            sent_at: now,
            size,
            sending,
            round,
            delivered: path.delivered,
        };
        path.in_flight.insert(number, packet);
        self.report_sent(at, index, sending);
        let path = &mut self.paths[at];
        let delay = path.script.delay;
        let arrival = path.script.send(now, size);
        path.report.dropped_packets += u64::from(arrival.is_none());
        let id = path.view.id;
        self.scheduler.on_sent(now, id, ByteCount::new(size));
        if let Some(arrival) = arrival {
            let cell = index;
            self.schedule(
                arrival,
                Event::Arrival {
                    cell,
                    sending,
                    path: at,
                },
            );
            self.schedule(arrival + delay, Event::Ack { path: at, number });
        }
        size
    }

    /// Reports a packet that left to the re-injector, and counts what it repeats.
    fn report_sent(&mut self, at: usize, index: usize, sending: Sending) {
        let (now, range) = (self.now, self.data_range(index));
        let (cell, report) = (&self.cells[index], &mut self.paths[at].report);
        let bytes = ByteCount::new(cell.len.into());
        match sending {
            Sending::New => self.reinjector.on_new_data(now, bytes),
            Sending::Retransmission => {
                report.retransmitted += bytes;
                let event = Repair::Retransmitted {
                    range,
                    first_sent_at: cell.first_sent_at.unwrap_or(now),
                    lost_at: cell.lost_at.unwrap_or(now),
                    round: cell.rounds,
                    cause: RepairCause::Loss,
                    priority: Priority::default(),
                    deadline: None,
                };
                self.reinjector.on_repair(now, &event);
            }
            Sending::Replica => {
                report.replicas += bytes;
                if cell.lost_at.is_some() {
                    let event = Repair::ReplicaSent { range };
                    self.reinjector.on_repair(now, &event);
                }
            }
        }
    }
}
