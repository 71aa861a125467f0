use std::time::Duration;

use super::*;

/// An IPv4 header of this protocol, and content.
fn packet(protocol: u8, len: usize) -> Vec<u8> {
    let mut packet = vec![0; len];
    packet[0] = 0x45;
    packet[9] = protocol;
    packet
}

#[test]
fn only_the_policed_protocol_is_dropped() {
    let policers = Policers::default();
    policers.set(IpProtocol::Udp, Policer::Block, Instant::ZERO);
    for direction in [Direction::Up, Direction::Down] {
        assert!(!policers.admits(direction, &packet(17, 100), Instant::ZERO));
        assert!(policers.admits(direction, &packet(6, 100), Instant::ZERO));
        assert!(policers.admits(direction, &packet(1, 100), Instant::ZERO));
    }
    policers.set(IpProtocol::Udp, Policer::Pass, Instant::ZERO);
    assert!(policers.admits(Direction::Up, &packet(17, 100), Instant::ZERO));
}

#[test]
fn what_exceeds_a_rate_is_dropped_in_each_direction() {
    let policers = Policers::default();
    let rate = Bandwidth::from_bps(80_000);
    policers.set(IpProtocol::Tcp, Policer::Rate(rate), Instant::ZERO);
    let passed = |direction, now| {
        let sent = (0..100).filter(|_| policers.admits(direction, &packet(6, 1000), now));
        sent.count()
    };
    // The burst first; then 10 kB a second, each way.
    assert_eq!(passed(Direction::Up, Instant::ZERO), 32);
    assert_eq!(passed(Direction::Down, Instant::ZERO), 32);
    let later = Instant::ZERO + Duration::from_secs(1);
    assert_eq!(passed(Direction::Up, later), 10);
    // No more is saved up than the burst.
    let much_later = Instant::ZERO + Duration::from_secs(100);
    assert_eq!(passed(Direction::Up, much_later), 32);
}
