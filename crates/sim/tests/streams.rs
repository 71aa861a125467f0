//! Streams over a network: many of them, limits that grow, flow control with tiny windows and slow
//! readers, priorities, resets and stops, empty ones.

use std::time::Duration;

use swiftwater_link::LossModel;
use swiftwater_quic::{
    Event, Priority, ReadError, ReadOutcome, StreamEvent, TransportConfig, WriteError,
};
use swiftwater_sim::{Cipher, Direction, Pair, PairBuilder};
use swiftwater_units::{ByteCount, Dir, Side, StreamId};

use crate::support::hands::{Hands, content};
use crate::support::{BOTH, SIDES, link, millis, path, secs};

const DIRS: [Dir; 2] = [Dir::Bi, Dir::Uni];

fn connected(builder: PairBuilder) -> Pair {
    let mut pair = builder.build().unwrap();
    assert!(pair.connect());
    pair
}

fn set_streams(config: &mut TransportConfig, dir: Dir, count: u64) {
    match dir {
        Dir::Bi => config.max_concurrent_bidi_streams = count,
        Dir::Uni => config.max_concurrent_uni_streams = count,
    }
}

/// Sends `count` streams of `len` bytes from `side`, opening as many as permitted at any time, and
/// reads them all; returns how long that took.
fn exchange(pair: &mut Pair, side: Side, dir: Dir, count: usize, len: usize) -> Duration {
    let start = pair.now();
    let mut hands = Hands::echoing();
    let mut opened = Vec::new();
    // Bidirectional streams are returned.
    let reader = match dir {
        Dir::Bi => side,
        Dir::Uni => !side,
    };
    let done = hands.run(pair, |hands, pair| {
        while opened.len() < count {
            let data = content(opened.len(), len + opened.len() % 7);
            let Some(id) = hands.send(pair, side, dir, data) else {
                break;
            };
            opened.push(id);
        }
        hands.ends(reader) == count
    });
    assert!(done, "{} of {count}", hands.ends(reader));
    for (nth, id) in opened.into_iter().enumerate() {
        let read = hands.read(reader, id);
        assert_eq!(read.end, Some(Ok(())));
        assert!(read.data == content(nth, len + nth % 7), "stream {nth}");
    }
    pair.now() - start
}

#[test]
fn a_thousand_streams_at_once() {
    for dir in DIRS {
        for cipher in [Cipher::Null, Cipher::Tls] {
            let mut pair = connected(
                Pair::builder()
                    .cipher(cipher)
                    .link(link(20, 20))
                    .both_configs(|config| set_streams(config, dir, 1_000)),
            );
            let took = exchange(&mut pair, Side::Client, dir, 1_000, 500);
            // Half a megabyte: 0.2 s and slow start.
            assert!(took < millis(700), "{cipher:?} {dir:?}: {took:?}");
        }
    }
}

#[test]
fn a_thousand_streams_under_loss() {
    let mut pair = connected(
        Pair::builder()
            .link(link(20, 20).loss(LossModel::Bernoulli(0.05)))
            .both_configs(|config| set_streams(config, Dir::Bi, 1_000)),
    );
    let took = exchange(&mut pair, Side::Client, Dir::Bi, 1_000, 300);
    assert!(took < secs(6), "{took:?}");
}

#[test]
fn limits_grow_as_streams_end() {
    for side in SIDES {
        for dir in DIRS {
            let mut pair = connected(
                Pair::builder()
                    .link(link(20, 10))
                    .both_configs(|config| set_streams(config, dir, 8)),
            );
            let took = exchange(&mut pair, side, dir, 400, 50);
            // Eight streams in two round trips (there and back, then the acknowledgement that ends
            // the answer) and an ACK delay.
            assert!(
                took < millis((2 * 20 + 25) * 400 / 8 + 100),
                "{side:?} {dir:?}: {took:?}"
            );
        }
    }
}

#[test]
fn limits_of_one_stream_at_a_time() {
    for loss in [0.0, 0.1] {
        let mut pair = connected(
            Pair::builder()
                .link(link(20, 5).loss(LossModel::Bernoulli(loss)))
                .both_configs(|config| set_streams(config, Dir::Bi, 1)),
        );
        let took = exchange(&mut pair, Side::Client, Dir::Bi, 100, 2_000);
        let limit = if loss > 0.0 { secs(20) } else { secs(6) };
        assert!(took < limit, "{loss}: {took:?}");
    }
}

#[test]
fn an_open_beyond_the_limit_waits_for_news() {
    let mut pair = connected(
        Pair::builder()
            .link(link(20, 10))
            .both_configs(|config| set_streams(config, Dir::Uni, 2)),
    );
    let mut hands = Hands::default();
    for _ in 0..2 {
        hands
            .send(&mut pair, Side::Client, Dir::Uni, vec![1; 10])
            .unwrap();
    }
    assert_eq!(pair.client().open(Dir::Uni), None);
    assert!(hands.run(&mut pair, |hands, _| {
        let available = Event::Stream(StreamEvent::Available { dir: Dir::Uni });
        hands.told.contains(&(Side::Client, available))
    }));
    assert!(pair.client().open(Dir::Uni).is_some());
}

fn set_windows(config: &mut TransportConfig, stream: u64, all: u64, grow: bool) {
    let factor = if grow { 64 } else { 1 };
    config.stream_receive_window = ByteCount::new(stream);
    config.receive_window = ByteCount::new(all);
    config.max_stream_receive_window = ByteCount::new(stream * factor);
    config.max_receive_window = ByteCount::new(all * factor);
}

#[test]
fn tiny_windows_only_slow_things_down() {
    for direction in BOTH {
        for (stream, all, bytes, limit) in [
            (1, 1, 60, secs(8)),
            (100, 50, 3_000, secs(8)),
            (1_000, 100_000, 50_000, secs(5)),
            (100_000, 1_000, 50_000, secs(5)),
            (30_000, 30_000, 1_000_000, secs(4)),
        ] {
            let mut pair = connected(
                Pair::builder()
                    .link(link(20, 20))
                    .both_configs(|config| set_windows(config, stream, all, false)),
            );
            let report = pair.transfer(bytes, direction);
            let took = report.finish - report.start;
            assert!(report.verified, "{direction:?} {stream} {all}: {report:?}");
            assert!(took < limit, "{direction:?} {stream} {all}: {took:?}");
            // A window can't be beaten either.
            let rounds = bytes / stream.min(all);
            assert!(
                took >= millis(20) * (rounds as u32 / 2),
                "{stream} {all}: {took:?}"
            );
        }
    }
}

#[test]
fn stalls_of_flow_control_end_under_loss() {
    for seed in 0..10 {
        let mut pair = connected(
            Pair::builder()
                .seed(seed)
                .link(link(20, 20).loss(LossModel::Bernoulli(0.1)))
                .both_configs(|config| set_windows(config, 5_000, 8_000, false)),
        );
        let start = pair.now();
        for direction in BOTH {
            for _ in 0..4 {
                pair.start_transfer(30_000, direction);
            }
        }
        assert!(pair.finish_transfers(), "seed {seed}");
        let took = pair.now() - start;
        assert!(took < secs(30), "seed {seed}: {took:?}");
    }
}

#[test]
fn windows_grow_with_the_path() {
    // A megabyte in flight is needed; the window starts with 64 KB.
    let run = |grow| {
        let mut pair = connected(
            Pair::builder()
                .link(link(100, 40))
                .both_configs(|config| set_windows(config, 64_000, 96_000, grow)),
        );
        let report = pair.transfer(20_000_000, Direction::ToServer);
        assert!(report.verified);
        report.finish - report.start
    };
    let (fixed, growing) = (run(false), run(true));
    // 64 KB a round trip of 80 ms are 25 s; 100 Mbit/s are 1.7 s.
    assert!(fixed > secs(20), "{fixed:?}");
    assert!(growing < secs(4), "{growing:?}");
}

/// RFC 9000, section 4.1: a slow reader does not end the connection.
#[test]
fn a_writer_that_is_blocked_keeps_the_connection() {
    let mut pair = connected(Pair::builder().link(link(20, 10)).both_configs(|config| {
        set_windows(config, 20_000, 1_000_000, false);
        config.max_idle_timeout = Some(secs(5));
    }));
    let data = content(1, 50_000);
    let mut hands = Hands::lazy(Side::Server);
    hands
        .send(&mut pair, Side::Client, Dir::Uni, data.clone())
        .unwrap();
    for _ in 0..60 {
        pair.advance(secs(1));
        hands.serve(&mut pair);
    }
    assert!(!pair.client().is_closed() && !pair.server().is_closed());
    // Once everything was read there is nothing to wait for.
    hands.wake(&mut pair);
    assert!(hands.run(&mut pair, |hands, _| hands.ends(Side::Server) == 1));
    pair.advance(secs(6));
    assert!(pair.client().is_closed() && pair.server().is_closed());
}

#[test]
fn a_reader_that_does_not_read_stops_the_writer_and_nothing_else() {
    let mut pair = connected(
        Pair::builder()
            .link(link(20, 10))
            .both_configs(|config| set_windows(config, 20_000, 1_000_000, false)),
    );
    let data = content(1, 300_000);
    let mut hands = Hands::lazy(Side::Server);
    let slow = hands
        .send(&mut pair, Side::Client, Dir::Uni, data.clone())
        .unwrap();
    for _ in 0..10 {
        pair.advance(secs(1));
        hands.serve(&mut pair);
    }
    let received = pair.stats(Side::Server).stream_bytes_received.get();
    assert!(
        (20_000..20_100).contains(&received),
        "no more than the window: {received}"
    );
    // The other direction isn't concerned.
    let back = hands
        .send(&mut pair, Side::Server, Dir::Uni, content(2, 100_000))
        .unwrap();
    let start = pair.now();
    assert!(hands.run(&mut pair, |hands, _| hands.ends(Side::Client) == 1));
    assert!(hands.read(Side::Client, back).data == content(2, 100_000));
    assert!(pair.now() - start < millis(500));
    // Once read, it continues.
    hands.wake(&mut pair);
    let start = pair.now();
    assert!(hands.run(&mut pair, |hands, _| hands.ends(Side::Server) == 1));
    assert!(hands.read(Side::Server, slow).data == data);
    assert!(pair.now() - start < secs(2), "{:?}", pair.now() - start);
}

#[test]
fn a_window_of_the_connection_is_shared_without_deadlock() {
    let mut pair = connected(
        Pair::builder()
            .link(link(20, 10))
            .both_configs(|config| set_windows(config, 1_000_000, 10_000, false)),
    );
    let mut hands = Hands::echoing();
    let ids: Vec<_> = (0..20)
        .map(|nth| {
            let data = content(nth, 20_000);
            hands.send(&mut pair, Side::Client, Dir::Bi, data).unwrap()
        })
        .collect();
    let start = pair.now();
    assert!(hands.run(&mut pair, |hands, _| hands.ends(Side::Client) == 20));
    for (nth, id) in ids.into_iter().enumerate() {
        assert!(hands.read(Side::Client, id).data == content(nth, 20_000));
    }
    // 400 kB through 5 to 10 kB a round trip of 20 ms, there and back.
    let took = pair.now() - start;
    assert!(took < millis(3_300), "{took:?}");
}

#[test]
fn a_send_window_bounds_what_is_kept() {
    let mut pair = connected(
        Pair::builder()
            .link(link(20, 20))
            .client_config(|config| config.send_window = ByteCount::new(30_000)),
    );
    let id = pair.client().open(Dir::Uni).unwrap();
    let mut written = 0;
    loop {
        match pair.client().send_stream(id).write(&[7; 1_000]) {
            Ok(0) => break,
            Ok(n) => written += n,
            Err(error) => panic!("{error}"),
        }
    }
    assert_eq!(written, 30_000);
    assert!(pair.run_until(|pair| {
        let writable = Event::Stream(StreamEvent::Writable { id });
        pair.events(Side::Client).contains(&writable)
    }));
    assert!(
        pair.client()
            .send_stream(id)
            .write(&[7; 1_000])
            .is_ok_and(|n| n > 0)
    );
}

/// In pieces of any size, of which the window may take the last in part.
#[test]
fn a_vectored_write_is_one_write() {
    let data = content(1, 30_000);
    for (sizes, written) in [
        (vec![0, 3, 0, 1_000], 1_003),
        (vec![1, 1_023, 5_000, 64_000], 30_000),
        (vec![29_999, 1, 1], 30_000),
        (vec![], 0),
    ] {
        let mut pair = connected(
            Pair::builder()
                .link(link(20, 20))
                .client_config(|config| config.send_window = ByteCount::new(30_000)),
        );
        let id = pair.client().open(Dir::Uni).unwrap();
        let long = [&data[..], &data[..], &data[..]].concat();
        let mut rest = &long[..];
        let pieces: Vec<_> = (sizes.iter())
            .map(|&size| rest.split_off(..size).unwrap())
            .collect();
        let taken = pair.client().send_stream(id).write_vectored(&pieces);
        assert_eq!(taken, Ok(written), "{sizes:?}");
        pair.client().send_stream(id).finish().unwrap();
        let mut hands = Hands::echoing();
        assert!(hands.run(&mut pair, |hands, _| hands.ends(Side::Server) == 1));
        assert!(hands.read(Side::Server, id).data == long[..written]);
    }
}

#[test]
fn the_more_urgent_go_first() {
    let mut pair = connected(Pair::builder().link(link(5, 20)));
    let mut hands = Hands::default();
    let ids: Vec<_> = [3, 2, 7, 0]
        .into_iter()
        .map(|urgency| {
            let id = pair.client().open(Dir::Uni).unwrap();
            pair.client()
                .send_stream(id)
                .set_priority(Priority::new(urgency, true))
                .unwrap();
            hands.write(&mut pair, Side::Client, id, content(1, 60_000), true);
            id
        })
        .collect();
    assert!(hands.run(&mut pair, |hands, _| hands.ends(Side::Server) == 4));
    let order: Vec<_> = hands.ended.iter().map(|(_, id)| *id).collect();
    assert_eq!(order, [ids[3], ids[1], ids[0], ids[2]]);
}

#[test]
fn an_endless_urgent_stream_starves_no_other() {
    let shares = |share| {
        let mut pair = connected(
            Pair::builder()
                .link(link(10, 20))
                .both_configs(move |config| config.starvation_share = share),
        );
        let mut hands = Hands::default();
        let ids = [0, 3, 7].map(|urgency| {
            let id = pair.client().open(Dir::Uni).unwrap();
            pair.client()
                .send_stream(id)
                .set_priority(Priority::new(urgency, true))
                .unwrap();
            hands.write(&mut pair, Side::Client, id, vec![1; 4_000_000], false);
            id
        });
        let total =
            |hands: &Hands| -> [usize; 3] { ids.map(|id| hands.read(Side::Server, id).data.len()) };
        assert!(
            hands.run(&mut pair, |hands, _| total(hands).iter().sum::<usize>()
                > 2_000_000)
        );
        total(&hands).map(|got| got as f64 / 2_000_000.0)
    };
    let [urgent, normal, idle] = shares(16);
    assert!(urgent > 0.9, "{urgent}");
    // 1/16 between the two that wait.
    assert!((0.02..0.05).contains(&normal), "{normal}");
    assert!((0.02..0.05).contains(&idle), "{idle}");
    let [urgent, normal, idle] = shares(0);
    assert!(
        urgent >= 1.0 && normal + idle == 0.0,
        "{urgent} {normal} {idle}"
    );
}

#[test]
fn streams_that_are_not_incremental_come_whole_one_after_another() {
    let mut pair = connected(Pair::builder().link(link(5, 20).loss(LossModel::Bernoulli(0.02))));
    let mut hands = Hands::default();
    let ids: Vec<_> = (0..6)
        .map(|_| {
            let id = pair.client().open(Dir::Uni).unwrap();
            let mut stream = pair.client().send_stream(id);
            stream.set_priority(Priority::new(3, false)).unwrap();
            id
        })
        .collect();
    // The order of writing doesn't matter.
    for id in ids.iter().rev() {
        hands.write(&mut pair, Side::Client, *id, content(1, 60_000), true);
    }
    assert!(hands.run(&mut pair, |hands, _| hands.ends(Side::Server) == 1));
    let got: Vec<_> = ids
        .iter()
        .map(|id| hands.read(Side::Server, *id).data.len())
        .collect();
    assert_eq!(got[0], 60_000, "{got:?}");
    // What the last one had sent before the first was written, the window of the first round trip.
    assert!(got[2..].iter().sum::<usize>() < 30_000, "{got:?}");
    assert!(hands.run(&mut pair, |hands, _| hands.ends(Side::Server) == 6));
    let order: Vec<_> = hands.ended.iter().map(|(_, id)| *id).collect();
    assert_eq!(order, ids);
}

#[test]
fn equal_priorities_share() {
    let mut pair = connected(Pair::builder().link(link(5, 20)));
    let mut hands = Hands::default();
    let ids: Vec<_> = (0..5)
        .map(|nth| {
            hands
                .send(&mut pair, Side::Client, Dir::Uni, content(nth, 60_000))
                .unwrap()
        })
        .collect();
    assert!(hands.run(&mut pair, |hands, _| {
        ids.iter()
            .map(|id| hands.read(Side::Server, *id).data.len())
            .sum::<usize>()
            > 150_000
    }));
    for id in ids {
        let got = hands.read(Side::Server, id).data.len();
        assert!((20_000..40_000).contains(&got), "{got}");
    }
}

#[test]
fn a_late_urgent_stream_overtakes() {
    let mut pair = connected(Pair::builder().link(link(5, 20)));
    let mut hands = Hands::default();
    hands
        .send(&mut pair, Side::Client, Dir::Uni, content(1, 1_000_000))
        .unwrap();
    pair.advance(millis(500));
    let urgent = pair.client().open(Dir::Uni).unwrap();
    let priority = Priority::new(2, true);
    pair.client()
        .send_stream(urgent)
        .set_priority(priority)
        .unwrap();
    hands.write(&mut pair, Side::Client, urgent, content(2, 3_000), true);
    let start = pair.now();
    let rtt = path(&pair, Side::Client).latest_rtt;
    assert!(hands.run(&mut pair, |hands, _| hands.ends(Side::Server) == 1));
    assert_eq!(hands.ended, [(Side::Server, urgent)]);
    // It waits for what is in the network already, not for what isn't.
    let took = pair.now() - start;
    assert!(took < rtt * 2 + millis(50), "{took:?}, round trip {rtt:?}");
}

#[test]
fn a_reset_delivers_its_code_and_frees_the_stream() {
    for loss in [0.0, 0.3] {
        let mut pair = connected(
            Pair::builder()
                .link(link(5, 20).loss(LossModel::Bernoulli(loss)))
                .both_configs(|config| {
                    config.handshake_timeout = secs(60);
                    set_streams(config, Dir::Uni, 1);
                }),
        );
        let mut hands = Hands::default();
        for nth in 0..5 {
            let mut id = None;
            assert!(hands.run(&mut pair, |hands, pair| {
                id = id
                    .or_else(|| hands.send(pair, Side::Client, Dir::Uni, content(nth, 3_000_000)));
                id.is_some()
            }));
            let id = id.unwrap();
            pair.advance(millis(200));
            hands.serve(&mut pair);
            pair.client()
                .send_stream(id)
                .reset(nth as u64 + 1_000)
                .unwrap();
            let again = pair.client().send_stream(id).write(b"x");
            assert_eq!(again, Err(WriteError::Closed));
            assert!(hands.run(&mut pair, |hands, _| hands.ends(Side::Server) == nth + 1));
            let read = hands.read(Side::Server, id);
            assert_eq!(read.end, Some(Err(ReadError::Reset(nth as u64 + 1_000))));
            assert!(
                read.data[..] == content(nth, 3_000_000)[..read.data.len()],
                "what came is right"
            );
        }
    }
}

#[test]
fn a_stop_delivers_its_code_and_ends_the_sending() {
    for loss in [0.0, 0.3] {
        let mut pair = connected(
            Pair::builder()
                .seed(3)
                .link(link(5, 20).loss(LossModel::Bernoulli(loss)))
                .both_configs(|config| config.handshake_timeout = secs(60)),
        );
        let mut hands = Hands::lazy(Side::Server);
        let id = hands
            .send(&mut pair, Side::Client, Dir::Bi, content(1, 3_000_000))
            .unwrap();
        assert!(pair.run_until(|pair| {
            pair.connection(Side::Server).is_some() && pair.server().accept(Dir::Bi) == Some(id)
        }));
        pair.server().recv_stream(id).stop(55).unwrap();
        let read = pair.server().recv_stream(id).read(&mut [0; 10]);
        assert_eq!(read, Err(ReadError::Closed));
        assert!(hands.run(&mut pair, |hands, _| {
            let stopped = Event::Stream(StreamEvent::Stopped { id, code: 55 });
            hands.told.contains(&(Side::Client, stopped))
        }));
        let write = pair.client().send_stream(id).write(b"x");
        assert_eq!(write, Err(WriteError::Stopped(55)));
        pair.advance(secs(3));
        let sent = pair.stats(Side::Client).stream_bytes_sent;
        pair.advance(secs(3));
        assert_eq!(
            sent,
            pair.stats(Side::Client).stream_bytes_sent,
            "no more is sent"
        );
        // The other half still works.
        pair.server().send_stream(id).write(b"why").unwrap();
        pair.server().send_stream(id).finish().unwrap();
        assert!(hands.run(&mut pair, |hands, _| hands.ends(Side::Client) == 1));
        assert_eq!(hands.read(Side::Client, id).data, b"why");
    }
}

#[test]
fn empty_streams_arrive() {
    for dir in DIRS {
        for side in SIDES {
            let mut pair = connected(Pair::builder().link(link(20, 10)));
            let mut hands = Hands::default();
            let ids: Vec<_> = (0..50)
                .map(|_| hands.send(&mut pair, side, dir, Vec::new()).unwrap())
                .collect();
            assert!(hands.run(&mut pair, |hands, _| hands.ends(!side) == 50));
            for id in ids {
                let read = hands.read(!side, id);
                assert_eq!((read.data.len(), read.end), (0, Some(Ok(()))));
            }
            assert!(hands.run(&mut pair, |hands, _| {
                let finished = |(_, event): &&(Side, Event)| {
                    matches!(event, Event::Stream(StreamEvent::Finished { .. }))
                };
                hands.told.iter().filter(finished).count() == 50
            }));
        }
    }
}

#[test]
fn an_end_that_comes_later_than_the_data_arrives() {
    for loss in [0.0, 0.3] {
        let mut pair = connected(
            Pair::builder()
                .seed(5)
                .link(link(20, 10).loss(LossModel::Bernoulli(loss)))
                .both_configs(|config| config.handshake_timeout = secs(60)),
        );
        let mut hands = Hands::default();
        let id = pair.client().open(Dir::Uni).unwrap();
        hands.write(&mut pair, Side::Client, id, content(1, 5_000), false);
        assert!(hands.run(
            &mut pair,
            |hands, _| hands.read(Side::Server, id).data.len() == 5_000
        ));
        pair.advance(secs(1));
        assert_eq!(hands.read(Side::Server, id).end, None);
        pair.client().send_stream(id).finish().unwrap();
        assert!(hands.run(&mut pair, |hands, _| hands.ends(Side::Server) == 1));
        let finished = Event::Stream(StreamEvent::Finished { id });
        assert!(hands.run(&mut pair, |hands, _| {
            hands.told.contains(&(Side::Client, finished.clone()))
        }));
        let write = pair.client().send_stream(id).write(b"x");
        assert_eq!(write, Err(WriteError::Closed));
    }
}

#[test]
fn data_written_before_a_close_of_the_writer_is_read_after_it() {
    let mut pair = connected(Pair::builder().link(link(20, 10)));
    let id = pair.client().open(Dir::Uni).unwrap();
    pair.client().send_stream(id).write(&[9; 3_000]).unwrap();
    pair.client().send_stream(id).finish().unwrap();
    pair.advance(millis(200));
    assert_eq!(pair.server().accept(Dir::Uni), Some(id));
    let now = pair.now();
    pair.client().close(now, 0, b"");
    pair.advance(millis(50));
    assert!(pair.server().is_closed());
    let mut buffer = [0; 4_000];
    let read = pair.server().recv_stream(id).read(&mut buffer);
    assert_eq!(read, Ok(ReadOutcome::Data(3_000)));
}

#[test]
fn streams_of_the_wrong_side_or_kind_are_refused_locally() {
    let mut pair = connected(Pair::builder().link(link(20, 10)));
    let uni = pair.client().open(Dir::Uni).unwrap();
    let read = pair.client().recv_stream(uni).read(&mut [0; 4]);
    assert_eq!(read, Err(ReadError::Closed));
    let never = StreamId::new(Side::Server, Dir::Bi, 40);
    assert_eq!(
        pair.client().send_stream(never).write(b"x"),
        Err(WriteError::Closed)
    );
}

#[test]
fn requests_and_answers_without_end() {
    // 3,000 streams one after another: no state remains that would slow the last ones.
    let mut pair = connected(Pair::builder().link(link(50, 1)));
    let first = exchange(&mut pair, Side::Client, Dir::Bi, 200, 100);
    exchange(&mut pair, Side::Client, Dir::Bi, 2_600, 100);
    let last = exchange(&mut pair, Side::Client, Dir::Bi, 200, 100);
    assert!(last < first + millis(5), "{first:?} {last:?}");
}
