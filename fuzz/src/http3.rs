//! A peer that says anything on HTTP/3's streams, against an engine in the simulator.

#[path = "../../crates/http/tests/support/mod.rs"]
pub(crate) mod support;

use arbitrary::Arbitrary;
use swiftwater_http::h3::Config;
use swiftwater_units::{Dir, Side, StreamId};

use support::millis;
use support::peer::{CONTROL, Duel, get};

/// Steps in a row that are carried out; more would make a case slow.
const MAX_STEPS: usize = 60;

/// What the peer does; streams are chosen among those that it has opened, round and round.
#[derive(Arbitrary, Debug)]
pub enum Step {
    /// Opens a unidirectional stream of this type.
    Uni(u8, Vec<u8>),
    /// Opens a request stream, or writes on the engine's.
    Bidi(Vec<u8>, bool),
    /// A whole request, then these bytes.
    Request(Vec<u8>),
    Datagram(Vec<u8>),
    More(u8, Vec<u8>),
    Finish(u8),
    Reset(u8),
    Stop(u8),
    Wait,
}

/// A case: the role of the engine, whether its peer sends SETTINGS, and the peer's actions.
#[derive(Arbitrary, Debug)]
pub struct Case {
    server: bool,
    well_begun: bool,
    steps: Vec<Step>,
}

impl Case {
    /// Carries it out. What closes the connection is a fault with a name.
    pub fn run(self) {
        let engine = if self.server {
            Side::Server
        } else {
            Side::Client
        };
        let config = Config {
            webtransport_sessions: 1,
            ..Config::default()
        };
        let mut duel = Duel::new(engine, config);
        if self.well_begun {
            duel.uni(CONTROL);
        }
        if engine == Side::Client {
            duel.world.get("/");
        }
        wait(&mut duel, 30);
        let mut streams = Vec::new();
        for step in self.steps.into_iter().take(MAX_STEPS) {
            act(&mut duel, engine, &mut streams, step);
        }
        wait(&mut duel, 100);
        if let Some(fault) = duel.world.side(engine).engine.fault() {
            assert!(fault.ends_connection);
            assert!(fault.code.name().is_some());
        }
    }
}

fn wait(duel: &mut Duel, turns: u32) {
    for _ in 0..turns {
        duel.run(|_| true);
        duel.world.pair.advance(millis(1));
    }
}

fn act(duel: &mut Duel, engine: Side, streams: &mut Vec<StreamId>, step: Step) {
    let chosen = |nth: u8| {
        let count = streams.len().max(1);
        streams.get(usize::from(nth) % count).copied()
    };
    let quic = duel.quic();
    match step {
        Step::Uni(kind, bytes) => {
            if let Some(id) = quic.open(Dir::Uni) {
                let _ = quic.send_stream(id).write(&[&[kind], &bytes[..]].concat());
                streams.push(id);
            }
        }
        Step::Bidi(bytes, fin) => open(duel, engine, streams, &bytes, fin),
        Step::Request(rest) => open(duel, engine, streams, &[get(), rest].concat(), false),
        Step::Datagram(bytes) => drop(quic.send_datagram(bytes.into())),
        Step::More(nth, bytes) => {
            if let Some(id) = chosen(nth) {
                let _ = quic.send_stream(id).write(&bytes);
            }
        }
        Step::Finish(nth) => {
            if let Some(id) = chosen(nth) {
                let _ = quic.send_stream(id).finish();
            }
        }
        Step::Reset(nth) => {
            if let Some(id) = chosen(nth) {
                let _ = quic.send_stream(id).reset(0x10c);
            }
        }
        Step::Stop(nth) => {
            if let Some(id) = chosen(nth) {
                let _ = quic.recv_stream(id).stop(0x10c);
            }
        }
        Step::Wait => wait(duel, 30),
    }
}

fn open(duel: &mut Duel, engine: Side, streams: &mut Vec<StreamId>, bytes: &[u8], fin: bool) {
    let quic = duel.quic();
    let id = match engine {
        Side::Server => quic.open(Dir::Bi),
        Side::Client => quic.accept(Dir::Bi),
    };
    let Some(id) = id else { return };
    let _ = quic.send_stream(id).write(bytes);
    if fin {
        let _ = quic.send_stream(id).finish();
    }
    streams.push(id);
}
