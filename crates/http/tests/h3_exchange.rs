//! Requests and responses from end to end (RFC 9114, section 4).

#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod support;

use swiftwater_sim::Pair;

use support::{World, content, link};

#[test]
fn a_request_is_answered() {
    let mut world = World::new(Pair::builder().link(link(10, 20)));
    world.serve(|path| path.as_bytes().to_vec());
    world.connect();
    let id = world.get("/index.html?x=1");
    assert!(world.settle(&[id]));
    let request = world.server.messages[&id].request.as_ref().unwrap();
    assert_eq!(request.uri, "https://example.org/index.html?x=1");
    assert_eq!(request.method, "GET");
    assert_eq!(request.version, http::Version::HTTP_3);
    let answer = &world.client.messages[&id];
    assert_eq!(answer.status(), Some(200));
    assert_eq!(answer.body, b"/index.html");
}

#[test]
fn content_goes_both_ways_over_lossy_links() {
    for seed in 1..4 {
        let lossy = link(20, 15).loss(swiftwater_link::LossModel::Bernoulli(0.03));
        let mut world = World::new(Pair::builder().seed(seed).link(lossy));
        world.serve(|_| content(2, 700_000));
        world.connect();
        let id = world.request(
            &support::head("POST", "/up", &[]),
            Some(content(1, 300_000)),
        );
        assert!(world.settle(&[id]));
        assert!(world.run(|world| world.server.messages[&id].complete));
        assert_eq!(world.server.messages[&id].body, content(1, 300_000));
        assert_eq!(world.client.messages[&id].body, content(2, 700_000));
    }
}
