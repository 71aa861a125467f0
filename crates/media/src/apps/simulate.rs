//! Simulation of a session: a sender, a receiver and two links on one virtual clock.

use std::collections::BTreeMap;
use std::time::Duration;

use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};
use swiftwater_link::{Link, LinkConfig, LinkConfigError, Packet, Payload};
use swiftwater_units::Instant;
use thiserror::Error;

use super::report::{Latencies, SessionReport};
use crate::frame::Frame;
use crate::player::{DeadlineMeter, FrameDisplay, LiveConfig, LivePlayer};
use crate::protection::Protector;
use crate::session::{Datagram, Receiver, Sender, SessionConfig, SessionError};
use crate::source::FrameSource;

/// Longest continuation of a session without a deadline after its last frame.
const MAX_DRAIN: Duration = Duration::from_secs(10);
/// Continuation of one with a deadline after the last frame's deadline, for the last feedback.
const DRAIN: Duration = Duration::from_millis(500);

/// Parameters of a simulation.
#[derive(Debug)]
pub struct SessionSpec {
    /// Source of frames.
    pub source: Box<dyn FrameSource>,
    /// Loss protection scheme.
    pub protector: Protector,
    /// Settings of both ends.
    pub config: SessionConfig,
    /// The live player's buffers.
    pub live: LiveConfig,
}

impl SessionSpec {
    /// A session with default settings.
    pub fn new(source: Box<dyn FrameSource>, protector: Protector) -> Self {
        Self {
            source,
            protector,
            config: SessionConfig::default(),
            live: LiveConfig::default(),
        }
    }
}

/// Why a session can't be simulated.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum SimulateError {
    /// The link to the receiver is invalid.
    #[error("the link to the receiver: {0}")]
    Forward(LinkConfigError),
    /// The reverse link is invalid.
    #[error("the link to the sender: {0}")]
    Backward(LinkConfigError),
    /// The session's settings or frames are invalid.
    #[error(transparent)]
    Session(#[from] SessionError),
}

/// A datagram on a link.
#[derive(Debug)]
struct Carried {
    datagram: Datagram,
    is_corrupt: bool,
}

impl Payload for Carried {
    fn len(&self) -> usize {
        self.datagram.size
    }

    /// UDP's checksum detects the corruption.
    fn corrupt(&mut self, _at: usize, _mask: u8) {
        self.is_corrupt = true;
    }

    fn duplicate(&self) -> Self {
        Self {
            datagram: self.datagram.clone(),
            is_corrupt: self.is_corrupt,
        }
    }
}

/// Runs a session for `duration` of stream time, and then until no more data can be in time.
///
/// Frames are encoded at their times and sent over `forward`; acknowledgements are sent over
/// `backward`. The same arguments give the same report, bit for bit.
pub fn simulate(
    spec: SessionSpec,
    forward: LinkConfig,
    backward: LinkConfig,
    duration: Duration,
    seed: u64,
) -> Result<SessionReport, SimulateError> {
    let mut run = Run::new(spec, forward, backward, duration, seed)?;
    while let Some(now) = run.next_event() {
        run.step(now)?;
    }
    Ok(run.report())
}

#[derive(Debug)]
struct Run {
    source: Box<dyn FrameSource>,
    next_frame: Option<Frame>,
    duration: Duration,
    now: Instant,
    end: Instant,
    sender: Sender,
    receiver: Receiver,
    forward: Link<Carried>,
    backward: Link<Carried>,
    judge: Judge,
}

/// The models that evaluate frames.
#[derive(Debug)]
struct Judge {
    deadline: Option<DeadlineMeter>,
    display: FrameDisplay,
    live: LivePlayer,
    /// Frames by index, as they were encoded.
    frames: Vec<Frame>,
    /// Complete frames that wait for an earlier one.
    waiting: BTreeMap<u64, Frame>,
    next_in_order: u64,
    delays: Vec<Duration>,
}

impl Run {
    fn new(
        mut spec: SessionSpec,
        forward: LinkConfig,
        backward: LinkConfig,
        duration: Duration,
        seed: u64,
    ) -> Result<Self, SimulateError> {
        let start = Instant::ZERO;
        // Each link has its own random numbers.
        let mut seeds = ChaCha8Rng::seed_from_u64(seed);
        let (there, back) = (seeds.next_u64(), seeds.next_u64());
        let forward = Link::new(forward, there, start).map_err(SimulateError::Forward)?;
        let backward = Link::new(backward, back, start).map_err(SimulateError::Backward)?;
        let receiver = Receiver::new(&spec.config, start)?;
        let deadline = spec.config.deadline;
        let drain = deadline.map_or(MAX_DRAIN, |deadline| deadline + DRAIN);
        let next_frame = spec.source.next_frame();
        Ok(Self {
            source: spec.source,
            next_frame: next_frame.filter(|frame| frame.at < duration),
            duration,
            now: start,
            end: start + duration + drain,
            sender: Sender::new(spec.config, spec.protector, start)?,
            receiver,
            forward,
            backward,
            judge: Judge {
                deadline: deadline.map(|deadline| DeadlineMeter::new(start, deadline)),
                display: FrameDisplay::new(),
                live: LivePlayer::new(spec.live, start, start),
                frames: Vec::new(),
                waiting: BTreeMap::new(),
                next_in_order: 0,
                delays: Vec::new(),
            },
        })
    }

    /// Time of the next event; `None` at the end.
    fn next_event(&self) -> Option<Instant> {
        let frame = self.next_frame.map(|frame| Instant::ZERO + frame.at);
        let links = [self.forward.next_event(), self.backward.next_event()];
        let all_there = self.judge.delays.len() == self.judge.frames.len();
        let is_idle = links == [None, None] && frame.is_none();
        if all_there && is_idle && self.now >= Instant::ZERO + self.duration {
            return None;
        }
        let events = [
            frame,
            self.sender.poll_timeout(),
            Some(self.receiver.poll_timeout()),
            links[0],
            links[1],
        ];
        let next = events.into_iter().flatten().min()?;
        let next = next.max(self.now);
        (next <= self.end).then_some(next)
    }

    fn step(&mut self, now: Instant) -> Result<(), SimulateError> {
        self.now = now;
        while let Some(packet) = self.backward.poll(now) {
            if !packet.payload.is_corrupt {
                // A receiver of this crate only sends packets that its sender can parse.
                let understood = self
                    .sender
                    .handle_datagram(now, &packet.payload.datagram.bytes);
                debug_assert_eq!(understood, Ok(()));
                self.send(now);
            }
        }
        while let Some(packet) = self.forward.poll(now) {
            if !packet.payload.is_corrupt {
                let bytes = &packet.payload.datagram.bytes;
                let understood = self.receiver.handle_datagram(now, bytes);
                debug_assert_eq!(understood, Ok(()));
                self.answer(now);
            }
        }
        if self.receiver.poll_timeout() <= now {
            self.receiver.handle_timeout(now);
            self.answer(now);
        }
        if self.sender.poll_timeout().is_some_and(|at| at <= now) {
            self.sender.handle_timeout(now);
        }
        while let Some(frame) = self.next_frame
            && Instant::ZERO + frame.at <= now
        {
            self.encode(now, &frame)?;
        }
        self.send(now);
        while let Some(completed) = self.receiver.poll_completed() {
            self.judge.on_complete(now, completed.frame.index);
        }
        Ok(())
    }

    fn encode(&mut self, now: Instant, frame: &Frame) -> Result<(), SimulateError> {
        self.sender.push_frame(now, frame)?;
        self.judge.frames.push(*frame);
        if let Some(deadline) = &mut self.judge.deadline {
            deadline.on_encoded(frame);
        }
        if self.sender.take_key_frame_request() {
            self.source.force_key_frame();
        }
        let next = self.source.next_frame();
        self.next_frame = next.filter(|frame| frame.at < self.duration);
        Ok(())
    }

    fn send(&mut self, now: Instant) {
        while let Some(datagram) = self.sender.poll_transmit(now) {
            self.forward.enqueue(now, carried(datagram));
        }
    }

    fn answer(&mut self, now: Instant) {
        while let Some(datagram) = self.receiver.poll_transmit(now) {
            self.backward.enqueue(now, carried(datagram));
        }
    }

    fn report(self) -> SessionReport {
        let Self {
            now,
            end,
            mut judge,
            sender,
            receiver,
            forward,
            backward,
            duration,
            ..
        } = self;
        if judge.delays.len() == judge.frames.len() {
            judge.live.on_end(now);
        }
        let stats = sender.stats().clone();
        // Freezes after the last frame's display time are not counted.
        let shown_until = now.min(Instant::ZERO + duration);
        SessionReport {
            frames: judge.frames.len() as u64,
            completed: judge.delays.len() as u64,
            deadline: judge.deadline.map(|meter| meter.report(end)),
            display: judge.display.report(shown_until),
            live: judge.live.report(end),
            recovery_latency: Latencies::of(SessionReport::repeated(&stats.recoveries)),
            frame_delay: Latencies::of(judge.delays),
            cost: stats.cost,
            sender: stats,
            receiver: *receiver.stats(),
            forward: *forward.counters(),
            backward: *backward.counters(),
        }
    }
}

impl Judge {
    fn on_complete(&mut self, now: Instant, index: u64) {
        let place = usize::try_from(index).unwrap_or(usize::MAX);
        let Some(frame) = self.frames.get(place).copied() else {
            return;
        };
        self.delays
            .push(now.saturating_since(Instant::ZERO + frame.at));
        if let Some(deadline) = &mut self.deadline {
            deadline.on_complete(now, &frame);
        }
        self.display.on_complete(now, &frame);
        self.waiting.insert(index, frame);
        while let Some(frame) = self.waiting.remove(&self.next_in_order) {
            self.live.on_frame(now, &frame);
            self.next_in_order += 1;
        }
    }
}

fn carried(datagram: Datagram) -> Packet<Carried> {
    Packet::new(Carried {
        datagram,
        is_corrupt: false,
    })
}
