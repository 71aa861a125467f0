//! Unreliable datagrams (RFC 9221): what arrives, what is refused, what is dropped.

use std::collections::BTreeSet;

use bytes::Bytes;
use swiftwater_link::LossModel;
use swiftwater_quic::{DatagramFate, DatagramOptions, Event, SendDatagramError};
use swiftwater_sim::{Cipher, Direction, Pair, PairBuilder};
use swiftwater_units::{ByteCount, Side};

use crate::support::{BOTH, SIDES, count, drop_if, link, millis, path, secs};

fn connected(builder: PairBuilder) -> Pair {
    let mut pair = builder.build().unwrap();
    assert!(pair.connect());
    pair.advance(millis(200));
    pair
}

/// The datagram number `nth`, of `len` bytes.
fn numbered(nth: u32, len: usize) -> Bytes {
    let mut data = nth.to_be_bytes().to_vec();
    data.resize(len.max(4), nth as u8);
    data.into()
}

/// Reads all received datagrams; the numbers, after checking the content.
fn receive(pair: &mut Pair, side: Side) -> Vec<u32> {
    let mut numbers = Vec::new();
    while let Some(data) = pair.connection(side).unwrap().recv_datagram() {
        let nth = u32::from_be_bytes(data[..4].try_into().unwrap());
        assert!(data == numbered(nth, data.len()), "{nth} is damaged");
        numbers.push(nth);
    }
    numbers
}

#[test]
fn datagrams_arrive_in_both_directions_in_order() {
    for cipher in [Cipher::Null, Cipher::Tls] {
        for side in SIDES {
            let mut pair = connected(Pair::builder().cipher(cipher).link(link(20, 20)));
            for nth in 0..200 {
                let data = numbered(nth, 4 + nth as usize * 5);
                pair.connection(side).unwrap().send_datagram(data).unwrap();
            }
            let start = pair.now();
            let mut got = Vec::new();
            assert!(pair.run_until(|pair| {
                got.extend(receive(pair, !side));
                got.len() == 200
            }));
            assert!(got.iter().copied().eq(0..200), "{cipher:?} {side:?}");
            // 100 kB, so slow start rather than the link.
            assert!(pair.now() - start < millis(300), "{:?}", pair.now() - start);
        }
    }
}

#[test]
fn an_event_reports_the_first_unread_datagram() {
    let mut pair = connected(Pair::builder().link(link(20, 20)));
    let told = |pair: &Pair| {
        count(pair, Side::Server, |event| {
            *event == Event::DatagramReceived
        })
    };
    for round in 1..=3 {
        for nth in 0..5 {
            pair.client().send_datagram(numbered(nth, 10)).unwrap();
        }
        pair.advance(millis(100));
        assert_eq!(told(&pair), round, "one event until all are read");
        assert_eq!(receive(&mut pair, Side::Server).len(), 5);
    }
}

#[test]
fn lost_datagrams_are_not_sent_again() {
    let mut arrived_in_all = 0;
    for seed in 0..10 {
        let lossy = link(20, 20).loss(LossModel::Bernoulli(0.1));
        let mut pair = connected(Pair::builder().seed(seed).links(lossy, link(20, 20)));
        let mut got = Vec::new();
        for nth in 0..300 {
            // Each in a separate packet, spaced so that the window is no limit.
            pair.client().send_datagram(numbered(nth, 1_000)).unwrap();
            pair.advance(millis(50));
            got.extend(receive(&mut pair, Side::Server));
        }
        pair.advance(secs(2));
        got.extend(receive(&mut pair, Side::Server));
        let unique: BTreeSet<_> = got.iter().collect();
        assert_eq!(unique.len(), got.len(), "none arrives twice");
        assert!(
            (240..=295).contains(&got.len()),
            "seed {seed}: {}",
            got.len()
        );
        arrived_in_all += got.len();
        let lost = path(&pair, Side::Client).lost_packets.get();
        assert!(
            lost + 20 > 300 - got.len() as u64,
            "losses are seen: {lost}"
        );
    }
    assert!((2_600..2_800).contains(&arrived_in_all), "{arrived_in_all}");
}

#[test]
fn one_too_large_is_refused_and_the_largest_arrives() {
    for (frame, expected) in [(None, None), (Some(400), Some(397))] {
        let mut pair = connected(
            Pair::builder()
                .link(link(20, 20))
                .server_config(move |config| {
                    config.max_datagram_frame_size = frame.or(config.max_datagram_frame_size);
                }),
        );
        let max = pair.client().max_datagram_size().unwrap();
        if let Some(expected) = expected {
            assert_eq!(max, expected);
        }
        assert!(max > 350 && max < 1_200, "{max}");
        let refused = pair.client().send_datagram(numbered(1, max + 1));
        assert_eq!(
            refused,
            Err(SendDatagramError::TooLarge { size: max + 1, max })
        );
        pair.client().send_datagram(numbered(2, max)).unwrap();
        pair.advance(millis(100));
        let data = pair.server().recv_datagram().unwrap();
        assert!(data == numbered(2, max));
    }
}

#[test]
fn a_peer_without_datagrams_gets_none() {
    let mut pair = connected(
        Pair::builder()
            .link(link(20, 20))
            .server_config(|config| config.max_datagram_frame_size = None),
    );
    assert_eq!(pair.client().max_datagram_size(), None);
    let refused = pair.client().send_datagram(numbered(1, 10));
    assert_eq!(refused, Err(SendDatagramError::Unsupported));
    // It may still send them itself.
    pair.server().send_datagram(numbered(2, 10)).unwrap();
    pair.advance(millis(100));
    assert_eq!(receive(&mut pair, Side::Client), [2]);
}

#[test]
fn before_the_handshake_they_are_refused() {
    let mut pair = Pair::builder().build().unwrap();
    pair.start().unwrap();
    assert_eq!(pair.client().max_datagram_size(), None);
    let refused = pair.client().send_datagram(numbered(1, 10));
    assert_eq!(refused, Err(SendDatagramError::Unsupported));
}

#[test]
fn the_sending_queue_is_bounded_and_reports_room() {
    let mut pair = connected(
        Pair::builder()
            .link(link(5, 20))
            .client_config(|config| config.datagram_queue = ByteCount::new(50_000)),
    );
    let mut sent = 0;
    let refused = loop {
        match pair.client().send_datagram(numbered(sent, 1_000)) {
            Ok(()) => sent += 1,
            Err(error) => break error,
        }
    };
    // The queue counts a little more than the content.
    assert!((40..=50).contains(&sent), "{sent}");
    assert_eq!(refused, SendDatagramError::Blocked);
    assert!(pair.run_until(|pair| {
        pair.events(Side::Client)
            .contains(&Event::DatagramsUnblocked)
    }));
    pair.client().send_datagram(numbered(sent, 1_000)).unwrap();
    pair.advance(secs(1));
    assert!(receive(&mut pair, Side::Server).into_iter().eq(0..=sent));
}

#[test]
fn a_group_may_limit_what_waits() {
    let mut pair = connected(Pair::builder().link(link(5, 20)));
    // No time passes: all wait.
    let mut send = |group, limit| {
        let mut options = DatagramOptions::default().with_group(group);
        options.group_limit = limit;
        pair.client()
            .send_datagram_with(numbered(1, 1_000), options)
    };
    // Each counts as 64 bytes more.
    let limit = Some(ByteCount::new(3 * 1_064));
    for _ in 0..3 {
        send(1, limit).unwrap();
    }
    assert_eq!(send(1, limit), Err(SendDatagramError::Blocked));
    // Others are not concerned, nor those of the group without a limit.
    send(2, limit).unwrap();
    send(1, None).unwrap();
    // One may always wait.
    send(3, Some(ByteCount::new(1))).unwrap();
    assert!(send(3, Some(ByteCount::new(1))).is_err());
}

#[test]
fn unread_datagrams_make_room_for_newer_ones() {
    let mut pair = connected(
        Pair::builder()
            .link(link(20, 20))
            .server_config(|config| config.datagram_queue = ByteCount::new(20_000)),
    );
    for nth in 0..100 {
        pair.client().send_datagram(numbered(nth, 1_000)).unwrap();
    }
    pair.advance(secs(1));
    let dropped = pair.stats(Side::Server).datagrams_dropped as u32;
    assert!((80..=85).contains(&dropped), "{dropped}");
    assert!(
        receive(&mut pair, Side::Server)
            .into_iter()
            .eq(dropped..100)
    );
}

#[test]
fn datagrams_and_streams_share_the_path() {
    for direction in BOTH {
        let mut pair = connected(Pair::builder().link(link(10, 20)));
        let side = direction.sender();
        let id = pair.start_transfer(1_000_000, direction);
        let mut got = Vec::new();
        for nth in 0..100 {
            pair.connection(side)
                .unwrap()
                .send_datagram(numbered(nth, 200))
                .unwrap();
            pair.advance(millis(10));
            got.extend(receive(&mut pair, !side));
        }
        assert!(pair.finish_transfers());
        pair.advance(secs(1));
        got.extend(receive(&mut pair, !side));
        assert!(
            got.iter().copied().eq(0..100),
            "{direction:?}: {}",
            got.len()
        );
        let report = pair.transfer_report(id);
        let took = report.finish - report.start;
        assert!(
            report.verified && took < millis(1_250),
            "{direction:?}: {took:?}"
        );
    }
}

#[test]
fn congestion_holds_datagrams_back_and_loses_none() {
    // 300 kB into 2 Mbit/s: the window and the pacer decide when they go.
    let mut pair = connected(Pair::builder().link(link(2, 20)));
    for nth in 0..300 {
        pair.client().send_datagram(numbered(nth, 1_000)).unwrap();
    }
    let start = pair.now();
    let mut got = Vec::new();
    assert!(pair.run_until(|pair| {
        got.extend(receive(pair, Side::Server));
        got.len() == 300
    }));
    let took = pair.now() - start;
    assert!((millis(1_200)..millis(1_700)).contains(&took), "{took:?}");
    assert_eq!(
        pair.counters(Direction::ToServer).dropped().packets.get(),
        0
    );
}

/// Keeps the client's queue full of datagrams of `len` bytes.
fn saturate(
    pair: &mut Pair,
    time_ms: u64,
    len: usize,
    options: DatagramOptions,
    read: &mut Vec<u32>,
) {
    let mut sent = 0;
    for _ in 0..time_ms / 5 {
        while pair
            .client()
            .send_datagram_with(numbered(sent, len), options)
            .is_ok()
        {
            sent += 1;
        }
        pair.advance(millis(5));
        read.extend(receive(pair, Side::Server));
    }
}

/// Share of datagrams in the payload that the server receives while the client has both without end.
fn datagram_share(pair: &mut Pair, time_ms: u64, options: DatagramOptions) -> f64 {
    // Datagrams that leave no room for streams in their packets.
    let len = pair.client().max_datagram_size().unwrap();
    // What is in flight at first was sent before.
    saturate(pair, 2_000, len, options, &mut Vec::new());
    let before = pair.stats(Side::Server).stream_bytes_received.get();
    let mut read = Vec::new();
    saturate(pair, time_ms, len, options, &mut read);
    let streams = pair.stats(Side::Server).stream_bytes_received.get() - before;
    let datagrams = (read.len() * len) as u64;
    datagrams as f64 / (datagrams + streams) as f64
}

fn small_queue() -> PairBuilder {
    Pair::builder()
        .link(link(10, 20))
        .client_config(|config| config.datagram_queue = ByteCount::new(50_000))
}

#[test]
fn endless_datagrams_do_not_starve_streams() {
    let mut pair = connected(small_queue());
    let id = pair.start_transfer(1_000_000, Direction::ToServer);
    let mut read = Vec::new();
    saturate(
        &mut pair,
        4_000,
        1_100,
        DatagramOptions::default(),
        &mut read,
    );
    // Half of 10 Mbit/s: 1 MB takes 1.6 s, and the slow start.
    let report = pair.transfer_report(id);
    assert!(report.verified, "{report:?}");
    let took = report.finish - report.start;
    assert!((millis(1_500)..millis(2_300)).contains(&took), "{took:?}");
    // The datagrams had the other half, then all.
    assert!(read.len() > 2_300, "{}", read.len());
}

#[test]
fn endless_streams_do_not_starve_datagrams() {
    let mut pair = connected(small_queue());
    for _ in 0..20 {
        pair.start_transfer(2_000_000, Direction::ToServer);
    }
    pair.advance(secs(1));
    let share = datagram_share(&mut pair, 4_000, DatagramOptions::default());
    assert!((0.45..0.55).contains(&share), "{share}");
}

#[test]
fn urgency_decides_between_datagrams_and_streams() {
    for (urgency, expected) in [(1, 0.94), (5, 0.06)] {
        let mut pair = connected(small_queue());
        for _ in 0..5 {
            pair.start_transfer(4_000_000, Direction::ToServer);
        }
        pair.advance(secs(1));
        let options = DatagramOptions::default().with_urgency(urgency);
        let share = datagram_share(&mut pair, 5_000, options);
        assert!(
            (expected - 0.03..expected + 0.03).contains(&share),
            "urgency {urgency}: {share}"
        );
    }
}

#[test]
fn a_datagram_beside_busy_streams_waits_for_no_more_than_a_packet() {
    let mut pair = connected(Pair::builder().link(link(10, 20)));
    for _ in 0..50 {
        pair.start_transfer(1_000_000, Direction::ToServer);
    }
    pair.advance(secs(2));
    let mut late = 0;
    for nth in 0..200 {
        pair.client().send_datagram(numbered(nth, 100)).unwrap();
        // A packet goes about every millisecond, except while a full window waits for losses.
        pair.advance(millis(5));
        late += u32::from(pair.client().unsent_datagrams() > 0);
    }
    assert!(late < 20, "{late}");
}

#[test]
fn more_urgent_datagrams_overtake() {
    let mut pair = connected(Pair::builder().link(link(1, 20)));
    for nth in 0..100 {
        let options = DatagramOptions::default().with_urgency(if nth % 10 == 9 { 0 } else { 6 });
        let data = numbered(nth, 1_000);
        pair.client().send_datagram_with(data, options).unwrap();
    }
    pair.advance(secs(3));
    let read = receive(&mut pair, Side::Server);
    let urgent = (0..100).filter(|nth| nth % 10 == 9);
    let others = (0..100).filter(|nth| nth % 10 != 9);
    assert!(read.into_iter().eq(urgent.chain(others)));
}

/// Every fate that was reported to the client's application, by key.
fn fates(pair: &Pair) -> Vec<(u64, DatagramFate)> {
    let fate = |event: &Event| match *event {
        Event::DatagramFate { key, fate } => Some((key, fate)),
        _ => None,
    };
    pair.events(Side::Client).iter().filter_map(fate).collect()
}

#[test]
fn each_datagram_with_a_key_has_one_fate() {
    for seed in 0..5 {
        let lossy = link(20, 20).loss(LossModel::Bernoulli(0.1));
        let mut pair = connected(Pair::builder().seed(seed).links(lossy, link(20, 20)));
        let mut read = BTreeSet::new();
        for nth in 0..300 {
            let options = DatagramOptions::default().with_key(1_000 + u64::from(nth));
            let data = numbered(nth, 1_000);
            pair.client().send_datagram_with(data, options).unwrap();
            // Without a key there is no event.
            pair.client().send_datagram(numbered(5_000, 10)).unwrap();
            pair.advance(millis(50));
            read.extend(receive(&mut pair, Side::Server));
        }
        pair.advance(secs(2));
        read.extend(receive(&mut pair, Side::Server));
        let fates = fates(&pair);
        let of = |is_wanted: fn(&DatagramFate) -> bool| {
            let keys = fates.iter().filter(|(_, fate)| is_wanted(fate));
            keys.map(|(key, _)| *key as u32 - 1_000)
                .collect::<BTreeSet<_>>()
        };
        let acknowledged = of(|fate| *fate == DatagramFate::Acknowledged);
        let lost = of(|fate| matches!(fate, DatagramFate::Lost { .. }));
        read.remove(&5_000);
        assert_eq!(acknowledged, read, "seed {seed}");
        assert!((10..60).contains(&lost.len()), "{}", lost.len());
        assert!(acknowledged.is_disjoint(&lost));
        assert_eq!(fates.len(), 300);
    }
}

#[test]
fn a_loss_that_was_none_is_corrected() {
    // One datagram is held up for 200 ms, so that it is declared lost.
    let mut pair = connected(Pair::builder().link(link(20, 20)));
    let from = pair.now();
    let mut held = false;
    pair.tap(Direction::ToServer, move |datagram| {
        if datagram.now >= from && !held {
            held = true;
            return swiftwater_sim::Verdict::Delay(millis(70));
        }
        swiftwater_sim::Verdict::Pass
    });
    for nth in 0..10 {
        let options = DatagramOptions::default().with_key(nth);
        let data = numbered(nth as u32, 1_000);
        pair.client().send_datagram_with(data, options).unwrap();
        pair.advance(millis(2));
    }
    pair.advance(secs(1));
    // It left at once.
    let lost = DatagramFate::Lost { sent_at: from };
    let of_first: Vec<_> = fates(&pair)
        .into_iter()
        .filter(|fate| fate.0 == 0)
        .collect();
    let expected = [lost, DatagramFate::Acknowledged].map(|fate| (0, fate));
    assert_eq!(of_first, expected);
}

#[test]
fn datagrams_expire_unsent_and_make_room() {
    let mut pair = connected(small_queue());
    // Nothing leaves any more: the window fills up.
    let dropped = drop_if(&mut pair, Direction::ToClient, |_| true);
    let deadline = pair.now() + millis(300);
    let mut queued = 0;
    for _ in 0..40 {
        let options = DatagramOptions::default()
            .with_key(queued)
            .with_deadline(deadline);
        let data = numbered(queued as u32, 1_000);
        queued += u64::from(pair.client().send_datagram_with(data, options).is_ok());
        pair.advance(millis(1));
    }
    let late = pair.client().unsent_datagrams() as u64;
    assert!(late > 5, "{late}");
    assert_eq!(pair.client().unsent_datagram_bytes().get(), late * 1_000);
    let stats = pair.stats(Side::Client);
    assert_eq!(stats.datagrams_unsent as u64, late);
    assert_eq!(stats.datagram_bytes_unsent.get(), late * 1_000);
    pair.advance(millis(300));
    assert_eq!(pair.client().unsent_datagrams(), 0);
    let expired: Vec<_> = fates(&pair)
        .into_iter()
        .filter(|(_, fate)| *fate == DatagramFate::Expired)
        .map(|(key, _)| key)
        .collect();
    // Probes took some of them along.
    let count = expired.len() as u64;
    assert!((late - 4..=late).contains(&count), "{count} of {late}");
    assert!(expired.iter().copied().eq(queued - count..queued));
    assert_eq!(pair.stats(Side::Client).datagrams_expired, count);
    assert!(*dropped.borrow() > 0);
}

#[test]
fn packet_numbers_show_the_order_of_sending() {
    let mut pair = connected(Pair::builder().link(link(20, 20)));
    for nth in 0..20 {
        pair.client().send_datagram(numbered(nth, 1_000)).unwrap();
        pair.advance(millis(2));
    }
    pair.advance(millis(100));
    let mut previous = None;
    for nth in 0..20 {
        let datagram = pair.server().recv_datagram_with_packet().unwrap();
        assert_eq!(datagram.data, numbered(nth, 1_000));
        assert!(previous < Some(datagram.packet), "{:?}", datagram.packet);
        previous = Some(datagram.packet);
    }
}
