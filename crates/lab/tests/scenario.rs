//! Scenario files become experiments: defaults, grids, substitution, short forms, settings.

use std::time::Duration;

use crate::texts::{dumbbell, load, load_with};
use swiftwater_lab::scenario::{
    App, Library, LoadOptions, ScenarioError, Spread, describe, number_of_label,
};
use swiftwater_link::{Buffer, EcnThreshold, Jitter, LossModel, QueueDiscipline, Rate, ReorderBy};
use swiftwater_sim::Cipher;
use swiftwater_units::{Bandwidth, ByteCount, PacketCount};

fn set(name: &str, value: &str) -> LoadOptions {
    LoadOptions {
        set: vec![(name.to_owned(), value.to_owned())],
        ..LoadOptions::default()
    }
}

/// Makes the flow's name of the values of `axes`, so that each of them changes something.
fn named_after(axes: &[&str], text: &str) -> String {
    let name: Vec<String> = axes.iter().map(|axis| format!("${{{axis}}}")).collect();
    let app = format!("app = \"bulk\"\nname = \"f-{}\"", name.join("-"));
    text.replace("app = \"bulk\"", &app)
}

fn quick() -> LoadOptions {
    LoadOptions {
        quick: true,
        ..LoadOptions::default()
    }
}

#[test]
fn the_smallest_scenario_has_the_documented_defaults() {
    let experiment = load(&dumbbell("", ""));
    assert_eq!(experiment.repeats, 1);
    assert_eq!(experiment.seed, 1);
    assert!(experiment.axes.is_empty() && !experiment.quick);
    assert_eq!(experiment.cases.len(), 1);

    let setup = &experiment.cases[0].setup;
    assert_eq!(setup.warmup, Duration::ZERO);
    assert_eq!(setup.datagram_size, 1_472);
    assert_eq!(setup.cipher, Cipher::Null);
    assert_eq!(setup.record, None);
    assert_eq!(setup.bin, Duration::from_millis(100));

    let [link] = setup.links.as_slice() else {
        panic!("one link")
    };
    assert_eq!(link.name, "bottleneck");
    assert_eq!(link.forward.buffer, Buffer::Bdp(1.0));
    assert_eq!(link.forward.delay, Duration::from_millis(15));
    assert_eq!(link.forward.bdp_rtt, Some(Duration::from_millis(30)));
    assert_eq!(link.backward.buffer, Buffer::Unlimited);
    assert_eq!(link.backward.rate, link.forward.rate);
    assert_eq!(link.backward.delay, link.forward.delay);

    let [flow] = setup.flows.as_slice() else {
        panic!("one flow")
    };
    assert_eq!((flow.name.as_str(), flow.count), ("flow0", 1));
    assert_eq!((flow.enter, flow.exit), (0, 1));
    assert_eq!(flow.start_jitter, Duration::from_millis(10));
    assert_eq!(flow.stop, None);
    assert_eq!(flow.access_rate, Bandwidth::from_mbps(1_000));
    assert_eq!(flow.controller.name(), "cubic");
    assert_eq!(flow.controller_text, "cubic");
    assert_eq!(flow.app, App::Bulk);
}

#[test]
fn the_last_axis_varies_fastest() {
    let text = named_after(
        &["buffer", "seed_of"],
        &dumbbell(
            "[sweep]\nbuffer = [\"1bdp\", \"2bdp\"]\nseed_of = [1, 2, 3]",
            "",
        ),
    );
    let experiment = load(&text);
    let labels: Vec<String> = experiment
        .cases
        .iter()
        .map(|case| case.labels.join(" "))
        .collect();
    let expected = ["1bdp 1", "1bdp 2", "1bdp 3", "2bdp 1", "2bdp 2", "2bdp 3"];
    assert_eq!(labels, expected);
    let names: Vec<_> = experiment.axes.iter().map(|axis| &axis.name).collect();
    assert_eq!(names, ["buffer", "seed_of"], "in the order of the file");
}

#[test]
fn repeats_have_seeds_of_their_own_that_are_the_same_in_every_case() {
    let text = named_after(&["x"], &dumbbell("[sweep]\nx = [1, 2]", ""));
    let experiment = load_with(&text, &set("repeats", "2")).expect("valid");
    let runs: Vec<_> = experiment
        .runs()
        .map(|run| (run.case, run.repeat, run.seed))
        .collect();
    assert_eq!(runs, [(0, 0, 1), (1, 0, 1), (0, 1, 2), (1, 1, 2)]);
}

#[test]
fn values_keep_their_type_alone_and_become_text_in_texts() {
    let text = r#"
title = "t"
[run]
duration = "${path.long}"
rtt = "${path.rtt}"
[sweep]
path = [
  { label = "dc", rtt = "1ms", long = "2s", loss = 0.01 },
  { label = "wan", rtt = "80ms", long = "4s", loss = 1e-3 },
]
beta = [0.7, 0.85]
count = [3]
ecn = [true]
[[link]]
rate = "10mbit"
loss = "${path.loss}"
[[flow]]
name = "f-${path}"
app = "bulk"
cc = "cubic:beta=${beta}"
count = "${count}"
ecn = "${ecn}"
"#;
    let experiment = load(text);
    let last = experiment.cases.last().expect("cases");
    assert_eq!(last.labels, ["wan", "0.85", "3", "true"]);
    assert_eq!(last.setup.duration, Duration::from_secs(4));
    assert_eq!(last.setup.rtt, Duration::from_millis(80));
    let forward = &last.setup.links[0].forward;
    assert_eq!(forward.loss, LossModel::Bernoulli(0.001));
    let flow = &last.setup.flows[0];
    assert_eq!(flow.name, "f-wan");
    assert_eq!(flow.controller_text, "cubic:beta=0.85");
    assert_eq!((flow.count, flow.transport.ecn), (3, Some(true)));
}

#[test]
fn excluded_combinations_are_left_out() {
    let text = named_after(
        &["a", "b"],
        &dumbbell(
            "[sweep]\na = [\"x\", \"y\"]\nb = [1, 2]\n[[exclude]]\na = \"y\"\nb = 2\n",
            "",
        ),
    );
    let labels: Vec<String> = load(&text)
        .cases
        .iter()
        .map(|case| case.labels.join(" "))
        .collect();
    assert_eq!(labels, ["x 1", "x 2", "y 1"]);
}

const WITH_QUICK: &str = "[sweep]\na = [\"x\", \"y\", \"z\"]\n\
                          [quick]\nduration = \"2s\"\nsweep.a = [\"z\", \"x\"]\n";

#[test]
fn the_short_form_changes_the_run_and_shortens_axes_in_their_order() {
    let text = named_after(&["a"], &dumbbell(WITH_QUICK, ""));
    let long = load(&text);
    assert_eq!(long.cases.len(), 3);
    let short = load_with(&text, &quick()).expect("valid");
    assert!(short.quick);
    assert_eq!(short.axes[0].labels, ["x", "z"]);
    assert_eq!(short.cases[0].setup.duration, Duration::from_secs(2));
    assert_ne!(long.digest, short.digest);
}

#[test]
fn settings_replace_values_of_axes_and_keys_of_the_run() {
    let text = named_after(&["a"], &dumbbell(WITH_QUICK, ""));
    let mut options = quick();
    options.set = vec![
        ("a".to_owned(), "w, y".to_owned()),
        ("duration".to_owned(), "7s".to_owned()),
        ("seed".to_owned(), "40".to_owned()),
    ];
    options.repeats = Some(2);
    options.record = Some(Some(Duration::from_millis(5)));
    let experiment = load_with(&text, &options).expect("valid");
    assert_eq!(experiment.axes[0].labels, ["w", "y"]);
    assert_eq!((experiment.repeats, experiment.seed), (2, 40));
    let setup = &experiment.cases[0].setup;
    assert_eq!(setup.duration, Duration::from_secs(7));
    assert_eq!(setup.record, Some(Duration::from_millis(5)));
}

#[test]
fn values_with_commas_are_separated_by_semicolons() {
    let text = dumbbell("[sweep]\ncc = [\"cubic\"]", "").replace("\"cubic\"\n", "\"${cc}\"\n");
    let options = set("cc", "cubic:beta=0.8,fast_convergence=off; newreno");
    let experiment = load_with(&text, &options).expect("valid");
    let labels = &experiment.axes[0].labels;
    assert_eq!(*labels, ["cubic:beta=0.8,fast_convergence=off", "newreno"]);
}

#[test]
fn every_key_of_a_link_arrives() {
    let link = r#"
buffer = "64kB"
queue = "droptail"
loss = "ge:1%,50%"
jitter = "2ms"
ecn_threshold = "30p"
reorder = { probability = 0.01, delay = "5ms" }
delay = "15ms"
backward = { rate = "2mbit", buffer = "20p", loss = "1%" }
"#;
    let experiment = load(&dumbbell("", link));
    let link = &experiment.cases[0].setup.links[0];
    let forward = &link.forward;
    assert_eq!(forward.rate, Rate::Constant(Bandwidth::from_mbps(20)));
    assert_eq!(forward.buffer, Buffer::Bytes(ByteCount::new(64_000)));
    assert!(matches!(forward.loss, LossModel::GilbertElliott { .. }));
    assert_eq!(forward.jitter, Jitter::Uniform(Duration::from_millis(2)));
    assert_eq!(
        forward.ecn_threshold,
        Some(EcnThreshold::Packets(PacketCount::new(30)))
    );
    let reorder = forward.reorder.expect("set");
    assert_eq!(reorder.by, ReorderBy::Delay(Duration::from_millis(5)));
    assert_eq!(forward.delay, Duration::from_millis(15));
    let backward = &link.backward;
    assert_eq!(backward.rate, Rate::Constant(Bandwidth::from_mbps(2)));
    assert_eq!(backward.buffer, Buffer::Packets(PacketCount::new(20)));
    assert_eq!(backward.loss, LossModel::Bernoulli(0.01));
    assert_eq!(backward.delay, Duration::from_millis(15));
}

#[test]
fn queues_have_disciplines_with_parameters() {
    let link = "queue = \"codel:target=10ms\"\nbackward = { queue = \"fq-codel\" }";
    let experiment = load(&dumbbell("", link));
    let link = &experiment.cases[0].setup.links[0];
    let QueueDiscipline::CoDel(codel) = link.forward.queue else {
        panic!("{:?}", link.forward.queue)
    };
    assert_eq!(codel.target, Duration::from_millis(10));
    assert!(matches!(link.backward.queue, QueueDiscipline::FqCoDel(_)));
}

#[test]
fn a_chain_shares_the_delay_and_names_its_links() {
    let text = r#"
title = "t"
run = { duration = "5s", rtt = "30ms" }
link = [{ rate = "10mbit" }, { rate = "1gbit" }, { rate = "10mbit" }]
flow = [
  { app = "bulk", cc = "cubic" },
  { app = "bulk", cc = "cubic", enter = 1, exit = 2 },
  { app = "bulk", cc = "cubic", enter = 3, exit = 0 },
]
"#;
    let experiment = load(text);
    let setup = &experiment.cases[0].setup;
    let names: Vec<_> = setup.links.iter().map(|link| &link.name).collect();
    assert_eq!(names, ["link0", "link1", "link2"]);
    let delays = setup.links.iter().map(|link| link.forward.delay);
    assert!(
        delays
            .into_iter()
            .all(|delay| delay == Duration::from_millis(5))
    );
    let ends: Vec<_> = setup
        .flows
        .iter()
        .map(|flow| (flow.enter, flow.exit))
        .collect();
    assert_eq!(ends, [(0, 3), (1, 2), (3, 0)]);
    assert_eq!(setup.flows[0].access_rate, Bandwidth::from_mbps(10_000));
}

#[test]
fn links_without_a_delay_share_what_the_others_leave() {
    let text = r#"
title = "t"
run = { duration = "5s", rtt = "30ms" }
link = [{ rate = "10mbit" }, { rate = "1gbit", delay = "1ms" }, { rate = "10mbit" }]
flow = [{ cc = "cubic" }]
"#;
    let experiment = load(text);
    let links = experiment.cases[0].setup.links.iter();
    let delays: Vec<_> = links.map(|link| link.forward.delay.as_millis()).collect();
    assert_eq!(delays, [7, 1, 7]);
}

#[test]
fn every_application_is_read() {
    let flows = r#"
[[flow]]
app = "transfer"
cc = "cubic"
bytes = "1MB"
[[flow]]
app = "constant-rate"
cc = "cubic"
rate = "5mbit"
[[flow]]
app = "on-off"
cc = "cubic"
on = { mean = "1s" }
off = "500ms"
[[flow]]
app = "poisson"
cc = "cubic"
sizes = [[1000, 0.0], [3000, 1.0]]
load = 0.5
limit = 500
receivers = 2
[[flow]]
app = "live"
cc = "cubic"
rate = "2mbit"
first_frame = "100kB"
"#;
    let experiment = load(&(dumbbell("", "") + flows));
    let apps: Vec<_> = experiment.cases[0]
        .setup
        .flows
        .iter()
        .map(|flow| flow.app.clone())
        .collect();
    assert_eq!(apps[1], App::Transfer { bytes: 1_000_000 });
    let rate = Bandwidth::from_mbps(5);
    assert_eq!(apps[2], App::ConstantRate { rate });
    let on_off = App::OnOff {
        on: Spread::Exponential(Duration::from_secs(1)),
        off: Spread::Constant(Duration::from_millis(500)),
        rate: None,
    };
    assert_eq!(apps[3], on_off);
    let App::Poisson {
        per_second,
        limit,
        receivers,
        ..
    } = &apps[4]
    else {
        panic!("{:?}", apps[4])
    };
    // Half of 20 Mbit/s in transfers of 2000 bytes.
    assert!((per_second - 625.0).abs() < 1e-9, "{per_second}");
    assert_eq!((*limit, *receivers), (Some(500), 2));
    let App::Live { rebuffer, .. } = apps[5] else {
        panic!("{:?}", apps[5])
    };
    assert_eq!(rebuffer, ByteCount::new(100_000));
}

#[test]
fn the_load_of_traffic_on_the_way_back_is_that_of_its_first_link() {
    let text = r#"
title = "t"
run = { duration = "5s", rtt = "30ms" }
link = [{ rate = "10mbit", backward = { rate = "4mbit" } }]
flow = [{ app = "poisson", cc = "cubic", enter = 1, exit = 0, load = 1, sizes = [[500, 1]] }]
"#;
    let App::Poisson { per_second, .. } = load(text).cases[0].setup.flows[0].app.clone() else {
        panic!("poisson")
    };
    assert!((per_second - 1_000.0).abs() < 1e-9, "{per_second}");
}

#[test]
fn the_size_files_have_the_means_that_they_state() {
    for (name, mean) in [("dctcp-websearch", 1.71e6), ("large-flows", 17.1e6)] {
        let flow = format!(
            "[[flow]]\napp = \"poisson\"\ncc = \"cubic\"\nper_second = 1\nsizes = \"{name}\"\n"
        );
        let experiment = load(&(dumbbell("", "") + &flow));
        let App::Poisson { sizes, .. } = &experiment.cases[0].setup.flows[1].app else {
            panic!("poisson")
        };
        assert!((sizes.mean() / mean - 1.0).abs() < 0.01, "{}", sizes.mean());
    }
}

#[test]
fn the_digest_depends_on_what_rows_depend_on_and_on_nothing_else() {
    let base = named_after(&["x"], &dumbbell("[sweep]\nx = [1, 2]", ""));
    let digest = |text: &str| load(text).digest;
    let same = [
        base.replace(
            "title = \"t\"",
            "# a comment\ntitle = \"another\"\nabout = \"x\"",
        ),
        base.replace(
            "duration = \"5s\"\nrtt = \"30ms\"",
            "rtt = \"30ms\"\nduration = \"5000ms\"",
        ),
        base.replace("[run]", "[run]\nrepeats = 9"),
        base.clone() + "[[claim]]\nid = \"a\"\nsays = \"b\"\nuntestable = \"c\"\n",
    ];
    for text in same {
        assert_eq!(digest(&text), digest(&base), "{text}");
    }
    let other = [
        base.replace("5s", "6s"),
        base.replace("20mbit", "21mbit"),
        base.replace("cubic", "newreno"),
        base.replace("cubic", "cubic:beta=0.8"),
        base.replace("[run]", "[run]\nseed = 2"),
        base.replace("[run]", "[run]\nrecord = \"1s\""),
        base.replace("[1, 2]", "[1, 3]"),
    ];
    for text in other {
        assert_ne!(digest(&text), digest(&base), "{text}");
    }
    assert_eq!(digest(&base).len(), 64);
}

#[test]
fn the_library_lists_selects_and_loads_what_is_embedded() {
    let library = Library::embedded();
    let names = library.list().expect("embedded");
    assert!(names.contains(&"examples/first".to_owned()), "{names:?}");
    assert!(names.iter().all(|name| !name.starts_with("sizes")));
    assert_eq!(library.select("all").expect("all"), names);
    assert_eq!(
        library.select("examples/first").expect("one"),
        ["examples/first"]
    );
    let examples = library.select("examples").expect("collection");
    assert!(examples.contains(&"examples/first".to_owned()));
}

#[test]
fn every_embedded_scenario_loads_in_both_forms_or_lacks_a_trace() {
    let library = Library::embedded();
    let mut loaded = 0;
    for name in library.list().expect("embedded") {
        for options in [LoadOptions::default(), quick()] {
            match library.load(&name, &options) {
                Ok(experiment) => {
                    assert_eq!(experiment.name, name);
                    loaded += 1;
                }
                Err(ScenarioError::TraceMissing { .. }) => {}
                Err(error) => panic!("{error}"),
            }
        }
    }
    assert!(loaded >= 2);
}

#[test]
fn a_group_of_no_flows_is_not_there() {
    let text = dumbbell("[sweep]\nn = [0, 2]", "")
        + "[[flow]]\nname = \"back\"\ncc = \"cubic\"\nenter = 1\nexit = 0\ncount = \"${n}\"\n";
    let experiment = load(&text);
    let groups: Vec<usize> = experiment
        .cases
        .iter()
        .map(|case| case.setup.flows.len())
        .collect();
    assert_eq!(groups, [1, 2]);
}

#[test]
fn the_first_example_is_what_its_comments_say() {
    let experiment = Library::embedded()
        .load("examples/first", &LoadOptions::default())
        .expect("valid");
    let facts = describe(&experiment);
    assert_eq!((facts.cases, facts.runs), (4, 12));
    assert_eq!(facts.simulated, Duration::from_secs(60));
    assert_eq!((facts.claims, facts.untestable, facts.figures), (1, 0, 1));
    assert_eq!(facts.axes.len(), 2);
}

#[test]
fn a_folder_and_a_file_by_itself_are_libraries_too() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let own = folder.path().join("own");
    std::fs::create_dir_all(folder.path().join("sizes")).expect("folder");
    std::fs::create_dir_all(&own).expect("folder");
    std::fs::write(
        folder.path().join("sizes/mine.csv"),
        "100,0.5 # half\n\n200,1\n",
    )
    .expect("file");
    let text = dumbbell("", "")
        + "[[flow]]\napp = \"poisson\"\ncc = \"cubic\"\nload = 0.1\nsizes = \"mine\"\n";
    std::fs::write(own.join("a.toml"), text).expect("file");

    let library = Library::folder(folder.path());
    assert_eq!(library.list().expect("folder"), ["own/a"]);
    assert_eq!(library.select("own").expect("collection"), ["own/a"]);
    let options = LoadOptions::default();
    let by_name = library.load("own/a", &options).expect("valid");
    let path = own.join("a.toml").display().to_string();
    let selected = Library::embedded().select(&path).expect("a file");
    let by_path = Library::embedded()
        .load(&selected[0], &options)
        .expect("valid");
    assert_eq!(by_name.name, "own/a");
    assert_eq!(by_path.name, "own/a");
    assert_eq!(by_name.digest, by_path.digest);
    // However the folder is written, its own name counts.
    let roundabout = own.join("../own/a.toml").display().to_string();
    let roundabout = Library::embedded().load(&roundabout, &options);
    assert_eq!(roundabout.expect("valid").name, "own/a");
    // A name that is none would lead to another folder of results.
    let nameless = own.join("..toml");
    std::fs::copy(own.join("a.toml"), &nameless).expect("file");
    let error = Library::embedded()
        .load(&nameless.display().to_string(), &options)
        .expect_err("no name");
    assert!(error.to_string().contains("needs a name"), "{error}");
}

#[test]
fn links_follow_traces_of_files_and_of_models() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let csv = "t_ms,rate_kbps,rtt_ms,loss\n0,1000,40,0.1\n1000,3000,60,0\n";
    std::fs::write(folder.path().join("x.csv"), csv).expect("file");
    let options = LoadOptions {
        traces: Some(folder.path().to_path_buf()),
        ..LoadOptions::default()
    };
    let with = |link: &str| dumbbell("", "").replace("rate = \"20mbit\"", link);

    let text = with("trace = \"x.csv\"");
    let link = load_with(&text, &options).expect("valid").cases[0]
        .setup
        .links[0]
        .clone();
    assert_eq!(link.forward.rate.mean(), Some(Bandwidth::from_mbps(2)));
    assert_eq!(link.forward.delay, Duration::from_millis(15));
    assert!(link.forward.delay_trace.is_none() && link.forward.loss_trace.is_none());

    let all = with("trace = \"x.csv\"\ncolumns = [\"rate\", \"delay\", \"loss\"]");
    let link = load_with(&all, &options).expect("valid").cases[0]
        .setup
        .links[0]
        .clone();
    assert_eq!(
        link.forward.delay,
        Duration::ZERO,
        "the trace's delay takes its place"
    );
    assert!(link.forward.delay_trace.is_some() && link.backward.delay_trace.is_some());
    assert!(link.forward.loss_trace.is_some() && link.backward.loss_trace.is_none());

    let faster = with("trace = \"x.csv\"\nscale = 1.5");
    let experiment = load_with(&faster, &options).expect("valid");
    let link = &experiment.cases[0].setup.links[0];
    assert_eq!(link.forward.rate.mean(), Some(Bandwidth::from_mbps(3)));
    assert_eq!(link.forward.rate, link.backward.rate);
    let plain = load_with(&text, &options).expect("valid").digest;
    assert_ne!(experiment.digest, plain);

    // Another content is another experiment.
    let before = load_with(&text, &options).expect("valid").digest;
    std::fs::write(folder.path().join("x.csv"), csv.replace("3000", "3001")).expect("file");
    assert_ne!(load_with(&text, &options).expect("valid").digest, before);

    let model = with("trace = \"synthetic:lte\"");
    let one = load(&model);
    assert_eq!(
        one.cases[0].setup.links[0].forward.rate,
        load(&model).cases[0].setup.links[0].forward.rate
    );
    let two = load_with(&model, &set("seed", "2")).expect("valid");
    assert_ne!(
        one.cases[0].setup.links[0].forward.rate,
        two.cases[0].setup.links[0].forward.rate
    );
}

#[test]
fn labels_begin_with_numbers() {
    for (label, number) in [
        ("0.1bdp", Some(0.1)),
        ("20", Some(20.0)),
        ("1e-6", Some(1e-6)),
        ("-3dB", Some(-3.0)),
        ("30.6 ms", Some(30.6)),
        ("5e", Some(5.0)),
        ("bbr1", None),
        ("", None),
        ("e5", None),
    ] {
        assert_eq!(number_of_label(label), number, "{label}");
    }
}
