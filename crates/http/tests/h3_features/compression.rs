//! Field sections that wait for the QPACK table (RFC 9204, section 2.1.2), and what the table saves.

use swiftwater_http::h3::frame::FrameType;
use swiftwater_http::h3::{Code, Config};
use swiftwater_sim::Pair;
use swiftwater_units::Side;

use crate::support::peer::{Duel, frame, get};
use crate::support::{World, head, link};

/// GET https://a/ with the first entry of the dynamic table, which has to be there.
const WAITING: [u8; 9] = [0x02, 0x00, 0xd1, 0xd7, 0x50, 0x01, b'a', 0xc1, 0x80];
/// A table of 4096 bytes with `x: y` in it.
const INSERTION: [u8; 8] = [0x02, 0x3f, 0xe1, 0x1f, 0x41, b'x', 0x01, b'y'];

#[test]
fn a_head_waits_for_the_table() {
    let mut duel = Duel::ready(Side::Server, Config::default());
    let content = frame(FrameType::Data, b"content");
    let id = duel.bidi(
        &[frame(FrameType::Headers, &WAITING), content].concat(),
        true,
    );
    duel.survives();
    assert!(duel.world.server.messages.is_empty());
    // Others don't wait.
    let other = duel.bidi(&get(), true);
    assert!(duel.run(|duel| duel.world.server.messages.contains_key(&other)));
    duel.uni(&INSERTION);
    assert!(duel.run(|duel| {
        let message = duel.world.server.messages.get(&id);
        message.is_some_and(|message| message.complete)
    }));
    let message = &duel.world.server.messages[&id];
    assert_eq!(message.request.as_ref().unwrap().headers["x"], "y");
    assert_eq!(message.body, b"content");
    assert_eq!(duel.world.server.engine.stats().sections_blocked, 1);
}

#[test]
fn trailers_wait_for_the_table() {
    let mut duel = Duel::ready(Side::Server, Config::default());
    let trailers = frame(FrameType::Headers, &[0x02, 0x00, 0x80]);
    let content = frame(FrameType::Data, b"content");
    let id = duel.bidi(&[get(), content, trailers].concat(), true);
    duel.survives();
    assert!(!duel.world.server.messages[&id].complete);
    duel.uni(&INSERTION);
    assert!(duel.run(|duel| duel.world.server.messages[&id].complete));
    let message = &duel.world.server.messages[&id];
    assert_eq!(message.trailers.as_ref().unwrap()["x"], "y");
    assert_eq!(message.body, b"content");
}

#[test]
fn a_request_that_is_cancelled_waits_no_more() {
    let mut duel = Duel::ready(Side::Server, Config::default());
    let id = duel.bidi(&frame(FrameType::Headers, &WAITING), false);
    duel.survives();
    let code = Code::REQUEST_CANCELLED.0;
    duel.quic().recv_stream(id).stop(code).unwrap();
    duel.quic().send_stream(id).reset(code).unwrap();
    assert!(duel.run(|duel| duel.world.server.engine.open_requests() == 0));
    duel.uni(&INSERTION);
    duel.survives();
    assert!(duel.world.server.messages.is_empty());
}

#[test]
fn repeated_fields_cost_little_also_over_lossy_links() {
    let lossy = || link(10, 20).loss(swiftwater_link::LossModel::Bernoulli(0.05));
    let mut sent = Vec::new();
    for table in [0, 4096] {
        let config = Config {
            qpack_decoder_table: table,
            ..Config::default()
        };
        let builder = Pair::builder().seed(3).link(lossy());
        let mut world = World::with(builder, config, config);
        world.serve(|_| Vec::new());
        world.connect();
        let agent = "a user agent whose name is long enough to be worth an entry of the table";
        let headers = [
            ("user-agent", agent),
            ("accept-language", "en-GB,en;q=0.7,de;q=0.3"),
        ];
        for nth in 0..50 {
            let id = world.request(&head("GET", &format!("/{nth}"), &headers), None);
            assert!(world.settle(&[id]));
            let request = world.server.messages[&id].request.as_ref().unwrap();
            assert_eq!(request.headers["user-agent"], agent);
            assert_eq!(request.uri.path(), format!("/{nth}"));
        }
        sent.push(world.pair.stats(Side::Client).stream_bytes_sent.get());
    }
    assert!(sent[1] < sent[0] / 2, "{sent:?}");
}
