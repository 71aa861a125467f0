use super::*;

fn counts(bytes: u64, segments: u32, out_of_order: u32) -> TcpStatistics {
    let mut statistics = TcpStatistics::default();
    statistics.bytes_received = bytes;
    statistics.data_segments_received = segments;
    statistics.out_of_order_segments_received = out_of_order;
    statistics
}

#[test]
fn only_what_came_during_the_request_counts() {
    let before = counts(1_000_000, 700, 300);
    let received = TcpReceived::between(&before, &counts(1_100_000, 800, 310));
    assert_eq!(received.out_of_order_share(), Some(0.1));
    let traffic = received.traffic();
    assert_eq!((traffic.sent, traffic.retransmitted), (100_000, 10_000));
}

#[test]
fn counters_of_segments_wrap() {
    let before = counts(0, u32::MAX - 2, u32::MAX);
    let received = TcpReceived::between(&before, &counts(7_000, 5, 1));
    assert_eq!(received.out_of_order_share(), Some(0.25));
}

#[test]
fn without_data_nothing_is_known() {
    let same = counts(5_000, 4, 1);
    let received = TcpReceived::between(&same, &same);
    assert_eq!(received.out_of_order_share(), None);
    assert_eq!(received.traffic(), Traffic::default());
}
