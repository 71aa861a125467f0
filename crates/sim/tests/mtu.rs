//! Path MTU discovery: the search, paths that shrink, loss, limits of the peer and of the socket.

use crate::support;

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use swiftwater_congestion::{Bbr3Config, ControllerFactory, CubicConfig, NewRenoConfig};
use swiftwater_link::{LinkConfig, LossModel};
use swiftwater_quic::observe::{Observation, Observer, ObserverFactory};
use swiftwater_quic::{Event, MtuDiscovery, MtuState, PathStats, TransportConfig};
use swiftwater_sim::{Cipher, Direction, Pair, PairBuilder, Verdict};
use swiftwater_units::{Instant, PathId, Side};

use support::{BOTH, SIDES, count, link, millis, path, secs};

/// IPv4 and UDP.
const HEADERS: u32 = 28;

/// Bytes that the reader accepts at once.
const WINDOW: u64 = 120_000;

/// A pair whose ends probe for larger datagrams, over links that carry UDP payloads of `payload`.
fn over(payload: u32) -> PairBuilder {
    searching(link(20, 20).mtu(payload + HEADERS))
}

fn searching(link: LinkConfig) -> PairBuilder {
    Pair::builder().link(link).both_configs(|config| {
        config.mtu_discovery = Some(MtuDiscovery::default());
        config.max_idle_timeout = None;
        // About what the path holds, so that no queue makes round trips long.
        config.stream_receive_window = WINDOW.into();
        config.max_stream_receive_window = WINDOW.into();
    })
}

fn up_to(builder: PairBuilder, upper_bound: u16) -> PairBuilder {
    builder.both_configs(move |config| {
        config.mtu_discovery = Some(MtuDiscovery {
            upper_bound,
            ..MtuDiscovery::default()
        });
    })
}

/// What a side's first path shows.
fn sender(pair: &Pair, direction: Direction) -> PathStats {
    path(pair, direction.sender())
}

/// The largest datagram that entered a link from now on.
fn watch_sizes(pair: &mut Pair, direction: Direction) -> Rc<Cell<usize>> {
    let largest = Rc::new(Cell::new(0));
    let seen = Rc::clone(&largest);
    pair.tap(direction, move |datagram| {
        seen.set(seen.get().max(datagram.data.len()));
        Verdict::Pass
    });
    largest
}

/// From now on the path drops what is larger than the cell says.
fn shrinkable(pair: &mut Pair, direction: Direction) -> Rc<Cell<usize>> {
    let limit = Rc::new(Cell::new(usize::MAX));
    let now = Rc::clone(&limit);
    pair.tap(direction, move |datagram| {
        if datagram.data.len() > now.get() {
            Verdict::Drop
        } else {
            Verdict::Pass
        }
    });
    limit
}

#[test]
fn the_search_ends_at_what_the_path_carries() {
    // PPPoE, tunnels, odd ones, the least there is.
    for payload in [1472, 1464, 1452, 1432, 1392, 1301, 1252, 1221, 1201, 1200] {
        for direction in BOTH {
            let mut pair = over(payload).build().unwrap();
            assert!(pair.connect());
            assert!(pair.transfer(3_000_000, direction).verified);
            let found = sender(&pair, direction);
            let size = u32::from(found.max_datagram_size);
            assert!(
                size <= payload && size + 20 >= payload,
                "{size} of {payload}"
            );
            assert_eq!(found.mtu_state, MtuState::Complete, "{payload}");
            // Three probes for each size that fails, one for each that succeeds.
            assert!(found.mtu_probes_sent <= 20, "{payload}: {found:?}");
            assert_eq!(found.mtu_black_holes, 0);
        }
    }
}

#[test]
fn ethernet_takes_one_probe() {
    let mut pair = over(1472).build().unwrap();
    assert!(pair.connect());
    assert!(pair.transfer(300_000, Direction::ToClient).verified);
    let found = path(&pair, Side::Server);
    assert_eq!(found.max_datagram_size, 1472);
    assert_eq!((found.mtu_probes_sent, found.mtu_probes_lost), (1, 0));
}

#[test]
fn wide_paths_are_found_too() {
    for (payload, bound) in [(8_972, 65_507), (65_507, 65_527), (9_172, 9_300)] {
        let mut pair = up_to(over(payload), bound).build().unwrap();
        assert!(pair.connect());
        assert!(pair.transfer(30_000_000, Direction::ToServer).verified);
        let found = path(&pair, Side::Client);
        let size = u32::from(found.max_datagram_size);
        assert_eq!(found.mtu_state, MtuState::Complete, "{found:?}");
        assert!(
            size <= payload && size + 20 >= payload,
            "{size} of {payload}"
        );
    }
}

#[test]
fn every_controller_tolerates_mtu_discovery() {
    let controllers: [Arc<dyn ControllerFactory>; 3] = [
        Arc::new(CubicConfig::default()),
        Arc::new(NewRenoConfig::default()),
        Arc::new(Bbr3Config::default()),
    ];
    for controller in controllers {
        let mut pair = over(1392)
            .both_configs(|config| config.controller = Arc::clone(&controller))
            .build()
            .unwrap();
        assert!(pair.connect());
        assert!(pair.transfer(2_000_000, Direction::ToServer).verified);
        assert_eq!(path(&pair, Side::Client).max_datagram_size, 1392);
    }
}

/// Lost probes are not counted as losses and slow nothing down.
#[test]
fn lost_probes_are_no_congestion() {
    let mut pair = over(1200).build().unwrap();
    assert!(pair.connect());
    let report = pair.transfer(1_000_000, Direction::ToServer);
    assert!(report.verified);
    pair.advance(secs(1));
    let found = path(&pair, Side::Client);
    assert!(found.mtu_probes_lost >= 3, "{found:?}");
    assert_eq!(
        found.mtu_probes_lost,
        pair.counters(Direction::ToServer).dropped_mtu.packets.get()
    );
    assert_eq!(found.lost_packets.get(), 0, "{found:?}");
    assert_eq!(found.congestion_events, 0);
    assert_eq!(found.pto_count, 0);
    assert_eq!(found.bytes_in_flight.get(), 0, "nothing stays in flight");
    // The same as without discovery, except for the probes' own time on the link.
    let mut plain = searching(link(20, 20))
        .both_configs(|config| config.mtu_discovery = None)
        .build()
        .unwrap();
    assert!(plain.connect());
    let without = plain.transfer(1_000_000, Direction::ToServer);
    let late = (report.finish - report.start).saturating_sub(without.finish - without.start);
    assert!(late * 20 < report.finish - report.start, "{late:?}");
}

#[test]
fn random_loss_does_not_stop_the_search() {
    let mut right = 0;
    for seed in 0..20 {
        let lossy = link(20, 20)
            .mtu(1452 + HEADERS)
            .loss(LossModel::Bernoulli(0.1));
        let mut pair = searching(lossy).seed(seed).build().unwrap();
        assert!(pair.connect());
        assert!(pair.transfer(2_000_000, Direction::ToServer).verified);
        let found = path(&pair, Side::Client);
        assert_eq!(found.mtu_state, MtuState::Complete, "seed {seed}");
        assert_eq!(found.mtu_black_holes, 0, "seed {seed}");
        assert!(found.max_datagram_size <= 1452);
        right += u32::from(found.max_datagram_size >= 1432);
    }
    // Three losses in a row of one size: 1 of 1000 per size.
    assert!(right >= 19, "{right} of 20");
}

#[test]
fn a_path_that_shrinks_is_noticed_within_a_few_timeouts() {
    for direction in BOTH {
        let mut pair = over(1472).build().unwrap();
        assert!(pair.connect());
        assert!(pair.transfer(500_000, direction).verified);
        assert_eq!(sender(&pair, direction).max_datagram_size, 1472);
        let limit = shrinkable(&mut pair, direction);
        limit.set(1300);
        let shrunk_at = pair.now();
        let id = pair.start_transfer(2_000_000, direction);
        assert!(pair.run_until(|pair| sender(pair, direction).mtu_black_holes == 1));
        let noticed = pair.now() - shrunk_at;
        let rtt = sender(&pair, direction).smoothed_rtt;
        // A few timeouts of about twice the round trip and 25 ms each.
        assert!(noticed < (rtt * 3 + millis(50)) * 4, "{noticed:?}");
        assert!(pair.finish_transfers());
        assert!(pair.transfer_report(id).verified);
        let after = sender(&pair, direction);
        assert_eq!(after.max_datagram_size, 1200);
        assert_eq!(after.mtu_state, MtuState::BlackHole);
        // After a pause it probes again, with data only.
        pair.advance(secs(61));
        assert_eq!(
            sender(&pair, direction).mtu_probes_sent,
            after.mtu_probes_sent
        );
        assert!(!pair.view(direction.sender()).unwrap().is_closed());
        assert!(pair.transfer(2_000_000, direction).verified);
        let again = sender(&pair, direction);
        assert!(
            (1280..=1300).contains(&again.max_datagram_size),
            "{again:?}"
        );
        assert_eq!(again.mtu_state, MtuState::Complete);
    }
}

/// Outages and heavy loss hit small packets as well as large ones.
#[test]
fn outages_and_loss_are_no_black_holes() {
    for seed in 0..10 {
        let lossy = link(20, 20).loss(LossModel::Bernoulli(0.2));
        let mut pair = searching(lossy).seed(seed).build().unwrap();
        assert!(pair.connect());
        assert!(pair.transfer(400_000, Direction::ToClient).verified);
        assert_eq!(path(&pair, Side::Server).mtu_black_holes, 0, "seed {seed}");
    }
    let mut pair = over(1472).build().unwrap();
    assert!(pair.connect());
    let now = pair.now();
    for start in [1, 4, 8, 13] {
        support::black_out(&mut pair, now + secs(start), millis(1_500));
    }
    assert!(pair.transfer(30_000_000, Direction::ToServer).verified);
    let end = path(&pair, Side::Client);
    assert_eq!(end.mtu_black_holes, 0, "{end:?}");
    assert_eq!(end.max_datagram_size, 1472);
}

/// Large datagrams one at a time, each followed by small ones that show when it was lost: by chance several large ones in a row
/// are lost, and no small one.
#[test]
fn losses_of_single_large_datagrams_are_no_black_hole() {
    for seed in 0..4 {
        let lossy = link(20, 20).loss(LossModel::Bernoulli(0.12));
        let mut pair = searching(lossy).seed(seed).build().unwrap();
        assert!(pair.connect());
        assert!(pair.transfer(1_000_000, Direction::ToServer).verified);
        let max = pair.client().max_datagram_size().unwrap();
        assert!(max > 1400, "{max}");
        for _ in 0..2_000 {
            for size in [max, 50, 50, 50] {
                // What is lost is lost.
                let _ = pair.client().send_datagram(Bytes::from(vec![7; size]));
            }
            pair.advance(millis(60));
            while pair.server().recv_datagram().is_some() {}
        }
        let end = path(&pair, Side::Client);
        assert_eq!(end.mtu_black_holes, 0, "seed {seed}: {end:?}");
    }
}

/// Large packets that vanish leave the initial size in use, if the path carries that, and else the least.
#[test]
fn a_black_hole_leads_to_the_initial_size_first() {
    for (carried, expected, holes) in [(1300, 1252, 1), (1230, 1200, 2)] {
        let mut pair = over(1472)
            .both_configs(|config| config.initial_max_datagram_size = 1252)
            .build()
            .unwrap();
        assert!(pair.connect());
        assert!(pair.transfer(500_000, Direction::ToServer).verified);
        assert_eq!(path(&pair, Side::Client).max_datagram_size, 1472);
        let limit = shrinkable(&mut pair, Direction::ToServer);
        limit.set(carried);
        assert!(pair.transfer(1_000_000, Direction::ToServer).verified);
        let end = path(&pair, Side::Client);
        assert_eq!(end.max_datagram_size, expected, "{end:?}");
        assert_eq!(end.mtu_black_holes, holes, "{end:?}");
    }
}

#[test]
fn no_probes_without_much_to_send() {
    let mut pair = over(1472)
        .both_configs(|config| config.keep_alive_interval = Some(secs(10)))
        .build()
        .unwrap();
    assert!(pair.connect());
    assert!(pair.transfer(100, Direction::ToServer).verified);
    pair.advance(secs(2_000));
    for side in SIDES {
        let idle = path(&pair, side);
        assert_eq!(idle.mtu_probes_sent, 0, "{side:?}");
        assert_eq!(idle.max_datagram_size, 1200);
    }
}

/// Nothing else would ever fill a packet: those who send datagrams don't send what does not fit.
#[test]
fn a_datagram_that_does_not_fit_starts_the_search() {
    for (payload, fits) in [(1472, true), (1250, false)] {
        let mut pair = over(payload).build().unwrap();
        assert!(pair.connect());
        let datagram = || Bytes::from(vec![7; 1400]);
        assert!(pair.client().send_datagram(datagram()).is_err());
        for _ in 0..50 {
            // What shows that probes are lost for their size.
            assert!(
                pair.client()
                    .send_datagram(Bytes::from_static(b"small"))
                    .is_ok()
            );
            pair.advance(millis(100));
        }
        assert_eq!(pair.client().send_datagram(datagram()).is_ok(), fits);
        // The search ends, and is not repeated for want of anything.
        let probes = path(&pair, Side::Client).mtu_probes_sent;
        assert!((1..20).contains(&probes), "{probes}");
        pair.advance(secs(2_000));
        assert_eq!(path(&pair, Side::Client).mtu_probes_sent, probes);
    }
}

#[test]
fn a_search_that_was_asked_for_finds_the_size_alone() {
    let mut pair = over(1472).build().unwrap();
    assert!(pair.connect());
    pair.client().seek_larger_datagrams();
    pair.advance(secs(1));
    assert_eq!(path(&pair, Side::Client).max_datagram_size, 1472);
    // Where it does not help, it ends with the first probe.
    let mut pair = over(1250).build().unwrap();
    assert!(pair.connect());
    pair.client().seek_larger_datagrams();
    pair.advance(secs(2_000));
    assert_eq!(path(&pair, Side::Client).mtu_probes_sent, 1);
}

/// The search is repeated from time to time, so that a path that grew is found out.
#[test]
fn a_path_that_grows_is_found_out() {
    let mut pair = over(1472).build().unwrap();
    assert!(pair.connect());
    let limit = shrinkable(&mut pair, Direction::ToServer);
    limit.set(1280);
    assert!(pair.transfer(2_000_000, Direction::ToServer).verified);
    assert!(path(&pair, Side::Client).max_datagram_size <= 1280);
    limit.set(usize::MAX);
    assert!(pair.transfer(2_000_000, Direction::ToServer).verified);
    assert!(
        path(&pair, Side::Client).max_datagram_size <= 1280,
        "not yet"
    );
    for _ in 0..30 {
        pair.client().ping();
        pair.advance(secs(20));
    }
    assert!(pair.transfer(2_000_000, Direction::ToServer).verified);
    assert_eq!(path(&pair, Side::Client).max_datagram_size, 1472);
}

#[test]
fn the_peer_limits_the_size() {
    for limit in [1200, 1333, 1460] {
        let mut pair = over(1472)
            .client_config(|config| config.max_udp_payload_size = limit)
            .build()
            .unwrap();
        let largest = watch_sizes(&mut pair, Direction::ToClient);
        assert!(pair.connect());
        assert!(pair.transfer(2_000_000, Direction::ToClient).verified);
        assert!(largest.get() <= limit.into(), "{} {limit}", largest.get());
        assert!(path(&pair, Side::Server).max_datagram_size + 20 >= limit);
    }
    // An initial size above it shrinks with the peer's word.
    let mut pair = Pair::builder()
        .client_config(|config| config.max_udp_payload_size = 1250)
        .server_config(|config| config.initial_max_datagram_size = 1400)
        .build()
        .unwrap();
    assert!(pair.connect());
    let largest = watch_sizes(&mut pair, Direction::ToClient);
    assert!(pair.transfer(100_000, Direction::ToClient).verified);
    assert_eq!(largest.get(), 1250);
}

/// A client that knows its path fills its Initial packets; the server then need not search before it sends as much. What
/// answers a timeout fits any path.
#[test]
fn a_server_may_adopt_the_size_of_the_clients_first_datagram() {
    let build = |payload, adopts, settings: fn(&mut TransportConfig)| {
        over(payload)
            .client_config(settings)
            .server_config(move |config| config.adopt_client_datagram_size = adopts)
            .build()
            .unwrap()
    };
    let pads: fn(&mut TransportConfig) = |config| {
        config.initial_max_datagram_size = 1356;
        config.initial_padding = 1356;
    };
    // More than a server searches for.
    let pads_all: fn(&mut TransportConfig) = |config| {
        config.initial_max_datagram_size = 9000;
        config.initial_padding = 9000;
    };
    let pads_less: fn(&mut TransportConfig) = |config| config.initial_max_datagram_size = 1356;
    for (payload, adopts, settings, expected) in [
        (1472, true, pads, [1356, 1356]),
        (1472, false, pads, [1356, 1200]),
        (1472, true, pads_less, [1200, 1200]),
        (1300, true, pads, [1356, 1200]),
        (9000, true, pads_all, [9000, 1472]),
    ] {
        let mut pair = build(payload, adopts, settings);
        let largest = watch_sizes(&mut pair, Direction::ToServer);
        assert!(pair.connect());
        let found = [
            largest.get(),
            path(&pair, Side::Server).max_datagram_size.into(),
        ];
        assert_eq!(found, expected, "{payload} {adopts}");
        assert!(pair.transfer(100_000, Direction::ToClient).verified);
    }
}

#[test]
fn what_the_socket_refuses_is_not_tried_again() {
    let mut pair = over(1472).build().unwrap();
    assert!(pair.connect());
    // Refuses the first probe as a socket would: at once, before anything arrives.
    let limit = shrinkable(&mut pair, Direction::ToServer);
    limit.set(1400);
    let id = pair.start_transfer(3_000_000, Direction::ToServer);
    assert!(pair.run_until(|pair| path(pair, Side::Client).mtu_probes_sent == 1));
    let now = pair.now();
    pair.client().on_datagram_too_large(now, PathId::ZERO, 1472);
    assert_eq!(path(&pair, Side::Client).mtu_probes_lost, 1);
    pair.client().on_datagram_too_large(now, PathId::ZERO, 1464);
    pair.client().on_datagram_too_large(now, PathId::ZERO, 1420);
    assert!(pair.finish_transfers());
    assert!(pair.transfer_report(id).verified);
    let end = path(&pair, Side::Client);
    assert!((1380..=1400).contains(&end.max_datagram_size), "{end:?}");

    // Its word counts for data too, and never goes below what QUIC needs.
    let now = pair.now();
    pair.client().on_datagram_too_large(now, PathId::ZERO, 1300);
    assert_eq!(path(&pair, Side::Client).max_datagram_size, 1200);
    pair.client().on_datagram_too_large(now, PathId::ZERO, 1200);
    pair.client().on_datagram_too_large(now, PathId::ZERO, 0);
    pair.client()
        .on_datagram_too_large(now, PathId::ZERO, usize::MAX);
    let largest = watch_sizes(&mut pair, Direction::ToServer);
    assert!(pair.transfer(1_000_000, Direction::ToServer).verified);
    assert!(largest.get() < 1300, "{}", largest.get());
    assert!(path(&pair, Side::Client).max_datagram_size >= 1279);
}

/// Fewer headers and fewer packets: more data in the same time.
#[test]
fn goodput_grows() {
    let took = |builder: PairBuilder| {
        let wide = |config: &mut TransportConfig| config.stream_receive_window = (1 << 20).into();
        let mut pair = builder.client_config(wide).build().unwrap();
        assert!(pair.connect());
        let report = pair.transfer(10_000_000, Direction::ToClient);
        assert!(report.verified);
        let packets = path(&pair, Side::Server).sent_packets.get();
        (report.finish - report.start, packets)
    };
    let (small, small_packets) = took(Pair::builder().link(link(20, 20)));
    let (large, large_packets) = took(over(1472));
    let (wide, wide_packets) = took(up_to(over(8_972), 8_972));
    // Of 1228 bytes 1168 are data, of 1500 1440, of 9000 8940: 1 %, then 3.5 % more.
    assert!(
        large < small && wide < large,
        "{small:?} {large:?} {wide:?}"
    );
    assert!(large_packets * 100 < small_packets * 84);
    assert!(wide_packets * 100 < small_packets * 20);
}

#[test]
fn without_discovery_nothing_changes() {
    let mut pair = Pair::builder()
        .both_configs(|config| config.initial_max_datagram_size = 1350)
        .build()
        .unwrap();
    let largest = watch_sizes(&mut pair, Direction::ToServer);
    assert!(pair.connect());
    assert!(pair.transfer(500_000, Direction::ToServer).verified);
    let end = path(&pair, Side::Client);
    assert_eq!(
        (end.max_datagram_size, end.mtu_state, end.mtu_probes_sent),
        (1350, MtuState::Off, 0)
    );
    assert_eq!(largest.get(), 1350);
}

#[test]
fn queued_datagrams_that_no_longer_fit_are_reported() {
    let mut pair = over(1472).build().unwrap();
    assert!(pair.connect());
    assert!(pair.transfer(300_000, Direction::ToServer).verified);
    let max = pair.client().max_datagram_size().unwrap();
    assert!(max > 1400, "{max}");
    let limit = shrinkable(&mut pair, Direction::ToServer);
    limit.set(1250);
    // More than the window lets go, so that some wait when the path turns out to be smaller.
    for _ in 0..600 {
        assert!(
            pair.client()
                .send_datagram(Bytes::from(vec![7; max]))
                .is_ok()
        );
    }
    for _ in 0..50 {
        assert!(
            pair.client()
                .send_datagram(Bytes::from(vec![7; 100]))
                .is_ok()
        );
    }
    assert!(pair.run_until(|pair| path(pair, Side::Client).mtu_black_holes == 1));
    let event = pair
        .events(Side::Client)
        .iter()
        .find_map(|event| match event {
            Event::DatagramsTooLarge { count, max } => Some((*count, *max)),
            _ => None,
        });
    pair.advance(secs(2));
    let stats = pair.stats(Side::Client);
    let (dropped, now_max) = event
        .or_else(|| {
            pair.events(Side::Client)
                .iter()
                .find_map(|event| match event {
                    Event::DatagramsTooLarge { count, max } => Some((*count, *max)),
                    _ => None,
                })
        })
        .expect("the application is notified");
    assert!(dropped > 0);
    assert_eq!(dropped, stats.datagrams_too_large);
    assert_eq!(Some(now_max), pair.client().max_datagram_size());
    assert!(now_max < 1200);
    let too_large = pair.client().send_datagram(Bytes::from(vec![7; max]));
    assert!(too_large.is_err(), "the new limit holds");
    // Small ones were not held up.
    assert!(
        count(&pair, Side::Server, |event| *event
            == Event::DatagramReceived)
            > 0
    );
    let mut small = 0;
    while let Some(datagram) = pair.server().recv_datagram() {
        small += usize::from(datagram.len() == 100);
    }
    assert!(small > 0);
}

/// A peer on another network: the result of the previous path does not apply to the new one.
#[test]
fn a_move_to_another_address_starts_over() {
    let mut pair = over(1472).build().unwrap();
    assert!(pair.connect());
    assert!(pair.transfer(300_000, Direction::ToClient).verified);
    assert_eq!(path(&pair, Side::Server).max_datagram_size, 1472);
    let limit = shrinkable(&mut pair, Direction::ToClient);
    limit.set(1300);
    pair.rebind(Side::Client, ([203, 0, 113, 9], 50_000).into())
        .unwrap();
    assert!(pair.transfer(10_000, Direction::ToServer).verified);
    assert_eq!(path(&pair, Side::Server).max_datagram_size, 1200);
    assert!(pair.transfer(2_000_000, Direction::ToClient).verified);
    let moved = path(&pair, Side::Server);
    assert!((1280..=1300).contains(&moved.max_datagram_size));
    assert_eq!(moved.mtu_black_holes, 0);

    // Another port of the same host is a NAT's whim: the path is the same.
    pair.rebind(Side::Client, ([203, 0, 113, 9], 50_001).into())
        .unwrap();
    assert!(pair.transfer(10_000, Direction::ToServer).verified);
    assert_eq!(
        path(&pair, Side::Server).max_datagram_size,
        moved.max_datagram_size
    );
}

/// Probes come after the handshake, outside batches, and one at a time.
#[test]
fn probes_wait_for_the_handshake_and_go_alone() {
    let mut pair = over(1472)
        .cipher(Cipher::Tls)
        .link(link(20, 20).mtu(1300 + HEADERS))
        .build()
        .unwrap();
    let log: Rc<RefCell<Vec<(Instant, usize)>>> = Rc::default();
    let seen = Rc::clone(&log);
    pair.tap(Direction::ToServer, move |datagram| {
        if datagram.data.len() > 1200 {
            seen.borrow_mut().push((datagram.now, datagram.data.len()));
        }
        Verdict::Pass
    });
    pair.start().unwrap();
    let id = pair.start_transfer(2_000_000, Direction::ToServer);
    assert!(pair.run_until(|pair| pair.events(Side::Client).contains(&Event::Confirmed)));
    assert!(log.borrow().is_empty());
    assert!(pair.run_until(|pair| { path(pair, Side::Client).mtu_state == MtuState::Complete }));
    // The next probe waits for the fate of the last, which takes a round trip.
    let lost: Vec<_> = log
        .borrow()
        .iter()
        .filter(|(_, len)| *len > 1300)
        .copied()
        .collect();
    assert!(lost.len() >= 3);
    for pair in lost.windows(2) {
        assert!(pair[1].0 - pair[0].0 >= millis(40));
    }
    assert!(pair.finish_transfers());
    assert!(pair.transfer_report(id).verified);
}

/// Observers get every size.
#[derive(Clone, Debug, Default)]
struct Sizes(Arc<Mutex<Vec<(u16, u16, bool)>>>);

impl ObserverFactory for Sizes {
    fn observer(&self, side: Side) -> Option<Box<dyn Observer>> {
        (side == Side::Client).then(|| Box::new(self.clone()) as Box<dyn Observer>)
    }
}

impl Observer for Sizes {
    fn observe(&mut self, _now: Instant, observation: &Observation<'_>) {
        if let Observation::MtuUpdated {
            before,
            size,
            black_hole,
            ..
        } = *observation
        {
            self.0.lock().unwrap().push((before, size, black_hole));
        }
    }
}

#[test]
fn observers_receive_sizes() {
    let sizes = Sizes::default();
    let watch: Arc<dyn ObserverFactory> = Arc::new(sizes.clone());
    let mut pair = over(1472)
        .client_config(|config| config.observer = Some(watch))
        .build()
        .unwrap();
    assert!(pair.connect());
    assert!(pair.transfer(300_000, Direction::ToServer).verified);
    let limit = shrinkable(&mut pair, Direction::ToServer);
    limit.set(1300);
    assert!(pair.transfer(300_000, Direction::ToServer).verified);
    assert_eq!(
        *sizes.0.lock().unwrap(),
        [(1200, 1472, false), (1472, 1200, true)]
    );
}

/// A window too small for a probe and a packet after it: no probe, and no standstill.
#[test]
fn small_windows_do_not_stall() {
    for window in [2_400, 2_600, 2_700, 4_000] {
        let harsh = link(2, 30)
            .mtu(1250 + HEADERS)
            .loss(LossModel::Bernoulli(0.15));
        let mut pair = searching(harsh)
            .seed(window)
            .both_configs(|config| config.initial_window = Some(window.into()))
            .time_limit(Duration::from_secs(120))
            .build()
            .unwrap();
        assert!(pair.connect());
        assert!(pair.transfer(100_000, Direction::ToServer).verified);
    }
}
