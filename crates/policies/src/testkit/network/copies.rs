//! The re-injector under test: when it is asked, and the copies that it asked for.

use swiftwater_quic::Priority;
use swiftwater_quic::policy::{
    CopyDemand, Hints, NextData, Occasion, OutstandingRange, Rank, Reinjection, Rejection,
    RejectionReason,
};
use swiftwater_units::{ByteCount, PacketNumber, PathId};

use super::sending_path::{SendingPath, SentPacket};
use super::{CELL, Network, Sending, WaitingCopy};

/// Copies that may wait.
const MAX_COPIES: usize = 4096;

impl Network {
    /// Asks the re-injector, and queues what it asks for.
    pub(super) fn ask(&mut self, occasion: Occasion) {
        let is_solicited = matches!(occasion, Occasion::SpareRoom | Occasion::Timer);
        if self.reinjector.is_inert() || !(is_solicited || self.reinjector.is_asked_on(occasion)) {
            return;
        }
        for at in 0..self.paths.len() {
            self.refresh(at);
        }
        let views: Vec<_> = self.paths.iter().map(|path| path.view).collect();
        let mut outstanding = self.outstanding();
        outstanding.sort_by_key(|range| range.sent_at);
        let mut out = Vec::new();
        self.report_waiting();
        self.reinjector.reinject(
            self.now,
            occasion,
            &mut outstanding.into_iter(),
            &views,
            &Hints::default(),
            &mut out,
        );
        let rejections: Vec<_> = out
            .into_iter()
            .filter_map(|copy| Some(Rejection::new(copy, self.queue(&copy).err()?)))
            .collect();
        if !rejections.is_empty() {
            self.report.invalid_decisions += rejections.len() as u64;
            self.reinjector.on_rejected(self.now, &rejections);
        }
    }

    /// Tells the re-injector what waits to be sent.
    fn report_waiting(&mut self) {
        let new = self.cells[self.unsent..].iter();
        let new = new.map(|cell| u64::from(cell.len)).sum();
        self.reinjector
            .on_unsent_data(self.now, ByteCount::new(new));
        let waits = new > 0 || !self.retransmissions.is_empty();
        let next = NextData::new(self.data_range(0).stream, Priority::default());
        self.reinjector
            .on_next_data(self.now, waits.then_some(next));
    }

    fn outstanding(&self) -> Vec<OutstandingRange> {
        let of = |path: &SendingPath| {
            let id = path.view.id;
            let range = move |(number, packet): (&u64, &SentPacket)| {
                let (cell, range) = (&self.cells[packet.cell], self.data_range(packet.cell));
                let number = PacketNumber::new(*number);
                OutstandingRange::new(
                    id,
                    number,
                    packet.sent_at,
                    range.stream,
                    range.offset,
                    range.len,
                )
                .retransmission(packet.sending != Sending::New)
                .copies(cell.replicas)
            };
            path.in_flight.iter().map(range).collect::<Vec<_>>()
        };
        self.paths.iter().flat_map(of).collect()
    }

    fn queue(&mut self, copy: &Reinjection) -> Result<(), RejectionReason> {
        let all = self.cells.len() as u64 * CELL;
        let end = copy.offset.saturating_add(copy.len.into());
        if copy.stream != self.data_range(0).stream || copy.len == 0 || copy.offset >= all {
            return Err(RejectionReason::RangeGone);
        }
        let permits = |path: &SendingPath| copy.target.permits(path.view.id);
        if !self.paths.iter().any(permits) {
            return Err(RejectionReason::NoPath);
        }
        for cell in copy.offset / CELL..end.min(all).div_ceil(CELL) {
            if self.copies.len() >= MAX_COPIES {
                return Err(RejectionReason::QueueFull);
            }
            self.copies.push_back(WaitingCopy {
                cell: cell as usize,
                target: copy.target,
                rank: copy.rank,
            });
        }
        Ok(())
    }

    pub(super) fn copy_demand(&self) -> Vec<CopyDemand> {
        let mut demand = Vec::new();
        for copy in &self.copies {
            let bytes = ByteCount::new(self.cells[copy.cell].len.into());
            CopyDemand::new(copy.target, bytes)
                .rank(copy.rank)
                .add_to(&mut demand);
        }
        demand
    }

    pub(super) fn take_copy(&mut self, id: PathId, ranks: impl Fn(Rank) -> bool) -> Option<usize> {
        let cells = &self.cells;
        self.copies.retain(|copy| {
            let cell = &cells[copy.cell];
            !cell.acked && cell.first_sent_at.is_some()
        });
        let suits = |copy: &WaitingCopy| copy.target.permits(id) && ranks(copy.rank);
        let place = self.copies.iter().position(suits)?;
        self.copies.remove(place).map(|copy| copy.cell)
    }
}
