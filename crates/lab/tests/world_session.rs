//! Sessions: video over datagrams with loss protection schemes, run by a separate driver.

use crate::texts::load;
use swiftwater_lab::scenario::{Experiment, Setup};
use swiftwater_lab::world::{self, RunOutcome};

/// A session of 4 Mbit/s over 12 Mbit/s with a round trip of 30 ms.
fn scenario(loss: &str, keys: &str) -> Experiment {
    load(&format!(
        "title = \"t\"\n[run]\nduration = \"20s\"\nrtt = \"30ms\"\n\
         [[link]]\nrate = \"12mbit\"\nbuffer = \"100p\"\nloss = \"{loss}\"\n\
         [[flow]]\nname = \"call\"\napp = \"session\"\nsource = \"cbr:4mbit,fps=60\"\n{keys}\n"
    ))
}

fn value(setup: &Setup, outcome: &RunOutcome, name: &str) -> Option<f64> {
    let names = world::measures(setup);
    assert_eq!(names.len(), outcome.measures.len());
    let place = names.iter().position(|each| each == name);
    outcome.measures[place.unwrap_or_else(|| panic!("no measure {name} in {names:?}"))]
}

/// A measure of a session that must have a value.
fn measure(loss: &str, keys: &str, name: &str) -> f64 {
    let experiment = scenario(loss, keys);
    let setup = &experiment.cases[0].setup;
    let outcome = world::simulate(setup, 1).expect("a valid setup");
    value(setup, &outcome, name).unwrap_or_else(|| panic!("{name} has no value"))
}

#[test]
fn without_loss_every_frame_meets_its_deadline_and_nothing_is_redundant() {
    for scheme in ["rtx", "hairpin:lambda=1e-4", "autorec-paper", "webrtc-now"] {
        let keys = format!("scheme = \"{scheme}\"");
        let experiment = scenario("0%", &keys);
        let setup = &experiment.cases[0].setup;
        let outcome = world::simulate(setup, 1).expect("a valid setup");
        let call = |name: &str| value(setup, &outcome, &format!("call.{name}"));
        assert_eq!(call("dmr"), Some(0.0), "{scheme}");
        assert_eq!(call("dmr_per_second"), Some(0.0), "{scheme}");
        assert_eq!(call("frozen_share"), Some(0.0), "{scheme}");
        assert_eq!(call("bwc"), Some(0.0), "{scheme}");
        assert_eq!(call("lost_share"), Some(0.0), "{scheme}");
        assert_eq!(call("recovery_latency_ms"), None, "{scheme}");
        assert_eq!(call("frames_never"), Some(0.0), "{scheme}");
        // Half a round trip, and six packets at 12 Mbit/s.
        let delay = call("frame_delay_p50_ms").expect("frames came");
        assert!((20.0..22.0).contains(&delay), "{delay}");
        assert_eq!(call("frame_delay_max_ms"), call("frame_delay_p99_ms"));
        assert_eq!(call("startup_ms"), call("frame_delay_p50_ms"), "{scheme}");
    }
}

#[test]
fn protection_costs_and_helps() {
    let dmr = |scheme: &str| measure("5%", &format!("scheme = \"{scheme}\""), "call.dmr");
    let bwc = |scheme: &str| measure("5%", &format!("scheme = \"{scheme}\""), "call.bwc");
    assert!(bwc("rtx").abs() < f64::EPSILON);
    assert!(bwc("hairpin:lambda=1e-7") > bwc("hairpin:lambda=1e-1"));
    assert!(dmr("hairpin:lambda=1e-7") <= dmr("rtx"));
    let policy = "autorec-paper:alpha=0ms,beta=0.5,gamma=0.5";
    assert!(dmr(policy) <= dmr("rtx"));
    assert!((0.05..0.55).contains(&bwc(policy)), "{}", bwc(policy));
    let keys = "scheme = \"rtx\"";
    assert!(measure("5%", keys, "call.bwc_with_retransmissions") > 0.04);
    assert!((0.04..0.06).contains(&measure("5%", keys, "call.lost_share")));
    assert!(measure("5%", keys, "call.detection_time_ms") > 30.0);
}

#[test]
fn keys_reach_the_session() {
    let patient = measure("10%", "scheme = \"rtx\"\ndeadline = \"300ms\"", "call.dmr");
    let hurried = measure("10%", "scheme = \"rtx\"\ndeadline = \"40ms\"", "call.dmr");
    assert!(patient < 0.01 && hurried > 0.2, "{patient} {hurried}");
    // Without a deadline everything arrives.
    let reliable = "scheme = \"rtx\"\ndeadline = \"none\"";
    assert!(measure("10%", reliable, "call.frames_never").abs() < f64::EPSILON);
    let never = "scheme = \"rtx\"\ndeadline = \"none\"\nmax_retransmissions = 0";
    assert!(measure("10%", never, "call.frames_never") > 100.0);
    // Paced, a frame takes as long as the next one: 16.7 ms plus the propagation delay.
    let paced = "scheme = \"rtx\"\npacing = \"4.2mbit\"";
    assert!(measure("0%", paced, "call.frame_delay_p50_ms") > 27.0);
    // Smaller packets, of which more are lost in a frame.
    let small = "scheme = \"rtx\"\npayload = 200";
    assert!(
        measure("5%", small, "call.bwc_literal")
            > measure("5%", "scheme = \"rtx\"", "call.bwc_literal")
    );
}

#[test]
fn the_same_seed_gives_the_same_session_and_the_scheme_is_part_of_the_digest() {
    let one = scenario("ge:0.2,0.8,0.4,0.99@30ms", "scheme = \"autorec-paper\"");
    let setup = &one.cases[0].setup;
    let [first, second, other] = [1, 1, 2].map(|seed| world::simulate(setup, seed).expect("valid"));
    assert_eq!(first.measures, second.measures);
    assert_ne!(first.measures, other.measures);
    let digest = |keys: &str| scenario("1%", keys).digest;
    let plain = digest("scheme = \"autorec-paper\"");
    assert_eq!(plain, digest("scheme = \"autorec-paper\""));
    assert_ne!(plain, digest("scheme = \"autorec-paper:beta=0.31\""));
    assert_ne!(plain, digest("scheme = \"rtx\""));
}
