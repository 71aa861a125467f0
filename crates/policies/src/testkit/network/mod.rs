//! A transfer over scripted paths: a sender reduced to what schedulers and re-injectors see of one.
//!
//! - `sending_path.rs`: the sender's side of one path, with loss detection;
//! - `transmit.rs`: what is sent next, and where;
//! - `copies.rs`: the re-injector, and the copies that it asked for.

mod copies;
mod sending_path;
mod transmit;

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use swiftwater_quic::policy::{
    Copied, DataRange, NoReinjection, Occasion, PacketFate, PacketOutcome, PathChoice, Rank,
    Reinjector, Repair, Scheduler, SinglePath,
};
use swiftwater_units::{ByteCount, Dir, Instant, PathId, Side, StreamId};

use self::sending_path::{SendingPath, SentPacket};
use super::report::TransferReport;
use super::scripted_path::ScriptedPath;

/// Stream bytes of a full packet.
const CELL: u64 = 1_000;
/// Probe timeouts in a row from which a path is reported as down.
const DOWN_AFTER: u32 = 2;
/// Shortest time until a policy is asked again whose deadline is over.
const MIN_PAUSE: Duration = Duration::from_millis(1);

/// Why a range is sent.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Sending {
    New,
    Retransmission,
    Replica,
}

/// A packet's worth of the stream.
#[derive(Clone, Debug, Default)]
struct Cell {
    len: u32,
    first_sent_at: Option<Instant>,
    /// Packets in flight that carry it.
    live: u32,
    acked: bool,
    arrived: bool,
    /// When it was declared lost first.
    lost_at: Option<Instant>,
    rounds: u32,
    replicas: u32,
}

/// A copy that waits to be sent.
#[derive(Clone, Copy, Debug)]
struct WaitingCopy {
    cell: usize,
    target: PathChoice,
    rank: Rank,
}

#[derive(Clone, Copy, Debug)]
enum Event {
    Arrival {
        cell: usize,
        sending: Sending,
        path: usize,
    },
    Ack {
        path: usize,
        number: u64,
    },
}

/// A sender with one stream, its paths, and the policies under test.
///
/// The stream is cut into packets of 1000 bytes; each packet is acknowledged on its own path. Loss
/// detection and probe timeouts follow RFC 9002, with a back-off of two; congestion windows are those
/// of the scripts. Lost data are sent again when no packet in flight carries them, on the path that the
/// scheduler chooses.
#[derive(Debug)]
pub struct Network {
    scheduler: Box<dyn Scheduler>,
    reinjector: Box<dyn Reinjector>,
    paths: Vec<SendingPath>,
    cells: Vec<Cell>,
    /// The first cell that was never sent.
    unsent: usize,
    retransmissions: VecDeque<usize>,
    copies: VecDeque<WaitingCopy>,
    events: BTreeMap<(Instant, u64), Event>,
    event_number: u64,
    now: Instant,
    wait_until: Option<Instant>,
    asked_at: Option<Instant>,
    missing: usize,
    report: TransferReport,
}

impl Network {
    /// A network of these paths, whose identifiers count from 0; the scheduler takes the first one
    /// and nothing is re-injected.
    pub fn new(paths: impl IntoIterator<Item = ScriptedPath>) -> Self {
        let paths: Vec<_> = (0..)
            .zip(paths)
            .map(|(n, script)| SendingPath::new(PathId::new(n), script))
            .collect();
        assert!(!paths.is_empty(), "a network has a path at least");
        Self {
            scheduler: Box::new(SinglePath),
            reinjector: Box::new(NoReinjection),
            paths,
            cells: Vec::new(),
            unsent: 0,
            retransmissions: VecDeque::new(),
            copies: VecDeque::new(),
            events: BTreeMap::new(),
            event_number: 0,
            now: Instant::ZERO,
            wait_until: None,
            asked_at: None,
            missing: 0,
            report: TransferReport::default(),
        }
    }

    /// Sets the scheduler.
    #[must_use]
    pub fn scheduler(mut self, scheduler: Box<dyn Scheduler>) -> Self {
        self.scheduler = scheduler;
        self
    }

    /// Sets the re-injector.
    #[must_use]
    pub fn reinjector(mut self, reinjector: Box<dyn Reinjector>) -> Self {
        self.reinjector = reinjector;
        self
    }

    /// Sends `bytes`, which are there from the start, for `limit` at most.
    #[must_use]
    pub fn transfer(mut self, bytes: ByteCount, limit: Duration) -> TransferReport {
        let full = Cell {
            len: CELL as u32,
            ..Cell::default()
        };
        self.cells = vec![full; bytes.get().div_ceil(CELL) as usize];
        if let (Some(last), rest @ 1..) = (self.cells.last_mut(), bytes.get() % CELL) {
            last.len = rest as u32;
        }
        self.missing = self.cells.len();
        self.transmit();
        while self.missing > 0
            && let Some(next) = self.next_time()
            && next <= Instant::ZERO + limit
        {
            self.now = self.now.max(next);
            self.step();
            self.transmit();
        }
        self.report.paths = self.paths.into_iter().map(|path| path.report).collect();
        self.report
    }

    fn next_time(&self) -> Option<Instant> {
        let event = self.events.keys().next().map(|(at, _)| *at);
        let timers = self.paths.iter().filter_map(SendingPath::deadline);
        let timers = timers.chain(self.reinjector_deadline());
        timers.chain(event).chain(self.wait_until).min()
    }

    fn reinjector_deadline(&self) -> Option<Instant> {
        let deadline = self.reinjector.next_deadline()?;
        let again = self.asked_at.map_or(Instant::ZERO, |at| at + MIN_PAUSE);
        Some(deadline.max(again))
    }

    /// What is due now.
    fn step(&mut self) {
        let now = self.now;
        while let Some(entry) = self.events.first_entry()
            && entry.key().0 <= now
        {
            match entry.remove() {
                Event::Arrival {
                    cell,
                    sending,
                    path,
                } => self.on_arrival(cell, sending, path),
                Event::Ack { path, number } => self.on_ack(path, number),
            }
        }
        if self.wait_until.is_some_and(|until| until <= now) {
            self.wait_until = None;
        }
        for path in 0..self.paths.len() {
            if self.paths[path].deadline().is_some_and(|at| at <= now) {
                self.on_timeout(path);
            }
        }
        if self.reinjector_deadline().is_some_and(|at| at <= now) {
            self.asked_at = Some(now);
            self.ask(Occasion::Timer);
        }
    }

    fn on_arrival(&mut self, cell: usize, sending: Sending, path: usize) {
        let bytes = ByteCount::new(self.cells[cell].len.into());
        if std::mem::replace(&mut self.cells[cell].arrived, true) {
            self.report.duplicate_bytes += bytes;
            return;
        }
        if sending == Sending::Replica {
            self.paths[path].report.useful_replicas += bytes;
        }
        self.missing -= 1;
        if self.missing == 0 {
            self.report.completed_in = Some(self.now - Instant::ZERO);
        }
    }

    fn on_ack(&mut self, at: usize, number: u64) {
        let now = self.now;
        let path = &mut self.paths[at];
        path.view.last_received = Some(now);
        path.largest_acked = path.largest_acked.max(Some(number));
        let was_down = std::mem::take(&mut path.view.pto_count) >= DOWN_AFTER;
        if was_down {
            self.on_path_change(at, true);
        }
        let path = &mut self.paths[at];
        // An acknowledgement of what was declared lost changes nothing any more.
        let Some(packet) = path.in_flight.remove(&number) else {
            return;
        };
        let rtt = now - packet.sent_at;
        path.on_rtt_sample(rtt);
        path.delivered += packet.size;
        let rate =
            swiftwater_units::Bandwidth::from_transfer(path.delivered - packet.delivered, rtt);
        path.view.delivery_rate = Some(rate);
        let mut outcomes = vec![path.outcome(number, &packet, PacketFate::Acked)];
        let lost = path.detect_lost(now);
        outcomes.extend(
            lost.iter()
                .map(|(number, packet)| path.outcome(*number, packet, PacketFate::Lost)),
        );
        outcomes.sort_by_key(|outcome| outcome.number);
        self.on_cell_acked(&packet);
        let any_lost = self.on_lost(at, &lost);
        self.settle(at, &outcomes, any_lost);
    }

    fn on_timeout(&mut self, at: usize) {
        let now = self.now;
        let mut lost = self.paths[at].detect_lost(now);
        let path = &mut self.paths[at];
        if lost.is_empty() {
            path.view.pto_count += 1;
            path.report.probe_timeouts += 1;
            // The oldest data are what a probe repeats.
            lost.extend(path.in_flight.pop_first());
            path.last_sent_at = now;
            if path.view.pto_count == DOWN_AFTER {
                self.on_path_change(at, false);
            }
        }
        let path = &self.paths[at];
        let outcomes: Vec<_> = lost
            .iter()
            .map(|(number, packet)| path.outcome(*number, packet, PacketFate::Lost))
            .collect();
        let any_lost = self.on_lost(at, &lost);
        self.settle(at, &outcomes, any_lost);
    }

    /// Reports fates to the re-injector and asks it.
    fn settle(&mut self, at: usize, outcomes: &[PacketOutcome], any_lost: bool) {
        self.refresh(at);
        self.reinjector
            .on_outcomes(self.now, outcomes, &self.paths[at].view);
        if any_lost {
            self.ask(Occasion::LossRetransmitted);
        }
        self.ask(Occasion::Ack);
    }

    fn on_path_change(&mut self, at: usize, is_usable: bool) {
        let id = self.paths[at].view.id;
        self.scheduler.on_path_change(self.now, id, is_usable);
        self.ask(if is_usable {
            Occasion::PathUp(id)
        } else {
            Occasion::PathDown(id)
        });
    }

    fn refresh(&mut self, at: usize) {
        let path = &mut self.paths[at];
        let in_flight = path.in_flight.values().map(|packet| packet.size).sum();
        path.view.bytes_in_flight = ByteCount::new(in_flight);
        path.view.loss_rate = path.lost as f64 / path.next_number.max(1) as f64;
    }

    fn on_cell_acked(&mut self, packet: &SentPacket) {
        let cell = &mut self.cells[packet.cell];
        cell.live -= 1;
        if std::mem::replace(&mut cell.acked, true) || cell.lost_at.is_none() {
            return;
        }
        let by = match packet.sending {
            Sending::New => Copied::Original,
            Sending::Retransmission => Copied::Retransmission(packet.round),
            Sending::Replica => Copied::Replica,
        };
        let range = self.data_range(packet.cell);
        self.reinjector
            .on_repair(self.now, &Repair::Recovered { range, by });
    }

    /// True if something has to be sent again.
    fn on_lost(&mut self, at: usize, lost: &[(u64, SentPacket)]) -> bool {
        let before = self.retransmissions.len();
        for (_, packet) in lost {
            self.paths[at].lost += 1;
            let cell = &mut self.cells[packet.cell];
            cell.live -= 1;
            if !cell.acked && cell.live == 0 {
                cell.lost_at.get_or_insert(self.now);
                self.retransmissions.push_back(packet.cell);
            }
        }
        self.retransmissions.len() > before
    }

    fn data_range(&self, cell: usize) -> DataRange {
        DataRange {
            stream: StreamId::new(Side::Server, Dir::Uni, 0),
            offset: cell as u64 * CELL,
            len: self.cells[cell].len,
        }
    }

    fn schedule(&mut self, at: Instant, event: Event) {
        self.events.insert((at, self.event_number), event);
        self.event_number += 1;
    }
}
