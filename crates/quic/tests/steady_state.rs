//! Heap memory of a connection that is busy for long: nothing is allocated any more, and what it needs no
//! longer it gives back.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod support;

use std::time::Duration;

use swiftwater_quic::{ReadOutcome, RetryPolicy, TransportConfig};
use swiftwater_units::{ByteCount, Dir, StreamId};

use support::{Wire, establish};

/// Bytes that the sender may hold.
const WINDOW: u32 = 2 << 20;

/// What a single write hands over.
const WRITE: usize = 1 << 16;

/// A connection whose client sends on one stream without end.
struct Flow {
    wire: Wire,
    id: StreamId,
    data: Vec<u8>,
    sink: Vec<u8>,
}

impl Flow {
    fn new() -> Self {
        let config = TransportConfig {
            send_window: ByteCount::new(WINDOW.into()),
            // All of it from the beginning.
            unsent_window: ByteCount::new(WINDOW.into()),
            pacing: false,
            ..TransportConfig::default()
        };
        let mut wire = Wire::with(false, RetryPolicy::Never, config);
        establish(&mut wire);
        let id = wire.client.connection().open(Dir::Uni).unwrap();
        Self {
            wire,
            id,
            data: vec![7; WRITE],
            sink: vec![0; WRITE],
        }
    }

    /// Writes `bytes`, or less if the window is full, before anything leaves, and moves time until all of it was
    /// read and acknowledged: acknowledgements come in bursts.
    fn burst(&mut self, bytes: usize) {
        let (mut written, mut read) = (0, 0);
        while written < bytes {
            let want = WRITE.min(bytes - written);
            let mut stream = self.wire.client.connection().send_stream(self.id);
            match stream.write(&self.data[..want]).unwrap() {
                0 => break,
                n => written += n,
            }
        }
        while read < written {
            self.wire.step(Duration::from_secs(1));
            while self.wire.server.connection().accept(Dir::Uni).is_some() {}
            let mut stream = self.wire.server.connection().recv_stream(self.id);
            while let ReadOutcome::Data(n) = stream.read(&mut self.sink).unwrap() {
                read += n;
            }
        }
        while self.wire.step(Duration::from_millis(100)) {}
        self.wire.client.events.clear();
        self.wire.server.events.clear();
    }

    fn bursts(&mut self, n: usize, bytes: usize) {
        for _ in 0..n {
            self.burst(bytes);
        }
    }
}

#[test]
fn acknowledgements_in_bursts_allocate_nothing() {
    let mut flow = Flow::new();
    flow.bursts(10, WINDOW as usize);
    let heap = allocation_counter::measure(|| flow.bursts(10, WINDOW as usize));
    assert_eq!(heap.count_total, 0);
}

#[test]
fn small_writes_between_large_ones_allocate_nothing() {
    let mut flow = Flow::new();
    let mut round = || {
        flow.burst(WINDOW as usize);
        for size in [100, 5000, 10_000, WRITE / 2 + 1] {
            flow.burst(size);
        }
    };
    (0..10).for_each(|_| round());
    let heap = allocation_counter::measure(|| (0..10).for_each(|_| round()));
    assert_eq!(heap.count_total, 0);
}

#[test]
fn memory_of_a_large_window_is_given_back_by_a_small_flow() {
    let mut flow = Flow::new();
    flow.bursts(10, WINDOW as usize);
    let held = i64::from(WINDOW);
    // Two periods' worth of data, one write at a time.
    let heap = allocation_counter::measure(|| flow.bursts(2 * 4096, WRITE));
    assert!(heap.bytes_current < -held * 9 / 10, "{heap:?}");
    flow.bursts(1, WINDOW as usize);
}

#[test]
fn memory_of_a_large_window_is_released_when_idle() {
    let mut flow = Flow::new();
    flow.bursts(10, WINDOW as usize);
    let heap = allocation_counter::measure(|| flow.wire.client.connection().release_idle_memory());
    assert!(heap.bytes_current < -i64::from(WINDOW), "{heap:?}");
}

/// Messages on streams of their own, of other sizes each time, as many at a time as requests are in flight.
#[test]
fn streams_of_one_message_allocate_nothing() {
    let mut flow = Flow::new();
    let mut round = |size: usize| {
        for _ in 0..16 {
            let client = flow.wire.client.connection();
            let id = client.open(Dir::Uni).unwrap();
            let mut stream = client.send_stream(id);
            assert_eq!(stream.write(&flow.data[..size]).unwrap(), size);
            stream.finish().unwrap();
        }
        while flow.wire.step(Duration::from_millis(100)) {}
        let server = flow.wire.server.connection();
        let mut read = 0;
        while let Some(id) = server.accept(Dir::Uni) {
            let mut stream = server.recv_stream(id);
            while let Ok(ReadOutcome::Data(n)) = stream.read(&mut flow.sink) {
                read += n;
            }
        }
        assert_eq!(read, 16 * size);
        while flow.wire.step(Duration::from_millis(100)) {}
        flow.wire.client.events.clear();
        flow.wire.server.events.clear();
    };
    let sizes = [100, 1024, 500, 2000];
    (0..10).for_each(|_| sizes.into_iter().for_each(&mut round));
    let heap = allocation_counter::measure(|| sizes.into_iter().for_each(&mut round));
    assert_eq!(heap.count_total, 0);
}
