//! The keys of video on demand: defaults are those of the papers, and a bad value is one clear error.

use std::time::Duration;

use crate::texts::{dumbbell, load, load_with};
use swiftwater_lab::scenario::{App, LoadOptions};
use swiftwater_media::streaming::adaptation::AdaptationKind;
use swiftwater_media::streaming::predictor::PredictorKind;
use swiftwater_media::streaming::{FeedSpec, Ladder};

/// A scenario with one flow of these keys.
fn flow(keys: &str) -> String {
    dumbbell("", "").replace("app = \"bulk\"", keys)
}

fn app(keys: &str) -> App {
    load(&flow(keys)).cases[0].setup.flows[0].app.clone()
}

#[track_caller]
fn refused(keys: &str, part: &str) {
    let error = load_with(&flow(keys), &LoadOptions::default()).expect_err("invalid");
    let text = error.to_string();
    assert!(text.contains(part), "`{part}` is not in `{text}`");
    assert_eq!(text.lines().count(), 1, "{text}");
}

#[test]
fn chunked_video_defaults_to_the_evaluation_of_chorus() {
    let App::ChunkedVideo(spec) = app("app = \"chunked-video\"") else {
        panic!("another application");
    };
    assert_eq!(spec.ladder, Ladder::chorus());
    assert_eq!(spec.chunk, Duration::from_secs(4));
    assert_eq!(spec.abr, AdaptationKind::Mpc);
    assert_eq!(spec.player.session, Some(Duration::from_secs(300)));
}

#[test]
fn keys_of_both_players_are_read() {
    let keys =
        "app = \"chunked-video\"\nabr = \"bola\"\npredictor = \"recv-rate\"\nsession = \"9s\"";
    let App::ChunkedVideo(spec) = app(keys) else {
        panic!("another application");
    };
    assert_eq!(spec.abr, AdaptationKind::Bola);
    assert_eq!(spec.predictor, PredictorKind::ReceiveRate);
    assert_eq!(spec.player.session, Some(Duration::from_secs(9)));
    let App::ShortVideo(spec) = app("app = \"short-video\"\nvideos = 3\nparallel = 2") else {
        panic!("another application");
    };
    assert_eq!((spec.feed.videos, spec.player.parallel), (3, 2));
    assert_eq!(
        spec.feed.swiped.to_bits(),
        FeedSpec::default().swiped.to_bits()
    );
}

#[test]
fn bad_values_are_one_clear_error() {
    refused("app = \"chunked-video\"\nabr = \"mpx\"", "mpc");
    refused(
        "app = \"chunked-video\"\nladder = \"5mbit,1mbit\"",
        "ladder",
    );
    refused(
        "app = \"chunked-video\"\nvideos = 3",
        "unknown key `videos`",
    );
    refused("app = \"short-video\"\nswiped = 2.0", "swiped");
}

#[test]
fn only_viewers_of_video_on_demand_migrate() {
    let paths = "[[path]]\nrate = \"8mbit\"\n[[path]]\nrate = \"8mbit\"\n";
    let with = |app: &str| {
        let flow = format!("[[flow]]\napp = \"{app}\"\ncc = \"cubic\"\nmigration = true\n");
        let run = "title = \"t\"\n[run]\nduration = \"9s\"\nrtt = \"30ms\"\n";
        load_with(&format!("{run}{paths}{flow}"), &LoadOptions::default())
    };
    let experiment = with("short-video").expect("viewers migrate");
    let flow = &experiment.cases[0].setup.flows[0];
    assert!(
        !flow
            .paths
            .as_ref()
            .expect("paths in parallel")
            .are_several()
    );
    let error = with("bulk").expect_err("a sender of bulk data does not");
    assert!(error.to_string().contains("migration"), "{error}");
    refused("app = \"chunked-video\"\nmigration = true", "migration");
}
