//! Viewers of video on demand, over one link and over paths in parallel.

use std::fmt::Write as _;

use crate::support::{Measured, assert_near};
use crate::texts::load;

/// A viewer over paths of 30 ms at these rates in Mbit/s.
fn scenario(rates: &[u32], flow: &str) -> String {
    let mut text = "title = \"t\"\n[run]\nduration = \"200s\"\nrtt = \"30ms\"\n".to_owned();
    for (index, rate) in rates.iter().enumerate() {
        let _ = write!(
            text,
            "[[path]]\nname = \"p{index}\"\nrate = \"{rate}mbit\"\nbuffer = \"3bdp\"\n"
        );
    }
    text + "[[flow]]\nname = \"viewer\"\ncc = \"cubic\"\n" + flow
}

const CHUNKED: &str = "app = \"chunked-video\"\nsession = \"60s\"\n";
const SHORT: &str = "app = \"short-video\"\nvideos = 6\n";

fn run(rates: &[u32], flow: &str) -> Measured {
    Measured::new(&load(&scenario(rates, flow)).cases[0].setup, 1)
}

#[test]
fn a_viewer_gets_the_bitrate_that_the_link_carries() {
    let fast = run(&[60], CHUNKED);
    assert_eq!(fast.value("intact").to_bits(), 1.0_f64.to_bits());
    // Of 16 Mbit/s at most, after the first chunks.
    assert!(fast.value("viewer.bitrate_mbps") > 12.0);
    assert_eq!(fast.value("viewer.stall_ms").to_bits(), 0.0_f64.to_bits());
    let slow = run(&[4], CHUNKED);
    assert!((1.0..=4.0).contains(&slow.value("viewer.bitrate_mbps")));
    assert!(slow.value("viewer.qoe") < fast.value("viewer.qoe"));
    // A first chunk of about 500 kB at 4 Mbit/s, and the handshake.
    assert!((300.0..=3000.0).contains(&slow.value("viewer.first_frame_mean_ms")));
}

#[test]
fn the_score_is_made_of_bitrates_stalls_and_changes() {
    let measured = run(&[4], CHUNKED);
    let chunks = measured.value("viewer.requests");
    let score = chunks * measured.value("viewer.bitrate_mbps")
        - 16e-3 * measured.value("viewer.stall_ms")
        - (chunks - 1.0) * measured.value("viewer.switching_mbps");
    assert_near(measured.value("viewer.qoe"), score, 1e-9);
}

#[test]
fn a_run_is_over_when_the_viewer_leaves() {
    let session = load(&scenario(&[20], CHUNKED));
    let measured = Measured::new(&session.cases[0].setup, 1);
    assert_near(measured.outcome.simulated_s, 60.0, 0.01);
}

#[test]
fn two_paths_carry_more_than_one_of_them() {
    let one = run(&[6], CHUNKED);
    let both = run(&[6, 6], CHUNKED);
    let ratio = both.value("viewer.bitrate_mbps") / one.value("viewer.bitrate_mbps");
    assert!(ratio > 1.3, "{ratio}");
}

#[test]
fn the_same_seed_gives_the_same_session() {
    let text = "scheduler = \"chorus\"\nrecovery = \"chorus\"\nfeedback = \"chorus\"\n\
                predictor = \"recv-rate\"\n";
    let flow = CHUNKED.to_owned() + text;
    assert_eq!(run(&[8, 4], &flow).outcome, run(&[8, 4], &flow).outcome);
}

#[test]
fn what_the_player_reports_limits_copies() {
    let with = |more: &str| {
        let recovery = "recovery = \"xlink-paper\"\n";
        run(&[20, 10], &format!("{CHUNKED}{recovery}{more}")).value("viewer.copies_share")
    };
    let (reported, silent) = (with(""), with("viewer_feedback = \"none\"\n"));
    assert!(silent > 0.0, "{silent}");
    assert!(reported < silent / 2.0, "{reported} of {silent}");
}

#[test]
fn what_the_server_reports_changes_predictions() {
    let with = |feedback: &str| {
        let text = format!(
            "{CHUNKED}predictor = \"recv-rate\"\nscheduler = \"chorus\"\nfeedback = \"{feedback}\"\n"
        );
        run(&[20, 5], &text).value("viewer.prediction_error")
    };
    assert_ne!(with("chorus").to_bits(), with("none").to_bits());
}

#[test]
fn a_feed_is_watched_video_by_video() {
    let measured = run(&[20], SHORT);
    assert_eq!(measured.value("intact").to_bits(), 1.0_f64.to_bits());
    // All, but for those that were left at once.
    assert!((4.0..=6.0).contains(&measured.value("viewer.videos_seen")));
    // 128 KiB take 52 ms at 20 Mbit/s, and a round trip.
    assert!((50.0..=400.0).contains(&measured.value("viewer.first_frame_p99_ms")));
    // Half of the videos are left early, with up to 10 s downloaded ahead.
    assert!((0.01..=0.7).contains(&measured.value("viewer.unplayed_share")));
    assert!(measured.value("viewer.requests") > 30.0);
}

/// Two paths of 8 Mbit/s, of which the first one carries nothing from 20 s on.
fn with_a_cut(flow: &str) -> Measured {
    let cut = "[[change]]\npath = \"p0\"\nwhat = \"cut\"\nat = \"20s\"\n";
    let text = scenario(&[8, 8], flow).replace("[[flow]]", &format!("{cut}[[flow]]"));
    Measured::new(&load(&text).cases[0].setup, 1)
}

#[test]
fn a_viewer_that_migrates_leaves_a_path_that_is_cut() {
    let both = "paths = [\"p0\", \"p1\"]\nmigration = true\n";
    let moved = with_a_cut(&format!("{CHUNKED}{both}"));
    let stayed = with_a_cut(&format!("{CHUNKED}paths = [\"p0\"]\n"));
    assert_eq!(moved.value("intact").to_bits(), 1.0_f64.to_bits());
    assert!(moved.value("p1.utilisation") > 0.1);
    let (moved, stayed) = (
        moved.value("viewer.requests"),
        stayed.value("viewer.requests"),
    );
    assert!(moved >= 15.0 && stayed <= 14.0, "{moved} and {stayed}");
}

#[test]
fn a_viewer_migrates_only_from_a_silent_path() {
    let measured = run(&[8, 8], &format!("{CHUNKED}migration = true\n"));
    assert_eq!(
        measured.value("p1.utilisation").to_bits(),
        0.0_f64.to_bits()
    );
}

#[test]
fn quantiles_of_the_buffer_are_in_order_and_below_its_limit() {
    let quantiles = |rate| {
        let measured = run(&[rate], CHUNKED);
        ["p5", "p20", "p50"].map(|name| measured.value(&format!("viewer.buffer_{name}_ms")))
    };
    let (slow, fast) = (quantiles(2), quantiles(60));
    assert!(slow.is_sorted() && fast.is_sorted(), "{slow:?}, {fast:?}");
    // The buffer is filled up to 30 s, and one chunk of 4 s.
    assert!(
        fast[2] <= 34_000.0 && fast[1] > slow[1],
        "{slow:?}, {fast:?}"
    );
}

#[test]
fn announced_shares_are_compared_with_what_came() {
    let chorus = "scheduler = \"chorus\"\nrecovery = \"chorus\"\nfeedback = \"chorus\"\n";
    let measured = run(&[20, 5], &format!("{CHUNKED}{chorus}"));
    let (mean, median) = (
        measured.value("viewer.share_error_mean"),
        measured.value("viewer.share_error_p50"),
    );
    assert!((0.0..0.3).contains(&mean) && (0.0..0.3).contains(&median));
    assert!(mean > 0.0);
    let silent = run(&[20, 5], CHUNKED);
    assert_eq!(silent.get("viewer.share_error_mean"), None);
}
