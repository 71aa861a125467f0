//! An observer of one end's packets that checks on which paths copies leave.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use swiftwater_quic::crypto::EncryptionLevel;
use swiftwater_quic::observe::{Observation, Observer, ObserverFactory, Purpose, SentFrame};
use swiftwater_units::{Instant, PacketNumber, PathId, Side, StreamId};

/// What a server sent, as far as copies are concerned.
#[derive(Clone, Debug, Default)]
pub(crate) struct SentCopies(Arc<Mutex<State>>);

/// A packet with stream data.
#[derive(Debug)]
struct Packet {
    path: PathId,
    is_lost: bool,
}

#[derive(Debug, Default)]
struct State {
    packets: Vec<Packet>,
    by_number: BTreeMap<(PathId, PacketNumber), usize>,
    /// By byte of the stream: the last packet that carried it not as a copy, plus 1; 0 for none.
    origins: BTreeMap<StreamId, Vec<usize>>,
    copied_bytes: u64,
    faults: Vec<String>,
}

impl SentCopies {
    /// Panics if a copy left on the path on which its origin was in flight, or without one. Returns the bytes of copies.
    pub(crate) fn check(&self) -> u64 {
        let state = self.0.lock().unwrap();
        assert!(state.faults.is_empty(), "{:?}", state.faults.first());
        state.copied_bytes
    }
}

impl ObserverFactory for SentCopies {
    fn observer(&self, side: Side) -> Option<Box<dyn Observer>> {
        side.is_server()
            .then(|| Box::new(self.clone()) as Box<dyn Observer>)
    }
}

impl Observer for SentCopies {
    fn observe(&mut self, now: Instant, observation: &Observation<'_>) {
        let state = &mut *self.0.lock().unwrap();
        match *observation {
            Observation::PacketSent {
                path,
                level: EncryptionLevel::OneRtt,
                number,
                frames,
                ..
            } => state.on_sent(now, path, number, frames),
            Observation::PacketLost {
                path,
                level: EncryptionLevel::OneRtt,
                number,
                ..
            } => {
                if let Some(&packet) = state.by_number.get(&(path, number)) {
                    state.packets[packet].is_lost = true;
                }
            }
            _ => {}
        }
    }
}

impl State {
    fn on_sent(&mut self, now: Instant, path: PathId, number: PacketNumber, frames: &[SentFrame]) {
        self.by_number.insert((path, number), self.packets.len());
        self.packets.push(Packet {
            path,
            is_lost: false,
        });
        let packet = self.packets.len();
        for frame in frames {
            let SentFrame::Stream {
                id,
                offset,
                len,
                purpose,
                ..
            } = *frame
            else {
                continue;
            };
            let (start, end) = (offset as usize, offset as usize + len as usize);
            let origins = self.origins.entry(id).or_default();
            if origins.len() < end {
                origins.resize(end, 0);
            }
            if purpose != Purpose::Replica {
                origins[start..end].fill(packet);
                continue;
            }
            self.copied_bytes += u64::from(len);
            let packets = &self.packets;
            let is_fault = |origin: &usize| match origin.checked_sub(1) {
                Some(origin) => packets[origin].path == path && !packets[origin].is_lost,
                None => true,
            };
            if origins[start..end].iter().any(is_fault) {
                let fault = format!("a copy of {id:?} {offset}+{len} on {path:?} at {now:?}");
                self.faults.push(fault);
            }
        }
    }
}
