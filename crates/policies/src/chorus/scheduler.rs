//! Which path carries what of a response (Eq. 3 and Eq. 7 of the Chorus paper, and its re-scheduling).
//!
//! When the application announces a response of known size
//! ([`Hints::response`]), its bytes are divided once among the paths that may carry
//! data, in proportion to their bandwidths (Eq. 3) and whatever their windows: each path gets a quota. Data leave in the
//! order of the stream on whichever path has room and some quota left, so that each path carries its number of bytes.
//! The paper sends the first part of the response on the fast path and the last on the slow one, and says that this order
//! is only convenience; without a queue per path the order here is that of sending.
//!
//! Before each decision the quotas are held against the room in the windows. If one path has room beyond its quota and
//! another's quota is more than its room, all that hasn't left is divided anew so that all paths finish together (Eq. 7).
//! A path that no longer may carry data gives its quota up in the same way. What is left to send after the quotas are used
//! up (the announced size was too small) is divided by Eq. 7 as it waits.
//!
//! Everything else goes to the path of the least round-trip time, as with [`MinRtt`](crate::schedulers::MinRtt), and counts
//! against no quota: control frames, datagrams, retransmissions, urgent copies, and data of other streams. What a datagram
//! carries is known no more exactly than [`Demand`] tells: while control frames or retransmissions wait, the
//! rest of the datagram may be filled with the response and isn't counted, and a batch that begins with the response
//! counts as its data whole. While the response waits for a path and is the first in the order of sending, less urgent
//! streams wait behind it.

use swiftwater_quic::policy::{
    Demand, Hints, PathDecision, PathView, Rank, ResponseStart, Scheduler,
};
use swiftwater_tunable::tunable;
use swiftwater_units::{ByteCount, Instant, PathId};

use super::new_response;
use super::path_rate::{PathRates, RateSource};
use super::quotas::Quotas;
use super::shares::{apportion, finishing_together, proportional};
use crate::schedulers::eligibility::{Eligibility, EligibilityConfig};
use crate::schedulers::min_rtt::least_rtt;
use crate::schedulers::waiting::{has_room, wait_for};
use crate::schedulers::{PathCapacity, SchedulerFactory, batch};

/// Bytes of a datagram that are no stream data: packet header, tag, frame header.
const OVERHEAD: u64 = 36;

/// Parameters of [`ChorusScheduler`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChorusSchedulerConfig {
    /// Whether a response is divided as a whole before it starts; default true. If not, only what waits is divided, by
    /// Eq. 7, as the application writes it.
    pub oneshot: bool,
    /// Whether quotas are corrected while a response is sent; default true. If not, they are given up only with a path.
    pub reschedule: bool,
    /// Whether each path's room is held against its own quota; default true. If not, that of the slower paths is held
    /// against the quota of the one with the most bandwidth, as the paper's listing is printed.
    pub symmetric: bool,
    /// What bandwidths are read from; default [`RateSource::Delivery`].
    pub rate: RateSource,
    /// Bytes that follow one another on a path before the choice is made again, at most; default 64 KiB.
    pub batch: ByteCount,
    /// Which paths may carry data.
    pub eligibility: EligibilityConfig,
}

impl Default for ChorusSchedulerConfig {
    fn default() -> Self {
        Self {
            oneshot: true,
            reschedule: true,
            symmetric: true,
            rate: RateSource::default(),
            batch: batch::DEFAULT,
            eligibility: EligibilityConfig::default(),
        }
    }
}

tunable!(ChorusSchedulerConfig {
    "oneshot" => oneshot, "whether a response is divided as a whole before it starts";
    "reschedule" => reschedule, "whether the division is corrected while the response is sent";
    "symmetric" => symmetric, "whether each path's room is held against its own part";
    "rate" => rate, "what bandwidths are read from: delivery or window";
    "batch" => batch, "bytes that follow one another on a path, at most";
    ..eligibility;
});

impl SchedulerFactory for ChorusSchedulerConfig {
    fn scheduler(&self) -> Box<dyn Scheduler> {
        Box::new(ChorusScheduler::new(*self))
    }
}

/// See the module's documentation.
#[derive(Clone, Debug)]
pub struct ChorusScheduler {
    config: ChorusSchedulerConfig,
    eligibility: Eligibility,
    rates: PathRates,
    response: Option<ResponseStart>,
    /// The response wasn't divided yet.
    is_new: bool,
    quotas: Quotas,
    /// The path of the last decision, if that was about the response.
    charged: Option<PathId>,
    reschedules: u64,
    /// The paths that may carry the response, of the last decision.
    eligible: Vec<PathView>,
}

impl ChorusScheduler {
    /// No response was announced yet.
    pub fn new(config: ChorusSchedulerConfig) -> Self {
        Self {
            config,
            eligibility: Eligibility::new(config.eligibility),
            rates: PathRates::new(config.rate),
            response: None,
            is_new: false,
            quotas: Quotas::default(),
            charged: None,
            reschedules: 0,
            eligible: Vec::new(),
        }
    }

    /// What each path has yet to send of the response; in no certain order.
    pub fn quotas(&self) -> Vec<(PathId, ByteCount)> {
        let quotas = self.quotas.all().iter();
        quotas
            .map(|(id, bytes)| (*id, ByteCount::new(*bytes)))
            .collect()
    }

    /// How often the division of a response was corrected so far.
    pub fn reschedules(&self) -> u64 {
        self.reschedules
    }

    /// True if the next stream data are the response's; a host that doesn't know the stream sends no other.
    fn is_response_next(&self, demand: &Demand<'_>) -> bool {
        let is_next = |response: &ResponseStart| {
            demand
                .next_stream
                .is_none_or(|stream| stream == response.stream)
        };
        !demand.new_bytes.is_zero() && self.response.as_ref().is_some_and(is_next)
    }

    /// The decision about what goes before new data, if some of it can leave or nothing can.
    fn urgent(
        &mut self,
        now: Instant,
        paths: &[PathView],
        demand: &Demand<'_>,
    ) -> Option<PathDecision> {
        let others = demand.datagram_bytes + demand.retransmission_bytes;
        let mut urgent = *demand;
        urgent.new_bytes = ByteCount::ZERO;
        let copies = demand.copies.iter().copied();
        let copies: Vec<_> = copies
            .filter(|copy| copy.rank != Rank::AfterNewData && !copy.bytes.is_zero())
            .collect();
        urgent.copies = &copies;
        if urgent.bytes().is_zero() && !urgent.control {
            return None;
        }
        let for_any = urgent.control || !others.is_zero();
        let max_bytes = if urgent.control {
            ByteCount::ZERO
        } else {
            urgent.bytes().min(self.config.batch)
        };
        match least_rtt(&mut self.eligibility, now, paths, &urgent, max_bytes) {
            decision @ PathDecision::Path { .. } => Some(decision),
            decision => for_any.then_some(decision),
        }
    }

    /// Divides what is to be divided among the eligible paths.
    fn allot(&mut self, demand: &Demand<'_>) {
        if std::mem::take(&mut self.is_new) && self.config.oneshot {
            let bytes = self.response.map_or(0, |response| response.bytes.get());
            let rates = self.eligible.iter().map(|path| self.rates.rate(path));
            let rates: Vec<_> = rates.collect();
            self.divide(bytes, &proportional(&rates));
        }
        let total = self.quotas.total();
        if total == 0 {
            self.divide_to_finish_together(demand.new_bytes.get());
        } else if self.has_lost_path() {
            self.divide_to_finish_together(total);
        } else if self.config.reschedule && self.is_unbalanced() {
            self.reschedules += 1;
            self.divide_to_finish_together(total);
        }
    }

    /// True if a path with a quota may not carry the response any more.
    fn has_lost_path(&self) -> bool {
        let is_eligible = |id: PathId| self.eligible.iter().any(|path| path.id == id);
        let mut quotas = self.quotas.all().iter();
        quotas.any(|(id, bytes)| *bytes > 0 && !is_eligible(*id))
    }

    /// True if one path has room beyond its quota while another has a quota beyond its room.
    fn is_unbalanced(&self) -> bool {
        let by_rate =
            |a: &&PathView, b: &&PathView| self.rates.rate(a).total_cmp(&self.rates.rate(b));
        let fastest = self.eligible.iter().max_by(by_rate).map(|path| path.id);
        let unsent = |path: &PathView| match fastest {
            Some(fastest) if !self.config.symmetric => self.quotas.of(fastest),
            _ => self.quotas.of(path.id),
        };
        let has_spare = |path: &PathView| {
            path.window_room().get() >= unsent(path).saturating_add(path.mtu.into())
        };
        let is_backlogged = |path: &PathView| unsent(path) > path.window_room().get();
        self.eligible.iter().any(has_spare) && self.eligible.iter().any(is_backlogged)
    }

    fn divide_to_finish_together(&mut self, bytes: u64) {
        let capacity = |path: &PathView| PathCapacity {
            rate: self.rates.rate(path),
            delay: path.smoothed_rtt.as_secs_f64(),
        };
        let paths: Vec<_> = self.eligible.iter().map(capacity).collect();
        self.divide(bytes, &finishing_together(bytes as f64, &paths));
    }

    fn divide(&mut self, bytes: u64, shares: &[f64]) {
        let parts = apportion(bytes, shares);
        let ids = self.eligible.iter().map(|path| path.id);
        self.quotas.set(ids.zip(parts));
    }

    /// A path with room and quota, the one of the least round-trip time; else to wait for one with quota, if that ends.
    fn within_quotas(&self, now: Instant) -> Option<PathDecision> {
        let quota = |path: &PathView| self.quotas.of(path.id);
        let with_quota = || self.eligible.iter().filter(|path| quota(path) > 0);
        let ready = with_quota().filter(|path| has_room(path, now));
        if let Some(path) = ready.min_by_key(|path| (path.smoothed_rtt, path.id)) {
            return Some(PathDecision::Path {
                id: path.id,
                max_bytes: self.config.batch.min(ByteCount::new(quota(path))),
            });
        }
        let waits: Vec<_> = with_quota()
            .filter_map(|path| wait_for(path, now))
            .collect();
        let times = waits.iter().filter_map(|wait| match wait {
            PathDecision::Wait(until) => Some(*until),
            _ => None,
        });
        let first = times.min().map(PathDecision::Wait);
        first.or_else(|| waits.first().copied())
    }
}

impl Scheduler for ChorusScheduler {
    fn next(&mut self, now: Instant, paths: &[PathView], demand: &Demand<'_>) -> PathDecision {
        self.charged = None;
        self.rates.observe(now, paths);
        if !self.is_response_next(demand) {
            // Where the response follows in the same datagrams, they are looked at one by one.
            let max_bytes = if self.quotas.total() > 0 && !demand.new_bytes.is_zero() {
                ByteCount::ZERO
            } else {
                self.config.batch
            };
            return least_rtt(&mut self.eligibility, now, paths, demand, max_bytes);
        }
        if let Some(decision) = self.urgent(now, paths, demand) {
            return decision;
        }
        let eligible = self.eligibility.paths(now, paths, demand);
        self.eligible.clear();
        self.eligible.extend(eligible.map(|(_, path)| *path));
        let decision = if self.eligible.is_empty() {
            None
        } else {
            self.allot(demand);
            self.within_quotas(now)
        };
        // Nothing would end the wait for a path with quota: the others carry it.
        let decision = decision.unwrap_or_else(|| {
            least_rtt(&mut self.eligibility, now, paths, demand, ByteCount::ZERO)
        });
        if let PathDecision::Path { id, .. } = decision {
            self.charged = Some(id);
        }
        decision
    }

    fn on_sent(&mut self, now: Instant, path: PathId, bytes: ByteCount) {
        self.eligibility.on_sent(now, path);
        if self.charged == Some(path) {
            self.quotas
                .charge(path, bytes.get().saturating_sub(OVERHEAD));
        }
    }

    fn on_hints(&mut self, _now: Instant, hints: &Hints) {
        if let Some(response) = new_response(hints, self.response.as_ref()) {
            self.response = Some(response);
            self.is_new = true;
            self.quotas.clear();
        }
    }
}
