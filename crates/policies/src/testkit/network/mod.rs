//! A transfer over scripted paths: a sender reduced to what schedulers and re-injectors see of one.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use swiftwater_quic::Priority;
use swiftwater_quic::policy::{
    Copied, CopyDemand, DataRange, Demand, Hints, NoReinjection, Occasion, OutstandingRange,
    PacketFate, PacketOutcome, PathChoice, PathDecision, PathView, Rank, Reinjection, Reinjector,
    Rejection, RejectionReason, Repair, RepairCause, Scheduler, SinglePath,
};
use swiftwater_units::{ByteCount, Dir, Instant, PacketNumber, PathId, Side, StreamId};

use super::report::{PathReport, TransferReport};
use super::scripted_path::ScriptedPath;

/// Stream bytes of a full packet.
const CELL: u64 = 1_000;
/// Bytes of a datagram beside its stream data.
const OVERHEAD: u64 = 40;
/// kPacketThreshold of RFC 9002, section 6.1.1.
const PACKET_THRESHOLD: u64 = 3;
/// Probe timeouts in a row from which a path is reported as down.
const DOWN_AFTER: u32 = 2;
/// Copies that may wait.
const MAX_COPIES: usize = 4096;
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

#[derive(Clone, Copy, Debug)]
struct SentPacket {
    cell: usize,
    sent_at: Instant,
    size: u64,
    sending: Sending,
    round: u32,
    delivered: u64,
}

/// The sender's state of one path.
#[derive(Debug)]
struct Sender {
    script: ScriptedPath,
    view: PathView,
    next_number: u64,
    in_flight: BTreeMap<u64, SentPacket>,
    largest_acked: Option<u64>,
    last_sent_at: Instant,
    delivered: u64,
    settled: u64,
    lost: u64,
    report: PathReport,
}

impl Sender {
    fn new(id: PathId, script: ScriptedPath) -> Self {
        let view = PathView::builder(id)
            .rtt(2 * script.delay)
            .has_rtt_sample(false)
            .cwnd(script.cwnd)
            .local_status(script.status)
            .cost(script.cost)
            .build();
        Self {
            script,
            view,
            next_number: 0,
            in_flight: BTreeMap::new(),
            largest_acked: None,
            last_sent_at: Instant::ZERO,
            delivered: 0,
            settled: 0,
            lost: 0,
            report: PathReport {
                id,
                ..PathReport::default()
            },
        }
    }

    /// RFC 9002, section 5.3.
    fn on_rtt_sample(&mut self, rtt: Duration) {
        let view = &mut self.view;
        view.latest_rtt = rtt;
        if view.has_rtt_sample {
            let deviation = view.smoothed_rtt.abs_diff(rtt);
            view.rtt_var = (view.rtt_var * 3 + deviation) / 4;
            view.smoothed_rtt = (view.smoothed_rtt * 7 + rtt) / 8;
            view.min_rtt = view.min_rtt.min(rtt);
        } else {
            (view.smoothed_rtt, view.rtt_var) = (rtt, rtt / 2);
            (view.min_rtt, view.has_rtt_sample) = (rtt, true);
        }
    }

    fn time_threshold(&self) -> Duration {
        self.view.smoothed_rtt.max(self.view.latest_rtt) * 9 / 8
    }

    /// When something happens on the path without an acknowledgement: time threshold, else probe
    /// timeout.
    fn deadline(&self) -> Option<Instant> {
        let oldest = self.in_flight.iter().next()?;
        if self
            .largest_acked
            .is_some_and(|largest| *oldest.0 < largest)
        {
            return Some(oldest.1.sent_at + self.time_threshold());
        }
        let timeout = self.view.smoothed_rtt + 4 * self.view.rtt_var;
        Some(self.last_sent_at + timeout * 2_u32.pow(self.view.pto_count.min(6)))
    }

    /// Takes what the thresholds say out of flight (RFC 9002, section 6.1).
    fn detect_lost(&mut self, now: Instant) -> Vec<(u64, SentPacket)> {
        let Some(largest) = self.largest_acked else {
            return Vec::new();
        };
        let delay = self.time_threshold();
        let lost: Vec<_> = self
            .in_flight
            .range(..largest)
            .filter(|(number, packet)| {
                **number + PACKET_THRESHOLD <= largest || packet.sent_at + delay <= now
            })
            .map(|(number, packet)| (*number, *packet))
            .collect();
        for (number, _) in &lost {
            self.in_flight.remove(number);
        }
        lost
    }

    fn outcome(&self, number: u64, packet: &SentPacket, fate: PacketFate) -> PacketOutcome {
        PacketOutcome {
            path: self.view.id,
            number: PacketNumber::new(number),
            sent_at: packet.sent_at,
            size: packet.size as u16,
            repeated: packet.sending != Sending::New,
            fate,
        }
    }
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
    paths: Vec<Sender>,
    cells: Vec<Cell>,
    /// The first cell that was never sent.
    unsent: usize,
    retransmissions: VecDeque<usize>,
    copies: VecDeque<(usize, PathChoice, Rank)>,
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
            .map(|(n, script)| Sender::new(PathId::new(n), script))
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
        let timers = self.paths.iter().filter_map(Sender::deadline);
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
        path.settled += 1;
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
        path.view.loss_rate = path.lost as f64 / path.settled.max(1) as f64;
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
            self.paths[at].settled += 1;
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

    /// Asks the re-injector, and queues what it asks for.
    fn ask(&mut self, occasion: Occasion) {
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

    fn outstanding(&self) -> Vec<OutstandingRange> {
        let of = |path: &Sender| {
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
        let permits = |path: &Sender| copy.target.permits(path.view.id);
        if !self.paths.iter().any(permits) {
            return Err(RejectionReason::NoPath);
        }
        for cell in copy.offset / CELL..end.min(all).div_ceil(CELL) {
            if self.copies.len() >= MAX_COPIES {
                return Err(RejectionReason::QueueFull);
            }
            self.copies
                .push_back((cell as usize, copy.target, copy.rank));
        }
        Ok(())
    }

    /// Sends as long as the scheduler finds a path with room.
    fn transmit(&mut self) {
        if self.wait_until.is_some() {
            return;
        }
        loop {
            for at in 0..self.paths.len() {
                self.refresh(at);
            }
            let views: Vec<_> = self.paths.iter().map(|path| path.view).collect();
            let ready = views.iter().find(|view| view.is_ready(self.now));
            if !self.has_demand() && ready.is_some() && self.reinjector.wants_spare_room() {
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
            || self.copies.iter().any(|(cell, _, _)| is_open(cell))
    }

    fn copy_demand(&self) -> Vec<CopyDemand> {
        let mut demand: Vec<CopyDemand> = Vec::new();
        for (cell, target, rank) in &self.copies {
            let bytes = ByteCount::new(self.cells[*cell].len.into());
            let same = |known: &&mut CopyDemand| known.target == *target && known.rank == *rank;
            match demand.iter_mut().find(same) {
                Some(known) => known.bytes += bytes,
                None => demand.push(CopyDemand::new(*target, bytes).rank(*rank)),
            }
        }
        demand
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

    fn take_copy(&mut self, id: PathId, ranks: impl Fn(Rank) -> bool) -> Option<usize> {
        let cells = &self.cells;
        self.copies.retain(|(cell, _, _)| {
            let cell = &cells[*cell];
            !cell.acked && cell.first_sent_at.is_some()
        });
        let suits =
            |(_, target, rank): &(usize, PathChoice, Rank)| target.permits(id) && ranks(*rank);
        let place = self.copies.iter().position(suits)?;
        self.copies.remove(place).map(|(cell, _, _)| cell)
    }

    /// Sends one packet; returns its size.
    fn send(&mut self, at: usize, index: usize, sending: Sending) -> u64 {
        let now = self.now;
        let range = self.data_range(index);
        let cell = &mut self.cells[index];
        cell.live += 1;
        let first_sent_at = *cell.first_sent_at.get_or_insert(now);
        cell.rounds += u32::from(sending == Sending::Retransmission);
        cell.replicas += u32::from(sending == Sending::Replica);
        let (bytes, size) = (
            ByteCount::new(cell.len.into()),
            u64::from(cell.len) + OVERHEAD,
        );
        let (lost_at, round) = (cell.lost_at, cell.rounds);
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
        match sending {
            Sending::New => self.reinjector.on_new_data(now, bytes),
            Sending::Retransmission => {
                path.report.retransmitted += bytes;
                let event = Repair::Retransmitted {
                    range,
                    first_sent_at,
                    lost_at: lost_at.unwrap_or(now),
                    round,
                    cause: RepairCause::Loss,
                    priority: Priority::default(),
                    deadline: None,
                };
                self.reinjector.on_repair(now, &event);
            }
            Sending::Replica => {
                path.report.replicas += bytes;
                if lost_at.is_some() {
                    self.reinjector
                        .on_repair(now, &Repair::ReplicaSent { range });
                }
            }
        }
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

    fn schedule(&mut self, at: Instant, event: Event) {
        self.events.insert((at, self.event_number), event);
        self.event_number += 1;
    }
}
