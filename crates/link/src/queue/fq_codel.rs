//! FQ-CoDel: flows in separate queues with fair queueing, each under CoDel (RFC 8290).

use std::collections::VecDeque;

use swiftwater_units::Instant;

use super::backlog::{Backlog, Waiting};
use super::codel::{self, CoDel, CoDelConfig};
use super::discipline::{QueueConfigError, check_range};
use super::state::AqmState;
use crate::packet::{Payload, mix};
use crate::random::scale;

/// Parameters of FQ-CoDel.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct FqCoDelConfig {
    /// CoDel's parameters, for every queue. `mtu` refers to the rest of the flow's own queue.
    pub codel: CoDelConfig,
    /// Bytes that a queue may send per round, 64 to 16 MiB. Default: 1514 (RFC 8290, section
    /// 5.2.3).
    pub quantum: u32,
    /// Number of queues, 1 to 65536; flows with the same hash share one. Default: 1024
    /// (RFC 8290, section 5.2.2).
    pub flows: u32,
}

impl Default for FqCoDelConfig {
    fn default() -> Self {
        Self {
            codel: CoDelConfig::default(),
            quantum: 1_514,
            flows: 1_024,
        }
    }
}

impl FqCoDelConfig {
    pub(crate) fn validate(&self) -> Result<(), QueueConfigError> {
        const NAME: &str = "fq-codel";
        self.codel.validate(NAME)?;
        let quantum = (64..=1 << 24).contains(&self.quantum);
        check_range(
            NAME,
            "quantum",
            self.quantum,
            quantum,
            "64 to 16777216 bytes",
        )?;
        let flows = (1..=1 << 16).contains(&self.flows);
        check_range(NAME, "flows", self.flows, flows, "1 to 65536")
    }
}

#[derive(Debug)]
struct Flow<P> {
    backlog: Backlog<P>,
    codel: CoDel,
    /// Bytes that it may still send in this round.
    deficit: i64,
    /// It is in one of the lists.
    listed: bool,
}

/// All queues, and the two lists of active ones.
#[derive(Debug)]
pub(crate) struct FqCoDelQueue<P> {
    flows: Vec<Flow<P>>,
    new: VecDeque<u32>,
    old: VecDeque<u32>,
    quantum: i64,
    ecn: bool,
    /// Salt of the hash, so that collisions of flows differ between seeds (RFC 8290, section
    /// 4.1.1).
    salt: u64,
    packets: usize,
}

/// A packet dropped to make space.
#[derive(Debug)]
pub(crate) struct Evicted<P> {
    pub(crate) item: Waiting<P>,
    /// It is the packet that just arrived.
    pub(crate) newest: bool,
}

impl<P: Payload> FqCoDelQueue<P> {
    pub(crate) fn new(config: &FqCoDelConfig, salt: u64) -> Self {
        let flow = || Flow {
            backlog: Backlog::new(),
            codel: CoDel::new(&config.codel),
            deficit: 0,
            listed: false,
        };
        Self {
            flows: (0..config.flows).map(|_| flow()).collect(),
            new: VecDeque::new(),
            old: VecDeque::new(),
            quantum: i64::from(config.quantum),
            ecn: config.codel.ecn,
            salt,
            packets: 0,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.packets == 0
    }

    /// Adds a packet; returns the number of its queue (RFC 8290, section 4.1).
    pub(crate) fn push(&mut self, item: Waiting<P>) -> u32 {
        let hash = mix(item.packet.payload.flow() ^ self.salt);
        let index = scale(hash, self.flows.len() as u64) as u32;
        let flow = &mut self.flows[index as usize];
        flow.backlog.push(item);
        self.packets += 1;
        if !flow.listed {
            flow.listed = true;
            flow.deficit = self.quantum;
            self.new.push_back(index);
        }
        index
    }

    /// Drops the first packet of the longest queue in bytes (RFC 8290, section 4.1.3); `last` is the
    /// queue of the newest packet.
    pub(crate) fn evict(&mut self, last: u32) -> Option<Evicted<P>> {
        let mut longest: Option<(u64, u32)> = None;
        for &index in self.new.iter().chain(&self.old) {
            let bytes = self.flows[index as usize].backlog.bytes();
            if longest.is_none_or(|(most, _)| bytes > most) {
                longest = Some((bytes, index));
            }
        }
        let (_, index) = longest?;
        let flow = &mut self.flows[index as usize];
        let item = flow.backlog.pop()?;
        self.packets -= 1;
        // The newest packet is the last of its queue.
        let newest = index == last && flow.backlog.is_empty();
        Some(Evicted { item, newest })
    }

    /// Deficit round robin over the queues, new ones first (RFC 8290, section 4.2).
    pub(crate) fn dequeue(
        &mut self,
        now: Instant,
        dropped: &mut Vec<Waiting<P>>,
    ) -> Option<Waiting<P>> {
        loop {
            let is_new = !self.new.is_empty();
            let list = if is_new { &mut self.new } else { &mut self.old };
            let index = *list.front()?;
            let flow = &mut self.flows[index as usize];
            if flow.deficit <= 0 {
                flow.deficit += self.quantum;
                list.pop_front();
                self.old.push_back(index);
                continue;
            }
            let before = dropped.len();
            let item = codel::dequeue(&mut flow.codel, self.ecn, &mut flow.backlog, now, dropped);
            self.packets -= dropped.len() - before;
            if let Some(item) = item {
                flow.deficit -= i64::from(item.size);
                self.packets -= 1;
                return Some(item);
            }
            list.pop_front();
            if is_new {
                // Moved to the end of the old list, so that a flow can't become new again at once
                // and starve the others.
                self.old.push_back(index);
            } else {
                flow.listed = false;
            }
        }
    }

    /// A dequeue found all queues empty: the lists are cleared.
    pub(crate) fn on_idle(&mut self) {
        for index in self.new.drain(..).chain(self.old.drain(..)) {
            let flow = &mut self.flows[index as usize];
            flow.codel.on_empty();
            flow.listed = false;
        }
    }

    pub(crate) fn state(&self) -> AqmState {
        AqmState::FqCoDel {
            new: self.new.len(),
            old: self.old.len(),
        }
    }
}
