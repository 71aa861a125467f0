//! Reordering, duplication, corruption, MTU.

use std::time::Duration;

use swiftwater_link::{
    Buffer, DropReason, Jitter, Link, LinkConfig, LossModel, Packet, Reorder, ReorderBy,
};
use swiftwater_units::{Bandwidth, ByteCount, Instant};

fn ms(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

/// Sends packets numbered from 0, one each millisecond, and returns (number, arrival) as they
/// arrive.
fn run(config: LinkConfig, seed: u64, count: u32) -> (Vec<(u32, Instant)>, Link<Vec<u8>>) {
    let mut link = Link::new(config, seed, Instant::ZERO).unwrap();
    let mut log = Vec::new();
    let mut collect = |link: &mut Link<Vec<u8>>, until: Instant| {
        while let Some(at) = link.next_event().filter(|at| *at <= until) {
            let payload = link.poll(at).unwrap().payload;
            log.push((u32::from_be_bytes(payload[..4].try_into().unwrap()), at));
        }
    };
    for number in 0..count {
        let now = ms(u64::from(number));
        collect(&mut link, now);
        link.enqueue(now, Packet::new(number.to_be_bytes().to_vec()));
    }
    collect(&mut link, Instant::FAR_FUTURE);
    (log, link)
}

fn reorder(probability: f64, by: ReorderBy) -> LinkConfig {
    LinkConfig::default()
        .delay(Duration::from_millis(10))
        .reorder(Reorder { probability, by })
}

#[test]
fn a_delayed_packet_is_overtaken_and_delays_no_other() {
    let by = ReorderBy::Delay(Duration::from_micros(3500));
    let (log, link) = run(reorder(0.1, by), 1, 1000);
    let late: Vec<_> = log
        .iter()
        .filter(|(number, at)| *at > ms(u64::from(*number) + 10))
        .collect();
    assert!((60..140).contains(&late.len()), "{}", late.len());
    let delay = Duration::from_micros(13_500);
    assert!(
        late.iter()
            .all(|(number, at)| *at == ms(u64::from(*number)) + delay)
    );
    // Unless the next ones are late as well, each late packet is overtaken by three.
    let reordered = link.counters().reordered.packets.get();
    assert!(reordered as usize <= late.len() && reordered as usize * 2 > late.len());
    assert_eq!(log.len(), 1000);
}

#[test]
fn a_packet_held_back_is_released_by_the_nth_after_it() {
    let by = ReorderBy::Packets {
        count: 3,
        at_most: Duration::from_secs(1),
    };
    let (log, link) = run(reorder(0.02, by), 2, 1000);
    let mut seen = 0;
    for (position, (number, at)) in log.iter().enumerate() {
        let natural = ms(u64::from(*number) + 10);
        if *at > natural && *number < 990 {
            seen += 1;
            // The packet that released it arrived at the same time, just before.
            let overtook = log[..position].iter().filter(|(n, _)| n > number);
            assert_eq!(overtook.count(), 3, "{number}");
            assert_eq!(log[position - 1].1, *at);
        }
    }
    assert!(seen > 5);
    assert!(link.counters().reordered.packets.get() >= seen);
}

#[test]
fn a_packet_held_back_does_not_wait_for_ever() {
    let by = ReorderBy::Packets {
        count: 5,
        at_most: Duration::from_millis(40),
    };
    let (log, link) = run(reorder(1.0, by), 1, 3);
    // All are held and none passes: each arrives when its time is up.
    assert_eq!(log, [(0, ms(50)), (1, ms(51)), (2, ms(52))]);
    assert_eq!(link.counters().reordered.packets.get(), 0);
}

#[test]
fn jitter_reorders_only_if_asked() {
    let config = LinkConfig::default().jitter(Jitter::Uniform(Duration::from_millis(5)));
    let (log, link) = run(config.clone(), 1, 500);
    assert!(log.is_sorted());
    assert_eq!(link.counters().reordered.packets.get(), 0);
    let (log, link) = run(config.jitter_reorders(true), 1, 500);
    assert!(!log.is_sorted_by_key(|(number, _)| *number));
    assert!(link.counters().reordered.packets.get() > 100);
}

#[test]
fn copies_follow_their_originals() {
    let config = LinkConfig::default()
        .delay(Duration::from_millis(2))
        .duplicate(0.25);
    let (log, link) = run(config, 4, 1000);
    let counters = link.counters();
    let copies = counters.duplicated.packets.get() as usize;
    assert!((200..300).contains(&copies), "{copies}");
    assert_eq!(log.len(), 1000 + copies);
    assert_eq!(
        log.windows(2).filter(|pair| pair[0] == pair[1]).count(),
        copies
    );
    assert_eq!(counters.duplicated.bytes.get() as usize, copies * 32);
    assert_eq!(counters.reordered.packets.get(), 0);
}

#[test]
fn corruption_changes_one_byte_and_spares_copies() {
    let config = LinkConfig::default().corrupt(1.0).duplicate(1.0);
    let mut link = Link::new(config, 9, Instant::ZERO).unwrap();
    let mut places = [0; 10];
    for _ in 0..1000 {
        link.enqueue(Instant::ZERO, Packet::new(vec![0xa5; 10]));
        let first = link.poll(Instant::ZERO).unwrap().payload;
        let changed: Vec<_> = (0..10).filter(|i| first[*i] != 0xa5).collect();
        assert_eq!((first.len(), changed.len()), (10, 1));
        places[changed[0]] += 1;
        assert_eq!(link.poll(Instant::ZERO).unwrap().payload, [0xa5; 10]);
    }
    assert!(
        places.iter().all(|count| (50..160).contains(count)),
        "{places:?}"
    );
    assert_eq!(link.counters().corrupted.packets.get(), 1000);
    // Nothing to corrupt, no harm.
    link.enqueue(Instant::ZERO, Packet::new(vec![]));
    assert!(link.poll(Instant::ZERO).is_some());
    assert_eq!(link.counters().corrupted.packets.get(), 1000);
}

#[test]
fn packets_above_the_mtu_are_dropped_and_counted() {
    let mut link = Link::new(LinkConfig::default().mtu(1500), 1, Instant::ZERO).unwrap();
    assert_eq!(
        link.enqueue(Instant::ZERO, Packet::new(vec![0; 1472])),
        None
    );
    let dropped = link
        .enqueue(Instant::ZERO, Packet::new(vec![0; 1473]))
        .unwrap();
    assert_eq!(
        (dropped.reason, dropped.packet.payload.len()),
        (DropReason::Mtu, 1473)
    );
    assert_eq!(link.counters().dropped_mtu.packets.get(), 1);
    assert_eq!(link.counters().dropped().bytes, ByteCount::new(1501));
}

#[test]
fn impairments_do_not_change_each_others_draws() {
    let base = LinkConfig::default()
        .delay(Duration::from_millis(10))
        .jitter(Jitter::Uniform(Duration::from_micros(900)))
        .duplicate(0.1);
    let (alone, _) = run(base.clone(), 6, 2000);
    let lossy = base
        .loss(LossModel::GilbertElliott {
            p: 0.1,
            r: 0.5,
            h: 0.1,
            k: 0.99,
        })
        .corrupt(0.0);
    let (with_loss, link) = run(lossy, 6, 2000);
    assert!(link.counters().dropped_random.packets.get() > 100);
    // What survives arrives at the same time and as often as without loss.
    let survivors: Vec<_> = alone
        .iter()
        .filter(|entry| with_loss.contains(entry))
        .collect();
    assert_eq!(survivors, with_loss.iter().collect::<Vec<_>>());
}

#[test]
fn the_same_seed_gives_the_same_log() {
    let config = LinkConfig::default()
        .rate(Bandwidth::from_kbps(300))
        .delay(Duration::from_millis(10))
        .jitter(Jitter::Normal {
            mean: Duration::from_millis(4),
            deviation: Duration::from_millis(3),
        })
        .buffer(Buffer::Bytes(ByteCount::new(500)))
        .loss(LossModel::Bernoulli(0.1))
        .duplicate(0.1)
        .reorder(Reorder {
            probability: 0.1,
            by: ReorderBy::Packets {
                count: 2,
                at_most: Duration::from_millis(9),
            },
        });
    let (first, _) = run(config.clone(), 42, 2000);
    let (second, _) = run(config.clone(), 42, 2000);
    let (other, _) = run(config, 43, 2000);
    assert_eq!(first, second);
    assert_ne!(first, other);
}
