//! Links in parallel, and flows over several of them.

use crate::support::{Measured, assert_near};
use crate::texts::{load, load_with};
use std::fmt::Write as _;
use swiftwater_lab::scenario::{LoadOptions, ScenarioError};

/// A scenario of 10 s with these paths, and a bulk flow with more keys.
fn scenario(paths: &[(&str, &str)], flow: &str) -> String {
    let mut text = "title = \"t\"\n[run]\nduration = \"10s\"\nrtt = \"30ms\"\n".to_owned();
    for (name, keys) in paths {
        let _ = write!(text, "[[path]]\nname = \"{name}\"\n{keys}\n");
    }
    text + "[[flow]]\nname = \"flow\"\ncc = \"cubic\"\n" + flow
}

fn run(text: &str) -> Measured {
    Measured::new(&load(text).cases[0].setup, 1)
}

const A: (&str, &str) = ("a", "rate = \"20mbit\"");
const B: (&str, &str) = ("b", "rate = \"20mbit\"");

#[test]
fn a_flow_over_one_path_is_as_one_over_a_link() {
    let one = run(&scenario(&[A, B], "paths = \"b\"\n"));
    let link = "title = \"t\"\n[run]\nduration = \"10s\"\nrtt = \"30ms\"\n\
                [[link]]\nname = \"b\"\nrate = \"20mbit\"\n\
                [[flow]]\nname = \"flow\"\ncc = \"cubic\"\n";
    let chain = run(link);
    for measure in ["flow.goodput_mbps", "flow.rtt_mean_ms", "b.utilisation"] {
        assert_eq!(one.get(measure), chain.get(measure), "{measure}");
    }
    assert_eq!(one.get("flow.sent_share_b"), Some(1.0));
}

#[test]
fn two_paths_are_used_together() {
    let one = run(&scenario(&[A, B], "paths = \"a\"\n"));
    let two = run(&scenario(&[A, B], ""));
    let ratio = two.value("flow.goodput_mbps") / one.value("flow.goodput_mbps");
    assert!(ratio > 1.85, "{ratio}");
    assert_near(two.value("flow.sent_share_a"), 0.5, 0.1);
    assert_near(
        two.value("flow.sent_share_a") + two.value("flow.sent_share_b"),
        1.0,
        1e-9,
    );
}

#[test]
fn each_path_has_a_round_trip_time_of_its_own() {
    let far = ("b", "rate = \"20mbit\"\nrtt = \"90ms\"\nbuffer = \"10p\"");
    let near = ("a", "rate = \"20mbit\"\nbuffer = \"10p\"");
    let measured = run(&scenario(&[near, far], ""));
    assert_near(measured.value("flow.rtt_mean_ms_a"), 33.0, 0.1);
    // Acknowledgements of both return on the near one.
    assert_near(measured.value("flow.rtt_mean_ms_b"), 63.0, 0.1);
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let text = scenario(&[A, ("b", "rate = \"20mbit\"\nloss = \"1%\"")], "");
    assert_eq!(run(&text).outcome, run(&text).outcome);
}

#[test]
fn a_path_that_is_cut_leaves_a_gap_and_is_used_again_once_it_works() {
    let change = "[[change]]\npath = \"a\"\nwhat = \"cut\"\nat = \"2s\"\n";
    let failover = "recovery = \"failover\"\n";
    let dead = run(&(scenario(&[A, B], failover) + change));
    let gap = dead.value("flow.longest_gap_ms");
    assert!((20.0..=300.0).contains(&gap), "{gap}");
    assert!(dead.value("flow.sent_share_a") < 0.25);
    let back = run(&(scenario(&[A, B], failover) + change + "until = \"3s\"\n"));
    assert!(back.value("flow.sent_share_a") > 0.35);
    let alone = "paths = \"a\"\nstart_jitter = \"0ms\"\n";
    let alone = run(&(scenario(&[A, B], alone) + change + "until = \"3s\"\n"));
    assert!(alone.value("flow.longest_gap_ms") >= 1_000.0);
}

#[test]
fn faults_apply_to_the_directions_that_they_name() {
    let with = |what: &str| {
        let flow = scenario(&[A, B], "paths = \"a\"\n");
        let change = format!("[[change]]\npath = \"a\"\nat = \"2s\"\nwhat = \"{what}\"\n");
        run(&(flow + &change))
    };
    let works = with("none").value("flow.goodput_mbps");
    for what in ["cut", "cut-forward", "cut-backward"] {
        let goodput = with(what).value("flow.goodput_mbps");
        assert!(goodput < 0.3 * works, "{what}: {goodput}");
    }
    // Against the data only the acknowledgements are missing: what was under way still arrives.
    let forward = with("cut-forward").value("a.utilisation");
    assert!(with("cut-backward").value("a.utilisation") > forward);
    assert!(with("loss:50%").value("flow.lost_share") > 0.05);
    let slow = with("delay:10").value("flow.rtt_p95_ms");
    assert!(slow > 200.0, "{slow}");
}

#[test]
fn objects_are_requested_one_after_the_other() {
    let text = scenario(
        &[A, B],
        "app = \"requests\"\nbytes = \"1MB\"\npause = \"100ms\"\n",
    );
    let measured = run(&text);
    let count = measured.value("flow.completed");
    assert!((25.0..=45.0).contains(&count), "{count}");
    assert!(measured.value("flow.started") - count <= 1.0);
    // 1 MB at 40 Mbit/s takes 200 ms and a round trip.
    let typical = measured.value("flow.fct_p50_ms");
    assert!((200.0..=290.0).contains(&typical), "{typical}");
    let bytes = measured.value("flow.goodput_mbps") * 10.0 / 8.0;
    assert!(bytes >= count && bytes < count + 1.0, "{bytes} {count}");
}

#[test]
fn coupled_paths_take_less_beside_another_flow() {
    let share = |coupling: &str| {
        let flow = format!("paths = [\"a\", \"a\"]\ncoupling = \"{coupling}\"\n");
        let rival = "[[flow]]\nname = \"rival\"\ncc = \"cubic\"\npaths = [\"a\"]\n";
        let text = scenario(&[A], &flow) + rival;
        run(&text.replace("duration = \"10s\"", "duration = \"30s\"")).value("flow.share")
    };
    let (uncoupled, lia, olia) = (share("uncoupled"), share("lia"), share("olia"));
    assert!(uncoupled > 0.56, "{uncoupled}");
    assert!(lia < uncoupled - 0.05, "{lia} {uncoupled}");
    assert!(olia < uncoupled - 0.05, "{olia} {uncoupled}");
}

#[test]
fn paths_over_one_link_share_it() {
    let text = scenario(&[A], "paths = [\"a\", \"a\"]\n");
    let measured = run(&text);
    assert!(measured.value("flow.goodput_mbps") < 20.0);
    assert!(measured.value("flow.sent_share_a-2") > 0.2);
}

#[test]
fn what_does_not_fit_is_refused_with_its_line() {
    let path = "[[path]]\nname = \"a\"\nrate = \"1mbit\"\n";
    let head = "title = \"t\"\n[run]\nduration = \"5s\"\nrtt = \"30ms\"\n";
    let flow = "[[flow]]\ncc = \"cubic\"\n";
    let cases = [
        (
            format!("{head}{path}[[link]]\nrate = \"1mbit\"\n{flow}"),
            "either",
        ),
        (
            format!("{head}{path}{flow}paths = [\"c\"]\n"),
            "did you mean `a`",
        ),
        (format!("{head}{path}{flow}enter = 0\n"), "parallel"),
        (
            format!("{head}{path}{flow}scheduler = \"best\"\npaths = [\"a\", \"a\"]\n"),
            "min-rtt",
        ),
        (
            format!("{head}{path}{flow}coupling = \"tight\"\n"),
            "uncoupled",
        ),
        (
            format!("{head}{path}[[flow]]\ncc = \"bbr1\"\ncoupling = \"lia\"\n"),
            "can't be coupled",
        ),
        (
            format!("{head}{path}{flow}[[change]]\npath = \"a\"\nwhat = \"burn\"\nat = \"1s\"\n"),
            "cut-forward",
        ),
        (
            format!("{head}{path}{flow}[[change]]\npath = \"b\"\nwhat = \"cut\"\nat = \"1s\"\n"),
            "`a`",
        ),
        (
            format!(
                "{head}[[link]]\nrate = \"1mbit\"\n{flow}[[change]]\npath = \"a\"\nwhat = \"cut\"\nat = \"1s\"\n"
            ),
            "[[path]]",
        ),
    ];
    for (text, part) in cases {
        match load_with(&text, &LoadOptions::default()) {
            Err(ScenarioError::Invalid { what, expected, .. }) => {
                let message = format!("{what}: {expected}");
                assert!(message.contains(part), "`{part}` is not in `{message}`");
            }
            other => panic!("{other:?} of {text}"),
        }
    }
}
