//! Partial reliability end to end: resets that still deliver the first bytes, and streams whose time
//! runs out, on links that lose packets.

use std::sync::{Arc, Mutex};

use swiftwater_link::LossModel;
use swiftwater_quic::observe::{Observation, Observer, ObserverFactory, ResetCause};
use swiftwater_quic::{Event, Expiry, Priority, ReadError, StreamEvent, WriteError};
use swiftwater_sim::{Pair, PairBuilder};
use swiftwater_units::{ByteCount, Dir, Instant, Side, StreamId};

use crate::support::hands::{Hands, content};
use crate::support::{link, millis, secs};

fn connected(builder: PairBuilder) -> Pair {
    let mut pair = builder.build().unwrap();
    assert!(pair.connect());
    pair
}

/// A link on which every fifth packet is lost.
fn lossy() -> PairBuilder {
    Pair::builder()
        .link(link(5, 20).loss(LossModel::Bernoulli(0.2)))
        .both_configs(|config| config.handshake_timeout = secs(60))
}

#[test]
fn the_first_bytes_arrive_whatever_is_lost() {
    for seed in 0..5 {
        let mut pair = connected(lossy().seed(seed));
        let mut hands = Hands::default();
        let data = content(1, 300_000);
        let id = hands
            .send(&mut pair, Side::Client, Dir::Uni, data.clone())
            .unwrap();
        let started = pair.now();
        assert!(hands.run(&mut pair, |_, pair| pair.now() > started + millis(150)));
        pair.client().send_stream(id).reset_at(9, 100_000).unwrap();
        let again = pair.client().send_stream(id).write(b"x");
        assert_eq!(again, Err(WriteError::Closed));
        assert!(hands.run(&mut pair, |hands, _| hands.ends(Side::Server) == 1));
        let read = hands.read(Side::Server, id);
        assert_eq!(read.end, Some(Err(ReadError::Reset(9))));
        assert!(read.data.len() >= 100_000, "{} bytes", read.data.len());
        assert!(read.data[..] == data[..read.data.len()]);
        // Both ends discard the stream, so that another one can take its place.
        pair.advance(secs(5));
        assert_eq!(pair.stats(Side::Client).send_buffered, ByteCount::ZERO);
        assert_eq!(pair.stats(Side::Server).receive_buffered, ByteCount::ZERO);
        assert_eq!(pair.stats(Side::Client).streams_reset, 1);
        assert_eq!(pair.stats(Side::Server).streams_reset_by_peer, 1);
    }
}

#[test]
fn a_reliable_size_can_be_lowered_on_the_way() {
    for seed in 0..5 {
        let mut pair = connected(lossy().seed(seed));
        let mut hands = Hands::default();
        let data = content(1, 300_000);
        let id = hands
            .send(&mut pair, Side::Client, Dir::Uni, data.clone())
            .unwrap();
        pair.client().send_stream(id).reset_at(9, 200_000).unwrap();
        pair.advance(millis(100));
        hands.serve(&mut pair);
        pair.client().send_stream(id).reset_at(9, 5_000).unwrap();
        assert!(hands.run(&mut pair, |hands, _| hands.ends(Side::Server) == 1));
        let read = hands.read(Side::Server, id);
        assert_eq!(read.end, Some(Err(ReadError::Reset(9))));
        assert!((5_000..200_000).contains(&read.data.len()));
        assert!(read.data[..] == data[..read.data.len()]);
    }
}

#[test]
fn streams_of_a_full_window_make_room_for_others() {
    // Five streams at once, each reset half-way; credit must be returned or the sixth can't send.
    let mut pair = connected(lossy().server_config(|config| {
        config.receive_window = ByteCount::new(100_000);
        config.max_receive_window = ByteCount::new(100_000);
    }));
    let mut hands = Hands::default();
    for round in 0..4 {
        let ids: Vec<StreamId> = (0..5)
            .map(|nth| {
                hands
                    .send(&mut pair, Side::Client, Dir::Uni, content(nth, 60_000))
                    .unwrap()
            })
            .collect();
        pair.advance(millis(100));
        hands.serve(&mut pair);
        for id in ids {
            pair.client().send_stream(id).reset_at(1, 3_000).unwrap();
        }
        assert!(hands.run(&mut pair, |hands, _| hands.ends(Side::Server)
            == 6 * round + 5));
        let last = content(9, 150_000);
        let id = hands
            .send(&mut pair, Side::Client, Dir::Uni, last.clone())
            .unwrap();
        assert!(hands.run(&mut pair, |hands, _| hands.ends(Side::Server)
            == 6 * round + 6));
        assert!(hands.read(Side::Server, id).data == last);
    }
}

/// Resets as reported to an observer.
#[derive(Clone, Debug, Default)]
struct Resets(Arc<Mutex<Vec<(Side, ResetCause, u64)>>>);

struct Ear(Side, Resets);

impl ObserverFactory for Resets {
    fn observer(&self, side: Side) -> Option<Box<dyn Observer>> {
        Some(Box::new(Ear(side, self.clone())))
    }
}

impl Observer for Ear {
    fn observe(&mut self, _: Instant, observation: &Observation<'_>) {
        if let Observation::StreamReset {
            cause,
            reliable_size,
            ..
        } = *observation
        {
            let mut heard = self.1.0.lock().unwrap();
            heard.push((self.0, cause, reliable_size));
        }
    }
}

#[test]
fn late_frames_are_abandoned_and_their_headers_are_not() {
    const HEADER: usize = 50;
    let resets = Resets::default();
    let factory: Arc<dyn ObserverFactory> = Arc::new(resets.clone());
    // 40 frames a second of 20 kB are 6.4 Mbit/s; the link carries 5.
    let mut pair = connected(Pair::builder().link(link(5, 20)).both_configs(|config| {
        config.observer = Some(Arc::clone(&factory));
        config.max_concurrent_uni_streams = 1000;
    }));
    let mut hands = Hands::default();
    let mut ids = Vec::new();
    let frames = 120;
    for nth in 0..frames {
        let id = hands
            .send(&mut pair, Side::Client, Dir::Uni, content(nth, 20_000))
            .unwrap();
        let expiry = Expiry {
            at: pair.now() + millis(200),
            code: 3,
            reliable_size: HEADER as u64,
        };
        let mut stream = pair.client().send_stream(id);
        stream.set_expiry(Some(expiry)).unwrap();
        // Half of each of two frames would be of no use.
        stream.set_priority(Priority::new(3, false)).unwrap();
        ids.push(id);
        pair.advance(millis(25));
        hands.serve(&mut pair);
    }
    assert!(hands.run(&mut pair, |hands, _| hands.ends(Side::Server) == frames));
    let mut whole = 0;
    for (nth, id) in ids.iter().enumerate() {
        let read = hands.read(Side::Server, *id);
        assert!(read.data.len() >= HEADER, "frame {nth} has no header");
        assert!(read.data[..] == content(nth, 20_000)[..read.data.len()]);
        match read.end {
            Some(Ok(())) => whole += 1,
            end => assert_eq!(end, Some(Err(ReadError::Reset(3)))),
        }
    }
    let stats = pair.stats(Side::Client);
    let expired = stats.streams_expired as usize;
    assert!(expired >= frames / 4, "{expired} expired");
    assert!(whole >= frames / 5, "{whole} whole");
    assert!(stats.expired_bytes > ByteCount::ZERO);
    let told = |event: &Event| matches!(event, Event::Stream(StreamEvent::Expired { code: 3, .. }));
    assert_eq!(
        hands.told.iter().filter(|(_, event)| told(event)).count(),
        expired
    );
    let heard = resets.0.lock().unwrap();
    let ours = (Side::Client, ResetCause::Expired, HEADER as u64);
    assert_eq!(
        heard.iter().filter(|reset| **reset == ours).count(),
        expired
    );
    let theirs = (Side::Server, ResetCause::Peer, HEADER as u64);
    assert_eq!(
        heard.iter().filter(|reset| **reset == theirs).count() as u64,
        pair.stats(Side::Server).streams_reset_by_peer
    );
}

#[test]
fn an_expiry_wakes_an_idle_connection() {
    let mut pair = connected(Pair::builder().link(link(5, 20)));
    let id = pair.client().open(Dir::Uni).unwrap();
    pair.client().send_stream(id).write(&[1; 100]).unwrap();
    let at = pair.now() + secs(3);
    let expiry = Expiry {
        at,
        code: 3,
        reliable_size: 0,
    };
    pair.client()
        .send_stream(id)
        .set_expiry(Some(expiry))
        .unwrap();
    // Everything written is delivered, but the stream has no end.
    let expired = Event::Stream(StreamEvent::Expired { id, code: 3 });
    assert!(pair.run_until(|pair| pair.events(Side::Client).contains(&expired)));
    assert!(pair.now() >= at && pair.now() < at + millis(1));
}
