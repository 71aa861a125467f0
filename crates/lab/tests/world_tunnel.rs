//! Flows in tunnels.

use crate::texts::{load, load_with};
use swiftwater_lab::scenario::LoadOptions;
use swiftwater_lab::world::{measures, simulate};

/// Objects of 50 kB over a link that loses 5 %, 20 s.
fn scenario(keys: &str) -> String {
    scenario_of("50kB", keys)
}

fn scenario_of(bytes: &str, keys: &str) -> String {
    "title = \"t\"\n[run]\nduration = \"20s\"\nrtt = \"90ms\"\ndatagram_size = 1350\n\
     [[link]]\nname = \"wan\"\nrate = \"100mbit\"\ndelay = \"30ms\"\nbuffer = \"1bdp\"\n\
     [[link]]\nname = \"access\"\nrate = \"10mbit\"\ndelay = \"15ms\"\nbuffer = \"1bdp\"\nloss = \"5%\"\n\
     [[flow]]\nname = \"rpc\"\napp = \"requests\"\npause = \"50ms\"\n"
        .to_owned()
        + &format!("bytes = \"{bytes}\"\n")
        + keys
}

/// A measure of the flow; 0 if it has no value.
fn run(keys: &str) -> impl Fn(&str) -> f64 + use<> {
    run_of("50kB", keys)
}

fn run_of(bytes: &str, keys: &str) -> impl Fn(&str) -> f64 + use<> {
    let setup = &load(&scenario_of(bytes, keys)).cases[0].setup;
    let names = measures(setup);
    let outcome = simulate(setup, 1).unwrap();
    move |name| {
        let name = format!("rpc.{name}");
        let place = names.iter().position(|known| *known == name);
        outcome.measures[place.unwrap_or_else(|| panic!("no measure {name}"))].unwrap_or_default()
    }
}

#[test]
fn repair_is_quicker_than_datagrams_and_reports_save_duplicates() {
    let plain = run("cc = \"bbr3\"\ntunnel = \"datagrams\"\n");
    let repair = run("cc = \"bbr3\"\ntunnel = \"repair\"\n");
    let tecc = run(
        "cc = \"follow-external\"\ntunnel = \"tecc\"\ntunnel_cc = \"bbr3\"\nloss_judge = \"tecc\"\nfeedback = \"tecc\"\n",
    );
    for flow in [&plain, &repair, &tecc] {
        assert!(flow("completed") > 30.0);
        assert!(flow("fct_p50_ms") > 90.0);
    }
    assert!(repair("fct_mean_ms") < plain("fct_mean_ms"));
    assert!(tecc("fct_mean_ms") < plain("fct_mean_ms"));
    assert!(tecc("duplicates_share") < repair("duplicates_share") / 2.0);
    // What is sent again, and reported, only with the tunnels that do it.
    assert!((0.02..0.10).contains(&repair("tunnel_resent_share")));
    assert!(plain("tunnel_resent_share") < 1e-9);
    assert!(tecc("tunnel_reports_share") > 0.01);
    assert!(repair("tunnel_reports_share") < 1e-9);
}

#[test]
fn a_stream_delivers_everything_in_order() {
    let stream = run("cc = \"bbr3\"\ntunnel = \"stream\"\n");
    assert!(stream("completed") > 30.0);
    // Losses are repaired below: the server sees none, or spurious ones.
    assert!(stream("tunnel_dropped_share") < 0.01);
}

/// AutoRec on the connection between proxy and client: copies of what the stream has lost, and no other change.
#[test]
fn the_stream_of_a_tunnel_has_a_recovery_policy_of_its_own() {
    let plain = run("cc = \"bbr3\"\ntunnel = \"stream\"\n");
    let autorec = run("cc = \"bbr3\"\ntunnel = \"stream\"\ntunnel_recovery = \"autorec\"\n");
    assert!(autorec("completed") > 30.0);
    assert!(plain("tunnel_redundancy_cost") < 1e-9);
    assert!((0.001..0.2).contains(&autorec("tunnel_redundancy_cost")));
    // The connection in the tunnel has none.
    assert!(autorec("redundancy_cost") < 1e-9);
}

#[test]
fn in_forwarded_mode_nothing_waits_at_the_proxy() {
    let flow = run("cc = \"bbr3\"\ntunnel = \"forwarded\"\n");
    assert!(flow("completed") > 30.0);
    assert!(flow("tunnel_forwarded_share") > 0.99);
    assert!(flow("tunnel_queue_p95_ms") < 1e-9);
    assert!(flow("tunnel_resent_share") < 1e-9);
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let keys = "cc = \"follow-external\"\ntunnel = \"tecc\"\ntunnel_cc = \"bbr3\"\nloss_judge = \"tecc\"\nfeedback = \"tecc\"\n";
    let setup = &load(&scenario(keys)).cases[0].setup;
    let (first, second) = (simulate(setup, 7).unwrap(), simulate(setup, 7).unwrap());
    assert_eq!(first.measures, second.measures);
}

/// A flow in a tunnel with TECC, with more keys.
fn tecc_with(more: &str) -> impl Fn(&str) -> f64 + use<> {
    tecc_of("50kB", more)
}

fn tecc_of(bytes: &str, more: &str) -> impl Fn(&str) -> f64 + use<> {
    let keys = "cc = \"follow-external\"\ntunnel = \"tecc\"\ntunnel_cc = \"bbr3\"\nloss_judge = \"tecc\"\nfeedback = \"tecc\"\n";
    run_of(bytes, &format!("{keys}{more}"))
}

#[test]
fn reports_that_are_lost_on_either_way_leave_repair_alone() {
    let all = tecc_with("");
    for lost in [
        "report_loss = 1\n",
        "viewer_feedback = \"tecc-false:lost=1\"\n",
    ] {
        let flow = tecc_with(lost);
        assert!(flow("completed") > 30.0);
        assert!(
            flow("duplicates_share") > 2.0 * all("duplicates_share"),
            "{lost}"
        );
    }
}

#[test]
fn reports_in_packets_of_their_own_cost_time_where_any_loss_counts() {
    let mean = |room| {
        let keys = "cc = \"follow-external\"\ntunnel = \"tecc\"\ntunnel_cc = \"cubic\"\nloss_judge = \"tecc\"\nfeedback = \"tecc\"\n";
        run(&format!("{keys}report_room = {room}\n"))("fct_mean_ms")
    };
    let (alone, shared) = (mean(0), mean(80));
    assert!(shared < alone * 0.97, "{shared} {alone}");
}

#[test]
fn a_client_that_is_false_in_nothing_is_a_true_one() {
    let (honest, other) = (
        tecc_with(""),
        tecc_with("viewer_feedback = \"tecc-false\"\n"),
    );
    for measure in ["fct_mean_ms", "duplicates_share", "tunnel_queue_p95_ms"] {
        assert_eq!(honest(measure).to_bits(), other(measure).to_bits());
    }
    // One that claims ten times the rate fills the queue before it, unless the object is over before reports matter.
    let honest = tecc_of("200kB", "");
    let liar = tecc_of(
        "200kB",
        "viewer_feedback = \"tecc-false:rate=10,no-queue=on\"\n",
    );
    assert!(liar("tunnel_queue_p95_ms") > 1.5 * honest("tunnel_queue_p95_ms"));
}

#[test]
fn what_can_not_be_in_a_tunnel_is_refused() {
    let error = |keys: &str| {
        let loaded = load_with(&scenario(keys), &LoadOptions::default());
        loaded.unwrap_err().to_string()
    };
    let unknown = error("cc = \"bbr3\"\ntunnel = \"tecc+\"\n");
    assert!(unknown.contains("did you mean `tecc`"), "{unknown}");
    let place = error("cc = \"bbr3\"\ntunnel = \"repair\"\ntunnel_at = 9\n");
    assert!(place.contains("tunnel_at"), "{place}");
    let feedback = error("cc = \"bbr3\"\ntunnel = \"repair\"\nfeedback = \"tecc\"\n");
    assert!(feedback.contains("feedback"), "{feedback}");
    let reports = error("cc = \"bbr3\"\ntunnel = \"repair\"\nreport_loss = 0.5\n");
    assert!(reports.contains("report_loss"), "{reports}");
    let copies = error("cc = \"bbr3\"\ntunnel = \"repair\"\ntunnel_recovery = \"autorec\"\n");
    assert!(copies.contains("tunnel_recovery"), "{copies}");
    let policy = error("cc = \"bbr3\"\ntunnel = \"stream\"\ntunnel_recovery = \"autorex\"\n");
    assert!(policy.contains("autorec"), "{policy}");
}
