//! Sinks that fail, logs that are full, and files.

use std::fs;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use swiftwater_qlog::{DirectoryFactory, Limits, QlogObserver, SinkFactory};
use swiftwater_quic::ConnectionError;
use swiftwater_quic::crypto::EncryptionLevel;
use swiftwater_quic::observe::{Observation, Observer, ObserverFactory};
use swiftwater_units::{Instant, PathId, Side};

use crate::support::{Memory, events, info, named};

/// A sink that accepts a number of bytes and then fails.
struct Full {
    room: usize,
    failures: Arc<AtomicUsize>,
}

impl Write for Full {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        if self.room == 0 {
            self.failures.fetch_add(1, Ordering::Relaxed);
            return Err(io::ErrorKind::StorageFull.into());
        }
        let taken = data.len().min(self.room);
        self.room -= taken;
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn dropped(observer: &mut dyn Observer, count: u64) {
    for n in 0..count {
        let reason = "too short";
        observer.observe(
            Instant::from_millis(n),
            &Observation::PacketDropped {
                reason,
                size: 20,
                packet_type: None,
            },
        );
    }
}

#[test]
fn a_failing_sink_is_asked_no_more() {
    let failures = Arc::new(AtomicUsize::new(0));
    let sink = Full {
        room: 20_000,
        failures: Arc::clone(&failures),
    };
    let mut observer = QlogObserver::new(sink, &info(Side::Client), Limits::default());
    dropped(&mut observer, 2_000);
    assert_eq!(failures.load(Ordering::Relaxed), 1);
    drop(observer);
    assert_eq!(failures.load(Ordering::Relaxed), 1);
}

#[test]
fn a_full_log_says_so_and_stays_within_its_limit() {
    let memory = Memory::default();
    let limits = Limits { log_bytes: 50_000 };
    let mut observer = QlogObserver::new(memory.clone(), &info(Side::Server), limits);
    dropped(&mut observer, 5_000);
    drop(observer);
    let bytes = memory.bytes();
    assert!((49_000..=50_000).contains(&bytes.len()), "{}", bytes.len());
    let events = events(&bytes);
    let ends = named(&events, "swiftwater:log_ended");
    assert_eq!(ends.len(), 1);
    assert_eq!(events.last(), ends.first().copied());
}

#[test]
fn the_end_of_a_connection_is_written_at_once() {
    let memory = Memory::default();
    let mut observer = QlogObserver::new(memory.clone(), &info(Side::Client), Limits::default());
    dropped(&mut observer, 3);
    assert!(memory.bytes().is_empty(), "records are collected");
    let reason = ConnectionError::TimedOut;
    observer.observe(
        Instant::from_millis(4),
        &Observation::Closed { reason: &reason },
    );
    assert_eq!(
        named(&events(&memory.bytes()), "quic:connection_closed").len(),
        1
    );
}

#[test]
fn a_slow_log_can_be_watched() {
    let memory = Memory::default();
    let mut observer = QlogObserver::new(memory.clone(), &info(Side::Client), Limits::default());
    for second in 0..5 {
        let now = Instant::ZERO + Duration::from_secs(second);
        let path = PathId::ZERO;
        let count = 1;
        observer.observe(
            now,
            &Observation::ProbeTimeout {
                path,
                level: EncryptionLevel::OneRtt,
                count,
            },
        );
    }
    assert_eq!(
        named(&events(&memory.bytes()), "quic:timer_updated").len(),
        5
    );
}

#[test]
fn times_never_fall_even_if_the_clock_does() {
    let memory = Memory::default();
    let mut observer = QlogObserver::new(memory.clone(), &info(Side::Client), Limits::default());
    for at in [50, 70, 60, 10, 80] {
        let path = PathId::ZERO;
        let now = Instant::from_millis(at);
        observer.observe(
            now,
            &Observation::ProbeTimeout {
                path,
                level: EncryptionLevel::OneRtt,
                count: 1,
            },
        );
    }
    drop(observer);
    let times: Vec<f64> = named(&events(&memory.bytes()), "quic:timer_updated")
        .iter()
        .map(|event| event["time"].as_f64().unwrap())
        .collect();
    assert_eq!(times, [0.0, 20.0, 20.0, 20.0, 30.0]);
}

#[test]
fn what_a_peer_says_is_cut() {
    let memory = Memory::default();
    let mut observer = QlogObserver::new(memory.clone(), &info(Side::Client), Limits::default());
    let reason = ConnectionError::PeerApplication {
        code: 1,
        reason: vec![0xff; 100_000],
    };
    observer.observe(Instant::ZERO, &Observation::Closed { reason: &reason });
    let events = events(&memory.bytes());
    let said = named(&events, "quic:connection_closed")[0]["data"]["reason"].clone();
    assert_eq!(said.as_str().unwrap().chars().count(), 256);
}

#[test]
fn a_closure_chooses_whom_to_log() {
    let memory = Memory::default();
    let sink = memory.clone();
    let factory =
        SinkFactory::new(move |side: Side| side.is_server().then(|| (info(side), sink.sink())));
    assert!(factory.observer(Side::Client).is_none());
    let mut observer = factory.observer(Side::Server).unwrap();
    dropped(&mut *observer, 1);
    drop(observer);
    assert_eq!(events(&memory.bytes()).len(), 2);
}

#[test]
fn every_connection_has_a_file_and_none_is_overwritten() {
    let parent = tempfile::tempdir().unwrap();
    let directory = parent.path().join("new").join("logs");
    for _ in 0..2 {
        let factory = DirectoryFactory::new(&directory).unwrap();
        for side in [Side::Client, Side::Server] {
            dropped(&mut *factory.observer(side).unwrap(), 1);
        }
    }
    let mut sides = Vec::new();
    for entry in fs::read_dir(&directory).unwrap() {
        let path = entry.unwrap().path();
        assert_eq!(path.extension().unwrap(), "sqlog");
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let log = fs::read(&path).unwrap();
        assert_eq!(events(&log).len(), 2);
        let text = String::from_utf8(log).unwrap();
        assert!(text.contains(&format!("\"group_id\":\"{name}\"")));
        assert!(text.contains("\"wall_clock_time\":\"20"), "{text}");
        sides.push(name.split('-').nth(1).unwrap().to_owned());
    }
    sides.sort();
    assert_eq!(sides, ["client", "client", "server", "server"]);
}

#[test]
fn virtual_time_leaves_no_trace_of_the_calendar() {
    let directory = tempfile::tempdir().unwrap();
    let factory = DirectoryFactory::new(directory.path())
        .unwrap()
        .without_wall_clock();
    drop(factory.observer(Side::Client));
    let log = fs::read_to_string(directory.path().join("client-0000.sqlog")).unwrap();
    assert!(!log.contains("wall_clock_time"), "{log}");
}

#[test]
fn a_file_is_no_directory() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let error = DirectoryFactory::new(file.path()).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::NotADirectory);
}

#[test]
fn a_directory_that_vanishes_costs_the_logs_only() {
    let directory = tempfile::tempdir().unwrap();
    let factory = DirectoryFactory::new(directory.path()).unwrap();
    drop(directory);
    assert!(factory.observer(Side::Client).is_none());
}
