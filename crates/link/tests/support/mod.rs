//! Packets that say whose they are, and a driver that sends them through a link.

#![allow(
    dead_code,
    unreachable_pub,
    clippy::unwrap_used,
    reason = "each test uses a part of it, and fails by panicking"
)]

use std::collections::VecDeque;
use std::time::Duration;

use swiftwater_link::{DropReason, Ecn, Link, LinkConfig, Packet, Payload};
use swiftwater_units::{Bandwidth, Instant};

pub const T0: Instant = Instant::ZERO;

/// A payload of a flow.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Probe {
    pub flow: u64,
    pub number: u64,
    pub sent: Instant,
    pub len: usize,
}

impl Payload for Probe {
    fn len(&self) -> usize {
        self.len
    }

    fn corrupt(&mut self, _: usize, mask: u8) {
        self.number ^= u64::from(mask) << 56;
    }

    fn flow(&self) -> u64 {
        self.flow
    }

    fn duplicate(&self) -> Self {
        *self
    }
}

/// 12 Mbit/s: 1500 bytes take a millisecond.
pub fn slow() -> LinkConfig {
    LinkConfig::default().rate(Bandwidth::from_mbps(12))
}

pub fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

pub fn at(ms: u64) -> Instant {
    Instant::from_millis(ms)
}

/// The fate of a packet, and its time.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Outcome {
    pub at: Instant,
    pub probe: Probe,
    pub fate: Fate,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Fate {
    Arrived(Ecn),
    Refused(DropReason),
    Dropped(DropReason),
}

impl Outcome {
    pub fn arrived(&self) -> bool {
        matches!(self.fate, Fate::Arrived(_))
    }

    pub fn marked(&self) -> bool {
        self.fate == Fate::Arrived(Ecn::Ce)
    }

    /// Time on the link, if it arrived.
    pub fn latency(&self) -> Duration {
        self.at - self.probe.sent
    }
}

/// Packets of one flow at even gaps.
pub struct Stream {
    pub flow: u64,
    pub from: Instant,
    pub gap: Duration,
    pub len: usize,
    pub ecn: Ecn,
}

/// Packets of a full 1500 bytes that together load a link of 12 Mbit/s so much.
pub fn load(flow: u64, load: f64, ecn: Ecn) -> Stream {
    Stream {
        flow,
        from: T0,
        gap: ms(1).div_f64(load),
        len: 1472,
        ecn,
    }
}

/// A link, packets to send and the fates of sent ones.
pub struct Driver {
    pub link: Link<Probe>,
    pub outcomes: Vec<Outcome>,
    pub now: Instant,
    number: u64,
}

impl Driver {
    pub fn new(config: LinkConfig, seed: u64) -> Self {
        let mut link = Link::new(config, seed, T0).unwrap();
        link.keep_dropped(true);
        Self {
            link,
            outcomes: Vec::new(),
            now: T0,
            number: 0,
        }
    }

    pub fn send(&mut self, now: Instant, flow: u64, len: usize, ecn: Ecn) {
        self.advance(now);
        self.send_unpolled(now, flow, len, ecn);
    }

    /// Sends without asking first what has arrived.
    pub fn send_unpolled(&mut self, now: Instant, flow: u64, len: usize, ecn: Ecn) {
        let probe = Probe {
            flow,
            number: self.number,
            sent: now,
            len,
        };
        self.number += 1;
        let dropped = self.link.enqueue(now, Packet::with_ecn(probe, ecn));
        if let Some(dropped) = dropped {
            self.note(now, probe, Fate::Refused(dropped.reason));
        }
        self.note_dropped(now);
    }

    /// Polls whenever the link requires it, up to `until`.
    pub fn advance(&mut self, until: Instant) {
        while let Some(at) = self.link.next_event().filter(|at| *at <= until) {
            if let Some(packet) = self.link.poll(at) {
                self.note(at, packet.payload, Fate::Arrived(packet.ecn));
            }
            self.note_dropped(at);
        }
        self.now = until;
    }

    /// Runs streams concurrently until `until`; `look` is called after each packet sent.
    pub fn run(&mut self, streams: &[Stream], until: Instant, mut look: impl FnMut(&mut Self)) {
        let mut next: Vec<Instant> = streams.iter().map(|each| each.from).collect();
        loop {
            let (index, &time) = next.iter().enumerate().min_by_key(|(_, at)| **at).unwrap();
            if time > until {
                break;
            }
            let stream = &streams[index];
            self.send(time, stream.flow, stream.len, stream.ecn);
            look(self);
            next[index] = time + stream.gap;
        }
        self.advance(until);
    }

    pub fn of(&self, flow: u64) -> impl Iterator<Item = &Outcome> {
        self.outcomes
            .iter()
            .filter(move |each| each.probe.flow == flow)
    }

    /// Bytes on the wire of a flow that arrived.
    pub fn carried(&self, flow: u64) -> f64 {
        let arrived = self.of(flow).filter(|each| each.arrived());
        arrived.map(|each| (each.probe.len + 28) as f64).sum()
    }

    fn note_dropped(&mut self, at: Instant) {
        while let Some(dropped) = self.link.take_dropped() {
            let fate = Fate::Dropped(dropped.reason);
            self.note(at, dropped.packet.payload, fate);
        }
    }

    fn note(&mut self, at: Instant, probe: Probe, fate: Fate) {
        self.outcomes.push(Outcome { at, probe, fate });
    }
}

/// A flow with a window, acknowledged packet by packet over a way back of fixed delay.
pub struct Window {
    pub flow: u64,
    pub ecn: Ecn,
    pub law: Law,
    pub size: f64,
    in_flight: u64,
    /// Packets below this number were sent before the last reduction (`Scalable`: before the round).
    recover: u64,
    /// Of the round trip: packets acknowledged and marked; the mean share of marks.
    acked: u64,
    marked: u64,
    share: f64,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Law {
    /// Half the window at a loss or mark, a packet more each round trip.
    Reno,
    /// As much less as the share of marks says, like DCTCP (RFC 8257, section 3.3).
    Scalable,
}

impl Window {
    pub fn new(flow: u64, ecn: Ecn, law: Law) -> Self {
        Self {
            flow,
            ecn,
            law,
            size: 10.0,
            in_flight: 0,
            recover: 0,
            acked: 0,
            marked: 0,
            share: 1.0,
        }
    }

    fn feedback(&mut self, outcome: &Outcome, next_number: u64) {
        self.in_flight -= 1;
        self.acked += 1;
        self.marked += u64::from(outcome.marked());
        let round_over = outcome.probe.number >= self.recover;
        let congested = match self.law {
            Law::Reno => outcome.marked() || !outcome.arrived(),
            Law::Scalable => !outcome.arrived() || round_over && self.marked > 0,
        };
        if self.law == Law::Scalable && round_over {
            let share = self.marked as f64 / self.acked as f64;
            self.share += (share - self.share) / 16.0;
            (self.acked, self.marked) = (0, 0);
        }
        if congested && round_over {
            let less = match self.law {
                Law::Scalable if outcome.arrived() => self.share / 2.0,
                _ => 0.5,
            };
            self.size = (self.size * (1.0 - less)).max(2.0);
        } else {
            self.size += 1.0 / self.size;
        }
        if round_over && (congested || self.law == Law::Scalable) {
            self.recover = next_number;
        }
    }
}

/// Windows that send over a link and get each packet's fate over a reverse path of fixed delay;
/// losses as soon as an acknowledgement would have arrived.
pub struct Windows {
    senders: Vec<Window>,
    back: Duration,
    feedback: VecDeque<(Instant, Outcome)>,
    seen: usize,
}

impl Windows {
    pub fn new(windows: Vec<Window>, back: Duration) -> Self {
        Self {
            senders: windows,
            back,
            feedback: VecDeque::new(),
            seen: 0,
        }
    }

    pub fn run(&mut self, driver: &mut Driver, until: Instant) {
        loop {
            for window in &mut self.senders {
                while (window.in_flight as f64) < window.size.floor() {
                    driver.send(driver.now, window.flow, 1472, window.ecn);
                    window.in_flight += 1;
                }
            }
            let new = &driver.outcomes[self.seen..];
            self.feedback
                .extend(new.iter().map(|each| (each.at + self.back, *each)));
            self.seen = driver.outcomes.len();
            let noticed = self.feedback.front().map(|(at, _)| *at);
            let next = [noticed, driver.link.next_event()];
            let Some(next) = next.into_iter().flatten().min().filter(|at| *at <= until) else {
                return;
            };
            driver.advance(next);
            while self.feedback.front().is_some_and(|(at, _)| *at <= next) {
                let (_, outcome) = self.feedback.pop_front().unwrap();
                let mut windows = self.senders.iter_mut();
                let window = windows.find(|each| each.flow == outcome.probe.flow);
                window.unwrap().feedback(&outcome, driver.number);
            }
        }
    }
}
