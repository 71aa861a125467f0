//! Selection and encoding of the next packet: retransmissions first, then replicas, then new frames
//! with their repair packets.

use std::collections::{BTreeMap, VecDeque};

use swiftwater_quic::Priority;
use swiftwater_quic::policy::{Repair, RepairCause};
use swiftwater_units::{ByteCount, Instant};

use super::{Sender, policy_host};
use crate::frame::Frame;
use crate::protection::tambur::{
    DELAY_FRAMES, FrameParity, Parity, Symbol, Window, WindowFrame, encode,
};
use crate::session::config::{Coding, Datagram};
use crate::session::content::Cut;
use crate::session::packet::{Header, Kind};
use crate::session::sent_packets::{Content, Copy};

/// A pending packet.
#[derive(Debug)]
pub(super) enum Job {
    First {
        frame: u64,
        number: u32,
    },
    Resend {
        frame: u64,
        number: u32,
        cause: RepairCause,
    },
    Replica {
        frame: u64,
        number: u32,
    },
    Repair {
        frame: u64,
        number: u32,
    },
    Parity(Box<ParityJob>),
}

/// A frame covered by the parity of later frames.
#[derive(Clone, Debug)]
pub(super) struct WindowEntry {
    frame: Frame,
    cut: Cut,
    late_packets: u16,
}

/// A pending parity packet.
#[derive(Debug)]
pub(super) struct ParityJob {
    parity: Parity,
    frame: Frame,
    packets: u16,
    /// Bytes of its payload.
    len: usize,
    /// The divisions of the covered frames.
    cuts: Vec<(u64, Cut)>,
}

impl ParityJob {
    /// Adds a frame to `window` and creates its parity.
    pub(super) fn for_frame(
        window: &mut VecDeque<WindowEntry>,
        frame: &Frame,
        cut: Cut,
        share: FrameParity,
    ) -> Vec<Self> {
        window.push_back(WindowEntry {
            frame: *frame,
            cut,
            late_packets: share.late_packets,
        });
        if window.len() as u64 > DELAY_FRAMES + 1 {
            window.pop_front();
        }
        let frames = window.iter().map(|entry| WindowFrame {
            packets: entry.cut.packets() as u16,
            late_packets: entry.late_packets,
            size: entry.cut.size(),
            is_key: entry.frame.is_key(),
            before: frame.at.saturating_sub(entry.frame.at),
        });
        let covered = Window {
            frame: frame.index,
            frames: frames.collect(),
        };
        let len = window.iter().map(|entry| entry.cut.repair_len()).max();
        let cuts: Vec<_> = window
            .iter()
            .map(|entry| (entry.frame.index, entry.cut))
            .collect();
        (0..share.parity)
            .map(|number| Self {
                parity: Parity {
                    window: covered.clone(),
                    number,
                },
                frame: *frame,
                packets: cut.packets() as u16,
                len: len.unwrap_or(0),
                cuts: cuts.clone(),
            })
            .collect()
    }

    fn content(&self) -> Vec<u8> {
        let symbols: BTreeMap<Symbol, Vec<u8>> = self
            .cuts
            .iter()
            .flat_map(|&(frame, cut)| {
                (0..cut.packets()).map(move |number| {
                    let packet = number as u16;
                    (Symbol { frame, packet }, cut.pattern(frame, number))
                })
            })
            .collect();
        encode(&self.parity, self.len, |symbol| {
            symbols.get(&symbol).map(Vec::as_slice)
        })
    }
}

impl Sender {
    /// The next packet to send; `None` if none may be sent at `now`.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Datagram> {
        self.last_polled = now;
        if self.config.pacing.is_some() && self.release > now {
            return None;
        }
        let mut asked = false;
        loop {
            let job = self.urgent.pop_front();
            let job = job.or_else(|| self.copies.pop_front());
            let Some(job) = job.or_else(|| self.fresh.pop_front()) else {
                // Once suffices: a policy that requests only unneeded copies is not called again.
                if asked || !self.use_spare_room(now) {
                    return None;
                }
                asked = true;
                continue;
            };
            if let Some(datagram) = self.send(now, &job) {
                return Some(datagram);
            }
        }
    }

    fn send(&mut self, now: Instant, job: &Job) -> Option<Datagram> {
        match *job {
            Job::First { frame, number } => self.send_data(now, frame, number, Kind::Source, None),
            Job::Replica { frame, number } => {
                self.send_data(now, frame, number, Kind::Replica, None)
            }
            Job::Resend {
                frame,
                number,
                cause,
            } => {
                let packet = self.frames.packet(frame, number);
                packet.filter(|packet| packet.queued)?;
                self.send_data(now, frame, number, Kind::Retransmission, Some(cause))
            }
            Job::Repair { frame, number } => self.send_repair(now, frame, number),
            Job::Parity(ref job) => self.send_parity(now, job),
        }
    }

    fn send_data(
        &mut self,
        now: Instant,
        index: u64,
        number: u32,
        kind: Kind,
        cause: Option<RepairCause>,
    ) -> Option<Datagram> {
        let frame = self.frames.get(index)?;
        let (born, cut) = (frame.born, frame.cut);
        frame
            .packets
            .get(number as usize)
            .filter(|packet| packet.is_open())?;
        if !self.can_be_in_time(now, born) {
            self.abandon(now, index, number);
            return None;
        }
        let sequence = self.sent_packets.next_sequence();
        let frame = self.frames.get_mut(index)?;
        frame.batch.last_sent = Some(now);
        let restart = frame.restart;
        let header = Header {
            kind,
            sequence,
            frame: frame.frame,
            restart,
            packets: cut.packets() as u16,
            number: number as u16,
        };
        let packet = frame.packet_mut(number)?;
        packet.latest = Some(sequence);
        packet.in_flight = true;
        packet.first_sent.get_or_insert(now);
        let copy = match kind {
            Kind::Retransmission => {
                packet.queued = false;
                packet.retransmissions += 1;
                self.stats.lost_data += u64::from(packet.first_resent.is_none());
                packet.first_resent.get_or_insert(now);
                Copy::Retransmission(packet.retransmissions)
            }
            Kind::Replica => {
                packet.replicas += 1;
                Copy::Replica
            }
            _ => Copy::First,
        };
        let content = Content::Data {
            frame: index,
            number,
            copy,
        };
        let payload = cut.len(number) as usize;
        let datagram = self.packet(now, &header, None, payload, content, || {
            cut.pattern(index, number)
        });
        self.report_sent(now, index, number, kind, cause);
        Some(datagram)
    }

    fn send_repair(&mut self, now: Instant, index: u64, number: u32) -> Option<Datagram> {
        let frame = self.frames.get(index)?;
        if frame.is_complete() || !self.can_be_in_time(now, frame.born) {
            return None;
        }
        let header = Header {
            kind: Kind::Repair,
            sequence: self.sent_packets.next_sequence(),
            frame: frame.frame,
            restart: frame.restart,
            packets: frame.cut.packets() as u16,
            number: number as u16,
        };
        let len = frame.cut.repair_len();
        let bytes = match self.config.coding {
            Coding::Real => self.frames.get_mut(index)?.repair(number),
            Coding::Counted => Vec::new(),
        };
        let content = Content::Redundancy { frame: index };
        Some(self.packet(now, &header, None, len, content, || bytes))
    }

    fn send_parity(&mut self, now: Instant, job: &ParityJob) -> Option<Datagram> {
        if !self.can_be_in_time(now, self.epoch + job.frame.at) {
            return None;
        }
        let restart = self
            .frames
            .get(job.frame.index)
            .is_some_and(|frame| frame.restart);
        let header = Header {
            kind: Kind::Parity,
            sequence: self.sent_packets.next_sequence(),
            frame: job.frame,
            restart,
            packets: job.packets,
            number: job.parity.number,
        };
        let content = Content::Redundancy {
            frame: job.frame.index,
        };
        let window = Some(&job.parity.window);
        Some(self.packet(now, &header, window, job.len, content, || job.content()))
    }

    /// Encodes a packet and records it as sent.
    fn packet(
        &mut self,
        now: Instant,
        header: &Header,
        window: Option<&Window>,
        payload: usize,
        content: Content,
        bytes_of_payload: impl FnOnce() -> Vec<u8>,
    ) -> Datagram {
        let mut bytes = Vec::new();
        header.write(window, &mut bytes);
        let header_len = bytes.len();
        let size = header_len + payload;
        if self.config.coding == Coding::Real {
            bytes.extend(bytes_of_payload());
        }
        self.sent_packets.on_sent(now, size as u32, content);
        self.last_sent = now;
        if let Some(rate) = self.config.pacing {
            self.release = self.release.max(now) + rate.time_to_send(size as u64);
        }
        let stats = &mut self.stats;
        stats.packets_sent += 1;
        stats.cost.header_bytes += ByteCount::new(header_len as u64);
        let (packets, cost) = match header.kind {
            Kind::Source => (&mut stats.source_packets, &mut stats.cost.source_bytes),
            Kind::Retransmission => (
                &mut stats.retransmitted_packets,
                &mut stats.cost.retransmitted_bytes,
            ),
            Kind::Replica => (&mut stats.replica_packets, &mut stats.cost.redundancy_bytes),
            Kind::Repair | Kind::Parity => {
                (&mut stats.repair_packets, &mut stats.cost.redundancy_bytes)
            }
        };
        *packets += 1;
        *cost += ByteCount::new(payload as u64);
        Datagram { bytes, size }
    }

    /// Reports a sent data packet to the policy.
    fn report_sent(
        &mut self,
        now: Instant,
        index: u64,
        number: u32,
        kind: Kind,
        cause: Option<RepairCause>,
    ) {
        let deadline = self.config.deadline;
        let Some(frame) = self.frames.get(index) else {
            return;
        };
        let Some(packet) = frame.packets.get(number as usize).copied() else {
            return;
        };
        let range = policy_host::data_range(index, &frame.cut, number);
        let due = deadline.map(|deadline| frame.born + deadline);
        let Some(policy) = self.policy_mut() else {
            return;
        };
        match (kind, cause) {
            (Kind::Source, _) => policy.on_new_data(now, ByteCount::new(u64::from(range.len))),
            (Kind::Replica, _) if packet.is_under_repair() => {
                policy.on_repair(now, &Repair::ReplicaSent { range });
            }
            (Kind::Retransmission, Some(cause)) => {
                let event = Repair::Retransmitted {
                    range,
                    first_sent_at: packet.first_sent.unwrap_or(now),
                    lost_at: packet.lost_at.unwrap_or(now),
                    round: packet.retransmissions,
                    cause,
                    priority: Priority::default(),
                    deadline: due,
                };
                policy.on_repair(now, &event);
            }
            _ => {}
        }
    }
}
