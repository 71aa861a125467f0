//! Requests as early data, and the settings that they rely on (RFC 9114, section 7.2.4.2).

use std::sync::Arc;

use swiftwater_http::h3::{Code, Config, Event, Settings};
use swiftwater_quic::EarlyData;
use swiftwater_quic::crypto::{ClientCrypto, ServerCrypto};
use swiftwater_sim::{Pair, PairBuilder};
use swiftwater_tls::MemorySessionStore;
use swiftwater_tls::null::{NullClient, NullServer};
use swiftwater_units::Side;

use crate::support::{World, content, link};

/// State that both ends keep from one connection to the next.
struct Memory {
    client: Arc<dyn ClientCrypto>,
    server: Arc<dyn ServerCrypto>,
}

impl Memory {
    fn new() -> Self {
        let store = Arc::new(MemorySessionStore::default());
        let client = NullClient::new(["h3"]).with_early_data(true);
        let server = NullServer::new(["h3"])
            .with_ticket(true)
            .with_early_data(true);
        Self {
            client: Arc::new(client.with_sessions(store as _)),
            server: Arc::new(server),
        }
    }

    fn visit(&self, seed: u64, early: EarlyData) -> PairBuilder {
        Pair::builder()
            .seed(seed)
            .link(link(10, 50))
            .crypto(Arc::clone(&self.client), Arc::clone(&self.server))
            .server_settings(move |server| server.early_data = early)
    }

    /// The first visit; the server's settings, as a client keeps them.
    fn meet(&self, server: Config) -> Vec<u8> {
        let builder = self.visit(1, EarlyData::Accept);
        let mut world = World::with(builder, Config::default(), server);
        world.serve(|_| content(1, 10));
        world.connect();
        let id = world.get("/");
        assert!(world.settle(&[id]));
        assert!(!world.server.messages[&id].early);
        world.run_for(crate::support::millis(500));
        world.client.engine.peer_settings().unwrap().to_bytes()
    }
}

fn returning(settings: &[u8]) -> Config {
    Config {
        remembered: Some(Settings::from_bytes(settings).unwrap()),
        ..Config::default()
    }
}

#[test]
fn a_request_goes_with_the_first_flight() {
    let memory = Memory::new();
    let settings = memory.meet(Config::default());
    let builder = memory.visit(2, EarlyData::Accept);
    let mut world = World::with(builder, returning(&settings), Config::default());
    world.serve(|_| content(2, 300));
    let begun = world.pair.now();
    assert!(world.run(|world| {
        let ready = |event: &Event| matches!(event, Event::Ready);
        world.client.events.iter().any(ready)
    }));
    assert_eq!(world.pair.now(), begun, "ready at once");
    let id = world.get("/");
    assert!(world.settle(&[id]));
    assert_eq!(world.client.messages[&id].body, content(2, 300));
    assert!(world.server.messages[&id].early);
    // One round trip of 100 ms, not two.
    let took = world.pair.now().checked_since(begun).unwrap();
    assert!(took.as_millis() < 150, "{took:?}");
}

#[test]
fn a_rejected_request_is_sent_anew() {
    let memory = Memory::new();
    let settings = memory.meet(Config::default());
    let builder = memory.visit(2, EarlyData::Reject);
    let smaller = Config {
        qpack_decoder_table: 0,
        datagrams: false,
        ..Config::default()
    };
    let mut world = World::with(builder, returning(&settings), smaller);
    world.serve(|_| content(2, 3000));
    world.turn();
    let id = world.get("/");
    assert!(world.settle(&[id]));
    assert_eq!(world.client.messages[&id].body, content(2, 3000));
    assert!(!world.server.messages[&id].early);
}

#[test]
fn a_server_that_takes_early_data_keeps_its_settings() {
    let smaller_section = {
        let mut config = Config::default();
        config.limits.max_field_section_size = 1000;
        config
    };
    let no_datagrams = Config {
        datagrams: false,
        ..Config::default()
    };
    let no_connect = Config {
        enable_connect_protocol: false,
        ..Config::default()
    };
    let less_waiting = Config {
        qpack_blocked_streams: 3,
        ..Config::default()
    };
    let other_table = Config {
        qpack_decoder_table: 8192,
        ..Config::default()
    };
    let broken = Code::SETTINGS_ERROR;
    for (server, code) in [
        (smaller_section, broken),
        (no_datagrams, broken),
        (no_connect, broken),
        (less_waiting, broken),
        (other_table, Code::QPACK_DECODER_STREAM_ERROR),
    ] {
        let memory = Memory::new();
        let settings = memory.meet(Config::default());
        let builder = memory.visit(2, EarlyData::Accept);
        let mut world = World::with(builder, returning(&settings), server);
        world.turn();
        world.get("/");
        assert_eq!(world.run_to_close(Side::Client), Some(code), "{server:?}");
    }
}

#[test]
fn settings_that_grew_are_fine() {
    let memory = Memory::new();
    let small = Config {
        qpack_decoder_table: 0,
        qpack_blocked_streams: 0,
        ..Config::default()
    };
    let settings = memory.meet(small);
    let builder = memory.visit(2, EarlyData::Accept);
    let mut world = World::with(builder, returning(&settings), Config::default());
    world.serve(|_| content(2, 10));
    world.turn();
    let id = world.get("/");
    assert!(world.settle(&[id]));
    let next = world.get("/");
    assert!(world.settle(&[next]));
    assert_eq!(world.client.engine.fault(), None);
}
