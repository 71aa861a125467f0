//! The queue: limits, statistics, ECN marks.

use std::time::Duration;

use swiftwater_link::{
    Buffer, CoDelConfig, DropReason, Ecn, EcnThreshold, Link, LinkConfig, LinkConfigError, Packet,
    QueueDiscipline, Trace,
};
use swiftwater_units::{Bandwidth, ByteCount, Instant, PacketCount};

const T0: Instant = Instant::ZERO;

fn packet(size: usize) -> Packet<Vec<u8>> {
    Packet::new(vec![0; size - 28])
}

/// 12 Mbit/s: 1500 bytes take a millisecond.
fn slow() -> LinkConfig {
    LinkConfig::default().rate(Bandwidth::from_mbps(12))
}

fn drops(link: &Link<Vec<u8>>) -> u64 {
    link.counters().dropped_queue.packets.get()
}

#[test]
fn the_byte_limit_holds_to_the_byte() {
    let config = slow().buffer(Buffer::Bytes(ByteCount::new(4000)));
    let mut link = Link::new(config, 1, T0).unwrap();
    assert_eq!(link.enqueue(T0, packet(1500)), None);
    assert_eq!(link.enqueue(T0, packet(1500)), None);
    let dropped = link.enqueue(T0, packet(1001)).unwrap();
    assert_eq!(
        (dropped.reason, dropped.packet),
        (DropReason::Queue, packet(1001))
    );
    assert_eq!(link.enqueue(T0, packet(1000)), None);
    assert_eq!(link.queue_len(), ByteCount::new(4000));
    assert!(link.enqueue(T0, packet(29)).is_some());
    // Room appears when the first has left, not earlier.
    assert!(
        link.enqueue(Instant::from_nanos(999_999), packet(1500))
            .is_some()
    );
    assert_eq!(link.enqueue(Instant::from_millis(1), packet(1500)), None);
    assert_eq!(drops(&link), 3);
    assert_eq!(link.counters().dropped_queue.bytes.get(), 1001 + 29 + 1500);
}

#[test]
fn the_packet_limit_holds_to_the_packet() {
    let config = slow().buffer(Buffer::Packets(PacketCount::new(3)));
    let mut link = Link::new(config, 1, T0).unwrap();
    let accepted = (0..5)
        .filter(|_| link.enqueue(T0, packet(100)).is_none())
        .count();
    assert_eq!(accepted, 3);
    assert_eq!(link.queue_stats(T0).packets, PacketCount::new(3));
}

#[test]
fn an_empty_queue_accepts_any_packet() {
    let config = slow().buffer(Buffer::Bytes(ByteCount::new(1)));
    let mut link = Link::new(config, 1, T0).unwrap();
    assert_eq!(link.enqueue(T0, packet(1500)), None);
    assert!(link.enqueue(T0, packet(100)).is_some());
}

#[test]
fn bandwidth_delay_products_become_bytes() {
    let config = LinkConfig::default()
        .rate(Bandwidth::from_mbps(100))
        .bdp_rtt(Duration::from_micros(30_600));
    let resolved = |factor| config.clone().buffer(Buffer::Bdp(factor)).resolved_buffer();
    assert_eq!(resolved(1.0), Ok(Buffer::Bytes(ByteCount::new(382_500))));
    assert_eq!(resolved(0.1), Ok(Buffer::Bytes(ByteCount::new(38_250))));
    assert_eq!(
        resolved(f64::NAN).map_err(|e| e.to_string().contains("buffer")),
        Err(true)
    );

    let trace = Trace::parse_csv("t_ms,rate_kbps,rtt_ms,loss\n0,1000,,\n100,3000,,\n").unwrap();
    let config = LinkConfig::default().rate(trace).buffer(Buffer::Bdp(2.0));
    assert_eq!(config.resolved_buffer(), Err(LinkConfigError::BdpNeedsRtt));
    let config = config.bdp_rtt(Duration::from_millis(100));
    assert_eq!(
        config.resolved_buffer(),
        Ok(Buffer::Bytes(ByteCount::new(50_000)))
    );

    let config = LinkConfig::default().buffer(Buffer::Bdp(1.0));
    let error = Link::<Vec<u8>>::new(config, 1, T0).unwrap_err();
    assert_eq!(error, LinkConfigError::BdpNeedsRate);
}

#[test]
fn the_mean_is_weighted_by_time() {
    let mut link = Link::new(slow(), 1, T0).unwrap();
    link.enqueue(T0, packet(1500));
    link.enqueue(T0, packet(1500));
    // 3000 bytes for 1 ms, 1500 for 1 ms, nothing for 8 ms.
    let stats = link.queue_stats(Instant::from_millis(10));
    assert!((stats.mean_bytes - 450.0).abs() < 1e-9, "{stats:?}");
    assert_eq!(stats.max_bytes, ByteCount::new(3000));
    assert_eq!(stats.max_packets, PacketCount::new(2));
    assert_eq!(stats.bytes, ByteCount::ZERO);
    // Querying changed nothing: half-way, one packet is in the queue.
    assert_eq!(
        link.queue_stats(Instant::from_micros(1500)).packets,
        PacketCount::new(1)
    );

    link.reset_queue_stats(Instant::from_millis(1));
    let stats = link.queue_stats(Instant::from_millis(4));
    assert!((stats.mean_bytes - 500.0).abs() < 1e-9, "{stats:?}");
    assert_eq!(stats.max_bytes, ByteCount::new(1500));
}

#[test]
fn waiting_times_are_those_before_the_transmission() {
    let disciplines = [
        QueueDiscipline::DropTail,
        QueueDiscipline::CoDel(CoDelConfig::default()),
    ];
    for discipline in disciplines {
        let mut link = Link::new(slow().queue(discipline), 1, T0).unwrap();
        // Packet i of each hundred waits i milliseconds.
        for n in 0..1_000 {
            if n % 100 == 0 {
                link.poll(Instant::from_millis(n));
                for _ in 0..100 {
                    link.enqueue(Instant::from_millis(n), packet(1500));
                }
            }
        }
        link.poll(Instant::from_millis(2_000));
        let delay = link.queue_stats(Instant::from_millis(2_000)).delay;
        assert_eq!(delay.packets, PacketCount::new(1_000));
        assert_eq!(delay.mean, Duration::from_micros(49_500));
        assert_eq!(delay.max, Duration::from_millis(99));
        let p99 = delay.p99.as_secs_f64();
        assert!((p99 / 0.098 - 1.0).abs() < 0.01, "{p99}");

        link.reset_queue_stats(Instant::from_millis(2_000));
        link.enqueue(Instant::from_millis(2_000), packet(1500));
        link.poll(Instant::from_millis(2_001));
        let delay = link.queue_stats(Instant::from_millis(2_001)).delay;
        assert_eq!((delay.packets.get(), delay.p99), (1, Duration::ZERO));
    }
}

#[test]
fn the_percentile_counts_packets_that_did_not_wait() {
    let mut link = Link::new(slow(), 1, T0).unwrap();
    // One in fifty waits a millisecond.
    for n in 0..1_000 {
        let now = Instant::from_millis(10 * n);
        link.enqueue(now, packet(1500));
        if n % 50 == 0 {
            link.enqueue(now, packet(1500));
        }
    }
    let delay = link.queue_stats(Instant::from_millis(20_000)).delay;
    let p99 = delay.p99.as_secs_f64();
    assert!((p99 / 0.001 - 1.0).abs() < 0.01, "{delay:?}");
    // One in two hundred does.
    link.reset_queue_stats(Instant::from_millis(20_000));
    for n in 0..1_000 {
        let now = Instant::from_millis(20_000 + 10 * n);
        link.enqueue(now, packet(1500));
        if n % 200 == 0 {
            link.enqueue(now, packet(1500));
        }
    }
    let delay = link.queue_stats(Instant::from_millis(40_000)).delay;
    assert_eq!(delay.p99, Duration::ZERO);
}

/// Sends ten ECT(0) packets at once; which of them come out marked?
fn marks(threshold: EcnThreshold) -> Vec<usize> {
    let mut link = Link::new(slow().ecn_threshold(threshold), 1, T0).unwrap();
    for _ in 0..10 {
        link.enqueue(T0, Packet::with_ecn(vec![0; 1472], Ecn::Ect0));
    }
    let ecns: Vec<_> = (0..10)
        .map(|_| link.poll(Instant::FAR_FUTURE).unwrap().ecn)
        .collect();
    let marked: Vec<_> = (0..10).filter(|i| ecns[*i] == Ecn::Ce).collect();
    assert_eq!(
        link.counters().ecn_marked.packets.get(),
        marked.len() as u64
    );
    marked
}

#[test]
fn packets_that_find_the_queue_above_the_threshold_are_marked() {
    // Packet i finds 1500 * i bytes and waits i milliseconds.
    assert_eq!(marks(EcnThreshold::Bytes(ByteCount::new(10_500))), [8, 9]);
    assert_eq!(
        marks(EcnThreshold::Bytes(ByteCount::new(10_499))),
        [7, 8, 9]
    );
    assert_eq!(marks(EcnThreshold::Packets(PacketCount::new(8))), [9]);
    assert_eq!(marks(EcnThreshold::Delay(Duration::from_millis(7))), [8, 9]);
}

#[test]
fn only_capable_packets_are_marked() {
    let config = slow().ecn_threshold(EcnThreshold::Packets(PacketCount::ZERO));
    let mut link = Link::new(config, 1, T0).unwrap();
    link.enqueue(T0, packet(1500));
    for ecn in [Ecn::NotEct, Ecn::Ect1, Ecn::Ce] {
        link.enqueue(T0, Packet::with_ecn(vec![0; 100], ecn));
    }
    let seen: Vec<_> = (0..4)
        .map(|_| link.poll(Instant::FAR_FUTURE).unwrap().ecn)
        .collect();
    assert_eq!(seen, [Ecn::NotEct, Ecn::NotEct, Ecn::Ce, Ecn::Ce]);
    assert_eq!(link.counters().ecn_marked.packets.get(), 1);
}

#[test]
fn codepoints_are_those_of_the_header() {
    for ecn in [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::Ce] {
        assert_eq!(Ecn::from_bits(ecn.bits() | 0b1010_1100), ecn);
    }
    assert_eq!(
        [Ecn::Ect1.bits(), Ecn::Ect0.bits(), Ecn::Ce.bits()],
        [1, 2, 3]
    );
}
