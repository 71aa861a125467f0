//! Random operations between two engines: no byte of content is lost, doubled or out of order. And
//! random bytes of a peer: an engine never panics.

use crate::support;

use http::HeaderMap;
use proptest::collection::vec;
use proptest::prelude::*;
use swiftwater_http::h3::{Code, Config, Priority};
use swiftwater_link::LossModel;
use swiftwater_sim::Pair;
use swiftwater_units::{ByteCount, Side, StreamId};

use support::peer::{CONTROL, Duel};
use support::{World, content, head, link, millis, response};

/// What the applications do.
#[derive(Clone, Copy, Debug)]
enum Op {
    /// A request of so many bytes, whose answer has so many; with trailers or not.
    Request {
        up: usize,
        down: usize,
        trailers: bool,
    },
    /// The client cancels one of its requests.
    Cancel(prop::sample::Index),
    /// The server cancels one.
    Abort(prop::sample::Index),
    /// A side stops or begins to read.
    Lazy(bool, bool),
    /// A request's priority changes, at the client or at the server.
    Prioritize(prop::sample::Index, u8, bool),
    Wait(u64),
}

fn op() -> impl Strategy<Value = Op> {
    let len = prop_oneof![0..50_usize, 0..70_000_usize];
    prop_oneof![
        6 => (len.clone(), len, any::<bool>())
            .prop_map(|(up, down, trailers)| Op::Request { up, down, trailers }),
        1 => any::<prop::sample::Index>().prop_map(Op::Cancel),
        1 => any::<prop::sample::Index>().prop_map(Op::Abort),
        1 => any::<(bool, bool)>().prop_map(|(client, server)| Op::Lazy(client, server)),
        1 => (any::<prop::sample::Index>(), 0..8_u8, any::<bool>())
            .prop_map(|(index, urgency, server)| Op::Prioritize(index, urgency, server)),
        3 => (1..200_u64).prop_map(Op::Wait),
    ]
}

/// The ends of a run and its requests.
struct Run {
    world: World,
    asked: Vec<(StreamId, usize, usize, bool)>,
}

fn trailers() -> HeaderMap {
    let mut trailers = HeaderMap::new();
    trailers.insert("x-sum", "1234567890".parse().unwrap());
    trailers
}

impl Run {
    fn new(seed: u64, loss: f64, window: u64) -> Self {
        let builder = Pair::builder()
            .seed(seed)
            .link(link(20, 10).loss(LossModel::Bernoulli(loss)))
            .both_configs(move |config| {
                config.max_concurrent_bidi_streams = 200;
                config.stream_receive_window = ByteCount::new(window);
                config.max_stream_receive_window = ByteCount::new(window);
                config.send_window = ByteCount::new(4 * window);
                // Ends a side that missed the other's close.
                config.max_idle_timeout = Some(millis(60_000));
            });
        let mut world = World::new(builder);
        world.answer(|server, pair, id| {
            let message = &server.messages[&id];
            let path = message.request.as_ref().unwrap().uri.path()[1..].to_owned();
            let (down, with_trailers) = path.split_once('/').unwrap();
            let body = content(1, down.parse().unwrap());
            let now = pair.now();
            let quic = pair.server();
            // It may have been cancelled already.
            if server
                .engine
                .respond(now, quic, id, &response(200), false)
                .is_ok()
            {
                let trailers = (with_trailers == "true").then(trailers);
                server.send(pair, id, body, trailers);
            }
        });
        world.connect();
        Self {
            world,
            asked: Vec::new(),
        }
    }

    fn act(&mut self, op: Op) {
        let world = &mut self.world;
        let now = world.pair.now();
        let pick = |index: prop::sample::Index| Some(index.get(&self.asked)).map(|each| each.0);
        match op {
            Op::Request {
                up,
                down,
                trailers: with,
            } => {
                let head = head("POST", &format!("/{down}/{with}"), &[]);
                let quic = world.pair.client();
                let engine = &mut world.client.engine;
                if let Ok(id) = engine.send_request(now, quic, &head, false) {
                    let trailers = with.then(trailers);
                    world
                        .client
                        .send(&mut world.pair, id, content(2, up), trailers);
                    self.asked.push((id, up, down, with));
                }
            }
            Op::Cancel(index) if !self.asked.is_empty() => {
                let id = pick(index).unwrap();
                let quic = world.pair.client();
                world
                    .client
                    .engine
                    .cancel(now, quic, id, Code::REQUEST_CANCELLED);
                world.client.messages.entry(id).or_default().reset = Some((Code(0), false));
            }
            Op::Abort(index) if !self.asked.is_empty() => {
                let id = pick(index).unwrap();
                let quic = world.pair.server();
                world
                    .server
                    .engine
                    .cancel(now, quic, id, Code::INTERNAL_ERROR);
                world.server.messages.entry(id).or_default().reset = Some((Code(0), false));
            }
            Op::Prioritize(index, urgency, server) if !self.asked.is_empty() => {
                let id = pick(index).unwrap();
                let priority = Priority {
                    urgency,
                    incremental: urgency % 2 == 0,
                };
                let side = if server { Side::Server } else { Side::Client };
                let quic = world.pair.connection(side).unwrap();
                let host = if server {
                    &mut world.server
                } else {
                    &mut world.client
                };
                // Fails where the request is over.
                let _ = host.engine.set_priority(now, quic, id, priority);
            }
            Op::Cancel(_) | Op::Abort(_) | Op::Prioritize(..) => {}
            Op::Lazy(client, server) => {
                self.set_lazy(client, server);
            }
            Op::Wait(time) => world.run_for(millis(time)),
        }
    }

    fn set_lazy(&mut self, client: bool, server: bool) {
        for (side, lazy) in [(Side::Client, client), (Side::Server, server)] {
            let host = match side {
                Side::Client => &mut self.world.client,
                Side::Server => &mut self.world.server,
            };
            host.lazy = lazy;
            if !lazy {
                for id in host.heads.clone() {
                    host.pull(&mut self.world.pair, id);
                }
            }
        }
    }

    /// Everything that was not cancelled arrives; nothing incorrect of the rest.
    fn check(mut self, shutdown: Option<Side>) {
        self.set_lazy(false, false);
        let asked = self.asked.clone();
        let now = self.world.pair.now();
        if let Some(side) = shutdown {
            let quic = self.world.pair.connection(side).unwrap();
            let host = match side {
                Side::Client => &mut self.world.client,
                Side::Server => &mut self.world.server,
            };
            host.engine.shutdown(now, quic);
        }
        let done = self.world.run(|world| {
            let closed = world.pair.client().is_closed() && world.pair.server().is_closed();
            world.client.engine.open_requests() == 0
                && world.server.engine.open_requests() == 0
                && (closed || shutdown.is_none())
        });
        assert!(done, "requests hang");
        for (id, up, down, with) in asked {
            let given_up = [&self.world.client, &self.world.server]
                .into_iter()
                .any(|host| {
                    host.messages
                        .get(&id)
                        .is_some_and(|message| message.reset.is_some())
                });
            for (host, nth, len) in [(&self.world.client, 1, down), (&self.world.server, 2, up)] {
                let Some(message) = host.messages.get(&id) else {
                    // A server that goes waits for the losses of some round trips, not of any number.
                    let gone = shutdown == Some(Side::Server);
                    assert!(given_up || gone, "{id:?} never came");
                    continue;
                };
                assert!(content(nth, len).starts_with(&message.body));
                if message.complete {
                    assert_eq!(message.body.len(), len);
                    assert_eq!(message.trailers.is_some(), with);
                } else {
                    assert!(given_up, "{id:?} is incomplete");
                }
            }
        }
        assert_eq!(self.world.client.engine.fault(), None);
        assert_eq!(self.world.server.engine.fault(), None);
    }
}

/// What a raw peer does.
#[derive(Clone, Debug)]
enum Noise {
    Uni(u8, Vec<u8>),
    Bidi(Vec<u8>, bool),
    Datagram(Vec<u8>),
    More(prop::sample::Index, Vec<u8>),
    Reset(prop::sample::Index),
    Stop(prop::sample::Index),
    Wait,
}

/// Bytes that look like frames more often than not.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let frame = (prop_oneof![0..0x0f_u8, Just(0x21)], vec(any::<u8>(), 0..40)).prop_map(
        |(kind, payload)| {
            let mut out = vec![kind, payload.len() as u8];
            out.extend(payload);
            out
        },
    );
    let request = Just(support::peer::get());
    prop_oneof![
        vec(prop_oneof![frame, request], 0..5).prop_map(|frames| frames.concat()),
        vec(any::<u8>(), 0..60),
    ]
}

fn noise() -> impl Strategy<Value = Noise> {
    let index = any::<prop::sample::Index>;
    prop_oneof![
        (0..6_u8, bytes()).prop_map(|(kind, bytes)| Noise::Uni(kind, bytes)),
        (bytes(), any::<bool>()).prop_map(|(bytes, fin)| Noise::Bidi(bytes, fin)),
        vec(any::<u8>(), 0..20).prop_map(Noise::Datagram),
        (index(), bytes()).prop_map(|(index, bytes)| Noise::More(index, bytes)),
        index().prop_map(Noise::Reset),
        index().prop_map(Noise::Stop),
        Just(Noise::Wait),
    ]
}

fn make_noise(engine: Side, well_begun: bool, noise: Vec<Noise>) {
    let config = Config {
        webtransport_sessions: 1,
        ..Config::default()
    };
    let mut duel = Duel::new(engine, config);
    if well_begun {
        duel.uni(CONTROL);
    }
    if engine == Side::Client {
        duel.world.get("/");
    }
    duel.run(|_| true);
    let mut streams = Vec::new();
    for each in noise {
        let quic = duel.quic();
        match each {
            Noise::Uni(kind, bytes) => {
                if let Some(id) = quic.open(swiftwater_units::Dir::Uni) {
                    let _ = quic.send_stream(id).write(&[&[kind], &bytes[..]].concat());
                    streams.push(id);
                }
            }
            Noise::Bidi(bytes, fin) => {
                let id = match engine {
                    Side::Server => quic.open(swiftwater_units::Dir::Bi),
                    Side::Client => quic.accept(swiftwater_units::Dir::Bi),
                };
                if let Some(id) = id {
                    let _ = quic.send_stream(id).write(&bytes);
                    if fin {
                        let _ = quic.send_stream(id).finish();
                    }
                    streams.push(id);
                }
            }
            Noise::Datagram(bytes) => drop(quic.send_datagram(bytes.into())),
            Noise::More(index, bytes) if !streams.is_empty() => {
                let _ = quic.send_stream(*index.get(&streams)).write(&bytes);
            }
            Noise::Reset(index) if !streams.is_empty() => {
                let _ = quic.send_stream(*index.get(&streams)).reset(0x10c);
            }
            Noise::Stop(index) if !streams.is_empty() => {
                let _ = quic.recv_stream(*index.get(&streams)).stop(0x10c);
            }
            Noise::Wait => {
                for _ in 0..30 {
                    duel.run(|_| true);
                    duel.world.pair.advance(millis(1));
                }
            }
            _ => {}
        }
    }
    for _ in 0..100 {
        duel.run(|_| true);
        duel.world.pair.advance(millis(1));
    }
    // What closed the connection, if anything, was a fault of the peer's that has a name.
    if let Some(fault) = duel.world.side(engine).engine.fault() {
        assert!(fault.ends_connection);
        assert!(fault.code.name().is_some());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn no_content_is_lost(
        seed in any::<u64>(),
        loss in prop_oneof![Just(0.0), 0.0..0.05],
        window in prop_oneof![300..5000_u64, Just(1 << 20)],
        ops in vec(op(), 1..40),
        shutdown in prop_oneof![Just(None), Just(Some(Side::Client)), Just(Some(Side::Server))],
    ) {
        let mut run = Run::new(seed, loss, window);
        for op in ops {
            run.act(op);
        }
        run.check(shutdown);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn noise_does_no_harm(
        server in any::<bool>(),
        well_begun in any::<bool>(),
        noise in vec(noise(), 0..20),
    ) {
        let engine = if server { Side::Server } else { Side::Client };
        make_noise(engine, well_begun, noise);
    }
}
