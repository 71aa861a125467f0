//! Random operations against a naive model.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

#[derive(Clone, Copy, Debug)]
enum Op {
    Wait(u64),
    Send { size: u16, probe: bool },
    Ack { pick: u64, ce: u64 },
    AckLate { pick: u64 },
    Lose { pick: u64, persistent: bool },
    Drained,
    WindowBlocked,
    PacerBlocked(u64),
    Migrate,
    Window(u64),
    Rate(Option<u64>),
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        4 => (0..50_000_000_u64).prop_map(Op::Wait),
        8 => (2..=1_500_u16, prop::bool::weighted(0.1)).prop_map(|(size, probe)| Op::Send { size, probe }),
        6 => (any::<u64>(), prop_oneof![9 => Just(0), 1 => 1..4_u64])
            .prop_map(|(pick, ce)| Op::Ack { pick, ce }),
        2 => any::<u64>().prop_map(|pick| Op::AckLate { pick }),
        2 => (any::<u64>(), prop::bool::weighted(0.1))
            .prop_map(|(pick, persistent)| Op::Lose { pick, persistent }),
        1 => Just(Op::Drained),
        1 => Just(Op::WindowBlocked),
        1 => (0..100_000_u64).prop_map(Op::PacerBlocked),
        1 => Just(Op::Migrate),
        1 => (2_400..1_000_000_u64).prop_map(Op::Window),
        1 => prop::option::of(any::<u64>()).prop_map(Op::Rate),
    ]
}

/// What the path should hold.
#[derive(Default)]
struct Model {
    flying: BTreeMap<u64, Packet>,
    lost: BTreeMap<u64, Packet>,
    /// Numbers below this were sent to another address.
    address_from: u64,
    delivered: u64,
    /// Not application-limited any more, as far as known.
    unlimited: bool,
    /// Numbers below this were sent when the application last had nothing more to send.
    marked_below: u64,
    /// Bytes delivered since then of packets sent since then.
    delivered_since: u64,
}

impl Model {
    fn in_flight(&self) -> u64 {
        self.flying
            .range(self.address_from..)
            .map(|(_, p)| u64::from(p.size))
            .sum()
    }

    /// Accounts for delivered packets.
    fn deliver(&mut self, acked: &[Packet]) {
        let sum = |from: u64| -> u64 {
            let counted = acked.iter().filter(|p| p.number.get() >= from);
            counted.map(|p| u64::from(p.size)).sum()
        };
        self.delivered += sum(0);
        self.delivered_since += sum(self.marked_below.max(self.address_from));
        let marked = self
            .flying
            .range(self.address_from..self.marked_below.max(self.address_from));
        let outstanding: u64 = marked.map(|(_, p)| u64::from(p.size)).sum();
        self.unlimited |= self.delivered_since > outstanding;
    }

    /// Takes about a quarter of `from`, chosen by the bits of `pick`.
    fn take(from: &mut BTreeMap<u64, Packet>, pick: u64) -> Vec<Packet> {
        let chosen = |n: &u64| pick.rotate_right(*n as u32 % 64).is_multiple_of(4);
        let numbers: Vec<_> = from.keys().copied().filter(chosen).collect();
        numbers.iter().filter_map(|n| from.remove(n)).collect()
    }
}

fn apply(bench: &mut Bench, model: &mut Model, op: Op) {
    match op {
        Op::Wait(nanos) => bench.wait(Duration::from_nanos(nanos)),
        Op::Send { size, probe } => {
            let packet = bench.send_size(size, probe);
            assert_eq!(packet.snapshot.is_app_limited, probe || !model.unlimited);
            model.flying.insert(packet.number.get(), packet);
        }
        Op::Ack { pick, ce } => {
            let acked = Model::take(&mut model.flying, pick);
            if let Some(packet) = acked.last() {
                bench
                    .path
                    .on_rtt_sample(bench.now, packet.sent_at, ms(pick % 30));
            }
            model.deliver(&acked);
            bench.result(&acked, &mut [], false, ce);
        }
        Op::AckLate { pick } => {
            let acked = Model::take(&mut model.lost, pick);
            model.deliver(&acked);
            bench.ack(&acked);
        }
        Op::Lose { pick, persistent } => {
            let mut lost = Model::take(&mut model.flying, pick);
            bench.lose(&mut lost, persistent);
            model
                .lost
                .extend(lost.into_iter().map(|p| (p.number.get(), p)));
        }
        Op::Drained => {
            if bench.path.bytes_in_flight() < bench.path.cwnd() {
                (model.unlimited, model.delivered_since) = (false, 0);
                model.marked_below = bench.next;
            }
            bench.path.set_app_limited(bench.now);
            bench.wait(Duration::from_nanos(1));
        }
        Op::WindowBlocked => bench.path.on_window_blocked(),
        Op::PacerBlocked(n) => bench.path.on_pacer_blocked(bench.now, ByteCount::new(n)),
        Op::Migrate => {
            let config = bench.config.clone();
            bench
                .path
                .reset_for_new_path(bench.now, &config, config.initial_rtt, &mut bench.rng);
            (model.unlimited, model.delivered_since) = (false, 0);
            model.address_from = bench.next;
            bench.wait(Duration::from_nanos(1));
        }
        Op::Window(cwnd) => bench.set_cwnd(ByteCount::new(cwnd)),
        Op::Rate(rate) => bench.cc.script().pacing.rate = rate.map(Bandwidth::from_bps),
    }
}

proptest! {
    #[test]
    fn accounting_matches_a_naive_model(ops in prop::collection::vec(op(), 1..200)) {
        let mut bench = Bench::with(|_| {});
        let mut model = Model::default();
        let mut refuted = Vec::new();
        let mut newest_episode = 0;
        for op in ops {
            apply(&mut bench, &mut model, op);
            prop_assert_eq!(bench.path.bytes_in_flight().get(), model.in_flight());
            prop_assert_eq!(bench.path.stats().delivered.get(), model.delivered);
            let release = bench.path.pacing_release(bench.now);
            let free = bench.path.pacing_budget(bench.now) > 0;
            prop_assert_eq!(release <= bench.now, free);
            // Never more than a depth and a packet to wait for, at one packet per probe timeout.
            prop_assert!(release - bench.now <= ms(60_000));
            let rtt = bench.path.rtt();
            let restarted = bench.path.stats().persistent_congestions > 0;
            prop_assert!(rtt.min <= rtt.latest || !rtt.has_sample || restarted);
            for call in bench.calls() {
                match call {
                    Call::Spurious(id) => {
                        prop_assert!(!refuted.contains(&id), "reported twice");
                        refuted.push(id);
                    }
                    Call::Loss(loss) => {
                        prop_assert_eq!(loss.new_episode, loss.episode.0 > newest_episode);
                        newest_episode = newest_episode.max(loss.episode.0);
                    }
                    Call::Ce(ce) => newest_episode = newest_episode.max(ce.episode.0),
                    Call::Ack(ack) => {
                        let sum = ack.inflight + ack.acked_bytes + ack.newly_lost_bytes;
                        prop_assert_eq!(sum, ack.prior_inflight);
                        prop_assert!(!(ack.in_recovery && ack.recovery_ended));
                    }
                    _ => {}
                }
            }
        }
    }

    #[test]
    fn a_path_never_sends_faster_than_rate_and_depth(
        waits in prop::collection::vec(0..3_000_000_u64, 1..300),
        mbps in 1..1_000_u64,
    ) {
        let rate = Bandwidth::from_mbps(mbps);
        let mut bench = Bench::with(|_| {});
        bench.set_cwnd(ByteCount::new(1 << 40));
        bench.cc.script().pacing.rate = Some(rate);
        bench.sample_rtt(ms(20), ms(0));
        let start = bench.now;
        let mut sent = 0;
        for wait in waits {
            bench.wait(Duration::from_nanos(wait));
            while bench.path.pacing_release(bench.now) <= bench.now {
                bench.send();
                sent += u64::from(MDS);
            }
            let allowed = rate.bytes_in(bench.now - start) + 12_000 + u64::from(MDS);
            prop_assert!(sent <= allowed, "{} of {}", sent, allowed);
        }
    }
}
