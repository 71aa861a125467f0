//! Errors of a scenario are reported with file, line and the expected content.

use crate::texts;

use proptest::prelude::*;
use swiftwater_lab::scenario::{Library, LoadOptions, ScenarioError};
use texts::{dumbbell, load_with};

/// The line and the message after it.
fn error_of(text: &str) -> (usize, String) {
    match load_with(text, &LoadOptions::default()) {
        Err(ScenarioError::Invalid {
            line,
            what,
            expected,
            ..
        }) => (line, format!("{what}: {expected}")),
        other => panic!("{other:?} of {text}"),
    }
}

/// The error of a text in which `!` at the end of a line marks the invalid line; the message must
/// have every one of `parts`.
#[track_caller]
fn check(marked: &str, parts: &[&str]) {
    let place = marked
        .lines()
        .position(|line| line.ends_with('!'))
        .expect("a marked line");
    let text: Vec<&str> = marked
        .lines()
        .map(|line| line.strip_suffix('!').unwrap_or(line))
        .collect();
    let (line, message) = error_of(&text.join("\n"));
    assert_eq!(line, place + 1, "{message}");
    for part in parts {
        assert!(message.contains(part), "`{part}` is not in `{message}`");
    }
}

/// A scenario with more after its flow.
fn with(end: &str) -> String {
    dumbbell("", "") + end
}

#[test]
fn what_is_no_toml() {
    check("title = \"t\"\n[run!", &["not TOML"]);
    check(
        &with("[[flow]]\ncc = \"a\"\ncc = \"b\"!"),
        &["not TOML", "duplicate"],
    );
    check(&with("[[flow]]\nstart = 2020-01-01!"), &["dates"]);
}

#[test]
fn keys_that_are_unknown_or_missing() {
    check(
        &with("[[flow]]\ncc = \"cubic\"\nacess_rate = \"1gbit\"!"),
        &["acess_rate", "did you mean `access_rate`?"],
    );
    check(
        &dumbbell("repeat = 3!", ""),
        &["[run]", "did you mean `repeats`?"],
    );
    check(&with("[[claims]]!\nid = \"a\""), &["did you mean `claim`?"]);
    check(
        &with("[[flow]]!\nname = \"x\""),
        &["no `cc` in [[flow]] `x`", "newreno"],
    );
    let no_rtt = dumbbell("", "").replace("rtt = \"30ms\"", "");
    check(&no_rtt.replace("[run]", "[run]!"), &["no `rtt`", "30.6ms"]);
    check("!\n[run]\nrtt = \"1ms\"", &["no `title`"]);
    check("title = \"t\"!", &["no `run`", "needs [run]"]);
    check(
        &dumbbell("", "").replace("[[flow]]", "[[no]]!"),
        &["unknown key `no`"],
    );
    let no_link =
        "title = \"t\"!\n[run]\nduration = \"5s\"\nrtt = \"30ms\"\n[[flow]]\ncc = \"cubic\"";
    check(no_link, &["at least one [[link]]"]);
}

#[test]
fn values_of_another_type_or_out_of_range() {
    check(
        &dumbbell("repeats = \"3\"!", ""),
        &["the text \"3\"", "whole number from 1"],
    );
    check(&dumbbell("repeats = 0!", ""), &["from 1 to 10000"]);
    check(&dumbbell("datagram_size = 100!", ""), &["1200"]);
    check(
        &dumbbell("warmup = \"5s\"!", ""),
        &["shorter than `duration`"],
    );
    check(&dumbbell("bin = \"1us\"!", ""), &["millionth"]);
    check(
        &dumbbell("cipher = \"rot13\"!", ""),
        &["known are null, aes128"],
    );
    check(
        &dumbbell("", "buffer = \"1bpd\"!"),
        &["`buffer`", "\"1bpd\"", "1bdp"],
    );
    check(&dumbbell("", "loss = 1.5!"), &["`loss`", "0.1%"]);
    check(&dumbbell("", "jitter = \"2d\"!"), &["units are ns"]);
    check(&dumbbell("", "queue = \"fifo\"!"), &["droptail"]);
    check(&dumbbell("", "ecn_threshold = \"full\"!"), &["30p"]);
    check(
        &dumbbell("", "reorder = { probability = 0.1 }!"),
        &["no `delay`"],
    );
    check(&dumbbell("", "backward = 5!"), &["write a table"]);
    check(
        &dumbbell("", "backward = { rat = 5 }!"),
        &["did you mean `rate`?"],
    );
    check(&dumbbell("", "name = \"a b\"!"), &["letters, digits"]);
    check(&with("[[flow]]\ncc = 3!"), &["text in quotes"]);
    check(
        &with("[[flow]]\ncc = \"cubik\"!"),
        &["unknown congestion controller"],
    );
    check(&with("[[flow]]\ncc = \"cubic:beta=2\"!"), &["beta"]);
    check(
        &with("[[flow]]\ncc = \"cubic\"\necn = 1!"),
        &["true or false"],
    );
    check(
        &with("[[flow]]\ncc = \"cubic\"\nstart = \"2000min\"!"),
        &["from 0ns to 86400s"],
    );
}

#[test]
fn things_that_do_not_fit_together() {
    check(&dumbbell("", "trace = \"synthetic:lte\"!"), &["not both"]);
    check(
        &dumbbell("", "columns = [\"rate\"]!"),
        &["goes with `trace`"],
    );
    check(
        &dumbbell("", "queue = \"codel\"\necn_threshold = \"30p\"")
            .replace("[[link]]", "[[link]]!"),
        &["set queue to droptail"],
    );
    check(&dumbbell("", "delay = \"16ms\"!"), &["half of `rtt`, 15ms"]);
    check(&dumbbell("", "delay = \"1ms\"!"), &["half of `rtt`, 15ms"]);
    check(
        &dumbbell("", "").replace(
            "[[link]]\nrate = \"20mbit\"",
            "[[link]]!\nbuffer = \"1bdp\"",
        ),
        &["no `rate`"],
    );
    check(
        &dumbbell("", "")
            .replace("[[link]]", "[[link]]!")
            .replace("20mbit\"\n", "20mbit\"\nbuffer = \"0p\"\n"),
        &["[[link]] `bottleneck`", "buffer is 0"],
    );
    let second = "[[flow]]\nname = \"x\"\ncc = \"cubic\"\n";
    check(&with(&format!("{second}exit = 2!")), &["from 0 to 1"]);
    check(&with(&format!("{second}enter = 1!")), &["another router"]);
    check(
        &with(&format!("{second}start = \"5s\"!")),
        &["after the run of 5s"],
    );
    check(
        &with(&format!("{second}count = 20\nstagger = \"1s\"!")),
        &["would start at 19s"],
    );
    check(
        &with(&format!("{second}start = \"2s\"\nstop = \"1s\"!")),
        &["after the last start"],
    );
    check(
        &with(&format!("{second}[[flow]]\ncc = \"cubic\"\nname = \"x\"!")),
        &["another flow or link"],
    );
    check(
        &with("[[flow]]\ncc = \"cubic\"\nname = \"bottleneck\"!"),
        &["another flow or link"],
    );
    check(
        &with(&format!(
            "{second}app = \"transfer\"\nbytes = 5\nstop = \"1s\"!"
        )),
        &["ends with its last byte"],
    );
}

#[test]
fn recovery() {
    let flow = |keys: &str| with(&format!("[[flow]]\ncc = \"cubic\"\n{keys}"));
    check(
        &flow("recovery = \"autorek\"!"),
        &["`recovery`", "autorec-paper", "arq"],
    );
    check(
        &flow("recovery = \"autorec-paper:alpha=30\"!"),
        &["`recovery`", "alpha"],
    );
    check(&flow("recovery = 5!"), &["a text in quotes"]);
}

#[test]
fn live_video() {
    let flow = |keys: &str| {
        with(&format!(
            "[[flow]]\ncc = \"cubic\"\napp = \"video\"\n{keys}"
        ))
    };
    let video = |keys: &str| flow(&format!("source = \"cbr:4mbit\"\n{keys}"));
    let none = with("[[flow]]!\ncc = \"cubic\"\napp = \"video\"");
    check(&none, &["no `source`", "cbr:4mbit"]);
    check(&flow("source = \"cbr:fast\"!"), &["`source`", "vbr:4mbit"]);
    check(&flow("source = \"cbr:4mbit,fps=0\"!"), &["`source`", "fps"]);
    check(
        &flow("source = \"file:no-such-file.mp4\"!"),
        &["`source`", "no-such-file.mp4"],
    );
    check(&video("mode = \"frame\"!"), &["did you mean `frames`?"]);
    check(&video("abandon = true!"), &["mode = \"frames\""]);
    check(
        &video("mode = \"frames\"\nrebuffer = \"1s\"!"),
        &["mode = \"stream\""],
    );
    check(&video("deadline = \"0ms\"!"), &["from 1ms"]);
    check(&video("first_frame = 5!"), &["unknown key `first_frame`"]);
}

/// A scenario whose only flow is a session.
fn session(keys: &str) -> String {
    let flow = format!("app = \"session\"\nsource = \"cbr:4mbit\"\n{keys}");
    dumbbell("", "").replace("app = \"bulk\"\ncc = \"cubic\"", &flow)
}

#[test]
fn sessions() {
    texts::load(&session("scheme = \"rtx\""));
    check(
        &session("").replace("[[flow]]", "[[flow]]!"),
        &["no `scheme`", "hairpin:lambda=1e-4"],
    );
    check(
        &session("scheme = \"rtx:5\"!"),
        &["`scheme`", "no settings"],
    );
    check(
        &session("scheme = \"hairpim\"!"),
        &["`scheme`", "autorec-paper", "hairpin"],
    );
    check(&session("scheme = \"rtx\"\npayload = 5!"), &["16 to 65000"]);
    check(
        &session("scheme = \"rtx\"\npacing = \"0mbit\"!"),
        &["above 0"],
    );
    check(
        &session("scheme = \"rtx\"\ndeadline = \"no\"!"),
        &["`deadline`"],
    );
    check(
        &session("scheme = \"rtx\"\nrecovery = \"arq\"!"),
        &["`recovery`", "its `scheme`"],
    );
    // A session is alone.
    let beside = session("scheme = \"rtx\"").replace("[[flow]]", "[[flow]]!");
    let message = ["a session in a case of 2 groups", "count = 0"];
    check(&(beside.clone() + "[[flow]]\ncc = \"cubic\""), &message);
    texts::load(&(beside.replace('!', "") + "[[flow]]\ncc = \"cubic\"\ncount = 0"));
    check(&beside.replace("app =", "count = 2\napp ="), &["`count` 1"]);
    check(
        &beside.replace("[[link]]", "[[link]]\nrate = \"5mbit\"\n[[link]]"),
        &["2 links"],
    );
}

#[test]
fn loss_models() {
    check(&dumbbell("", "loss = \"ge:0.2,0.8@30\"!"), &["@30ms"]);
    check(
        &dumbbell("", "loss = \"ge:0.2,0.8@1us\"").replace("[[link]]", "[[link]]!"),
        &["from 1 ms to a day"],
    );
}

#[test]
fn applications() {
    let flow = |keys: &str| with(&format!("[[flow]]\ncc = \"cubic\"\n{keys}"));
    check(&flow("app = \"bluk\"!"), &["did you mean `bulk`?"]);
    check(
        &flow("app = \"bulk\"\nbytes = 5!"),
        &["unknown key `bytes`"],
    );
    check(
        &flow("app = \"transfer\"\nbytes = \"5p\"!"),
        &["write bytes"],
    );
    check(&flow("app = \"transfer\"\nbytes = 0!"), &["1 byte"]);
    check(
        &flow("app = \"constant-rate\"\nrate = \"0mbit\"!"),
        &["above 0"],
    );
    check(
        &flow("app = \"on-off\"\non = { men = \"1s\" }!\noff = \"1s\""),
        &["did you mean `mean`?"],
    );
    check(
        &flow("app = \"on-off\"\non = \"0s\"!\noff = \"1s\""),
        &["from 1"],
    );
    let poisson = |keys: &str| flow(&format!("app = \"poisson\"\n{keys}"));
    check(
        &poisson("load = 0.5\nsizes = \"websearch\"!"),
        &["no such file", "dctcp-websearch"],
    );
    check(
        &poisson("load = 0.5\nsizes = [[1, 0.5], [2, 0.4]]!"),
        &["point 2", "shares must rise"],
    );
    check(&poisson("load = 0.5\nsizes = [[1]]!"), &["[bytes, share]"]);
    check(
        &poisson("sizes = [[1, 1]]\nload = 1\nper_second = 1!"),
        &["not both"],
    );
    check(
        &poisson("sizes = [[1, 1]]\nload = 50!"),
        &["at most a million"],
    );
}

#[test]
fn sweeps() {
    let sweep = |lines: &str| dumbbell(lines, "");
    check(&sweep("[sweep]\na = \"x\"!"), &["list of values"]);
    check(&sweep("[sweep]\na = []!"), &["at least one"]);
    check(&sweep("[sweep]\na = [1, 2, 1]!"), &["`1` is repeated"]);
    check(
        &sweep("[sweep]\na = [{ rtt = \"1ms\" }]!"),
        &["with a `label`"],
    );
    check(&sweep("[sweep]\nseed = [1]!"), &["reserved"]);
    check(&sweep("[sweep]\n\"a b\" = [1]!"), &["letters, digits"]);
    check(
        &sweep("[sweep]\na = [1]\n[[exclude]]\na = 2!"),
        &["no label `2` on axis `a`"],
    );
    check(
        &sweep("[sweep]\nlong = [1]\n[[exclude]]\nlonk = 1!"),
        &["did you mean `long`?"],
    );
    check(
        &sweep("[sweep]\na = [1]\n[[exclude]]!"),
        &["without labels"],
    );
    check(
        &sweep("[sweep]\na = [1]!\n[[exclude]]\na = 1"),
        &["every combination"],
    );
    check(
        &sweep("[sweep]\na = [1]\n[quick]\nsweep.a = [2]!"),
        &["no label `2`"],
    );
    check(
        &sweep("[sweep]\na = [1]\n[quick]\nsweep.a = []!"),
        &["keep at least one"],
    );
    check(
        &sweep("[quick]\ndurations = \"1s\"!"),
        &["did you mean `duration`?"],
    );
    let large = (0..3)
        .map(|axis| format!("a{axis} = {:?}", (0..30).collect::<Vec<_>>()))
        .collect::<Vec<_>>()
        .join("\n")
        .replacen(']', "]!", 1);
    check(
        &sweep(&format!("[sweep]\n{large}")),
        &["at most 10000 combinations"],
    );
}

#[test]
fn an_axis_that_changes_nothing() {
    check(
        &dumbbell(
            "[sweep]\nbuffer = [\"1bdp\", \"2bdp\"]!",
            "buffer = \"1bdp\"",
        ),
        &["axis `buffer` has no effect", "${buffer}"],
    );
}

#[test]
fn substitution() {
    check(
        &dumbbell("[sweep]\nlong = [1]", "loss = \"${lonk}\"!"),
        &["did you mean `long`?"],
    );
    check(
        &dumbbell("[sweep]\na = [1]", "loss = \"${a.b}\"!"),
        &["not tables"],
    );
    check(
        &dumbbell(
            "[sweep]\na = [{ label = \"x\", loss = 0 }]",
            "loss = \"${a.los}\"!",
        ),
        &["no field `los`", "did you mean `loss`?"],
    );
    check(
        &dumbbell("[sweep]\na = [1]", "loss = \"${a\"!"),
        &["must end with }"],
    );
    // The value is where the mistake is.
    check(
        &dumbbell(
            "[sweep]\nbuffer = [\"1bdp\", \"x\"]!",
            "buffer = \"${buffer}\"",
        ),
        &["`buffer` in [[link]] `bottleneck`", "\"x\""],
    );
    // Repeats and seed are the same for all cases.
    check(
        &dumbbell("repeats = \"${a}\"!\n[sweep]\na = [1]", ""),
        &["whole number"],
    );
}

const AXES: &str = "[sweep]\nbuffer = [\"1bdp\", \"2bdp\"]\ncc = [\"cubic\", \"newreno\"]\n\
                    [[exclude]]\nbuffer = \"2bdp\"\ncc = \"newreno\"\n";

/// A scenario over both axes.
fn grid() -> String {
    let text = dumbbell(AXES, "buffer = \"${buffer}\"");
    text.replace("cc = \"cubic\"\n", "cc = \"${cc}\"\n")
}

#[test]
fn claims() {
    let claim = |keys: &str| grid() + "[[claim]]\nid = \"A\"\nsays = \"s\"\n" + keys;
    let rest = "\nmeasure = \"goodput_mbps\"\npass = { min = 1 }\n";
    let all = "each = [\"buffer\", \"cc\"]";
    check(
        &(grid() + "[[claim]]!\nsays = \"s\""),
        &["short name of its own"],
    );
    check(
        &claim("untestable = \"why\"\nmeasure = \"x\"!"),
        &["has no test"],
    );
    check(
        &claim(&format!("{all}\nmeasure = \"goodput_mbps\"\npass = {{}}!")),
        &["what passes"],
    );
    check(
        &claim(&format!(
            "{all}\nmeasure = \"goodput_mbps\"\npass = {{ min = 2, max = 1 }}!"
        )),
        &["must not be above"],
    );
    check(
        &claim(&format!(
            "{all}\nmeasure = \"goodput_mbps\"\npass = {{ min = nan }}!"
        )),
        &["must be from"],
    );
    check(
        &claim(&format!("where = {{ bufer = \"1bdp\" }}!{rest}")),
        &["did you mean `buffer`?"],
    );
    check(
        &claim(&format!("where = {{ buffer = \"3bdp\" }}!{rest}")),
        &["no label `3bdp`"],
    );
    check(
        &claim(&format!("each = [\"buffer\"]{rest}")).replace("[[claim]]", "[[claim]]!"),
        &["axis `cc` is left unmentioned"],
    );
    check(
        &claim(&format!("{all}\naverage = \"cc\"!{rest}")),
        &["in `each` already"],
    );
    check(
        &claim(&format!("each = [\"cc\", \"cc\"]!{rest}")),
        &["twice"],
    );
    check(
        &claim(&format!(
            "where = {{ buffer = \"2bdp\", cc = \"newreno\" }}!{rest}"
        )),
        &["[[exclude]] on line"],
    );
    check(
        &claim(&format!(
            "where = {{ buffer = \"2bdp\", cc = \"cubic\" }}\ncompare = \"ratio\"\nagainst = {{ cc = \"newreno\" }}!{rest}"
        )),
        &["[[exclude]] on line"],
    );
    check(
        &claim(&format!("{all}\ncompare = \"ratio\"!{rest}")),
        &["needs `against`"],
    );
    check(
        &claim(&format!("{all}\nagainst = {{ cc = \"cubic\" }}!{rest}")),
        &["goes with `compare`"],
    );
    check(
        &claim(&format!(
            "{all}\ncompare = \"ratio\"\nagainst = {{}}!{rest}"
        )),
        &["labels that differ"],
    );
    check(
        &claim(&format!(
            "where = {{ buffer = \"1bdp\", cc = \"cubic\" }}\ncompare = \"ratio\"\nagainst = {{ cc = \"cubic\" }}!{rest}"
        )),
        &["the same case and measure"],
    );
    check(
        &claim(&format!(
            "each = \"buffer\"\naverage = \"cc\"\ncompare = \"ratio\"\nagainst = {{ cc = \"cubic\" }}!{rest}"
        )),
        &["is averaged"],
    );
    check(
        &claim(&format!("{all}\ntake = \"most\"!{rest}")),
        &["known are all, min, max, mean"],
    );
    check(
        &claim(&format!("{all}\ntake = {{ first_at_least = 1 }}!{rest}")),
        &["exactly one axis"],
    );
    check(
        &claim(&format!(
            "where = {{ buffer = \"1bdp\" }}\neach = \"cc\"\ntake = {{ first_at_most = 1 }}!{rest}"
        )),
        &["must begin with numbers", "cubic"],
    );
}

#[test]
fn figures() {
    let figure = |keys: &str| grid() + "[[figure]]\nid = \"f\"\ntitle = \"t\"\n" + keys;
    check(
        &figure("kind = \"pie\"!"),
        &["known are line, bar, cdf, series"],
    );
    check(
        &figure("kind = \"line\"\nx = \"bufer\"!\ny = \"jain\""),
        &["did you mean `buffer`?"],
    );
    check(
        &figure("kind = \"line\"\nx = \"buffer\"\ny = []!"),
        &["list of columns"],
    );
    check(
        &figure("kind = \"line\"\nx = \"buffer\"\ny = \"jain\"\nseries = [\"buffer\"]!"),
        &["is used already"],
    );
    check(
        &figure("kind = \"line\"\nx = \"buffer\"\ny = \"jain\"\nof = \"x\"!"),
        &["unknown key `of`"],
    );
    check(
        &figure("kind = \"line\"\nx_scale = \"logarithmic\"!\nx = \"buffer\"\ny = \"jain\""),
        &["linear, log"],
    );
    check(
        &figure("kind = \"cdf\"\ngroup = \"flow0\"!"),
        &["no transfers or viewers", "there are none"],
    );
    check(
        &figure("kind = \"series\"!\ny = \"flow0.cwnd_bytes\""),
        &["need `record`"],
    );
    let recorded =
        figure("kind = \"series\"\ny = \"flow0.cwnd\"!").replace("[run]", "[run]\nrecord = \"1s\"");
    check(
        &recorded,
        &["not recorded", "did you mean `flow0.cwnd_bytes`?"],
    );
}

fn message(text: &str, options: &LoadOptions) -> String {
    load_with(text, options).expect_err("wrong").to_string()
}

#[test]
fn settings_of_the_command_line() {
    let text = dumbbell("[sweep]\nload = [0.5]\npath = [{ label = \"dc\" }]", "");
    for (name, value, part) in [
        ("laod", "1", "did you mean `load`?"),
        ("load", "much", "write numbers"),
        ("load", ",", "at least one value"),
        ("load", "1,1", "is repeated"),
        ("path", "wan", "known are dc"),
        ("repeats", "many", "whole number"),
        ("duration", "10", "add a unit"),
    ] {
        let options = LoadOptions {
            set: vec![(name.to_owned(), value.to_owned())],
            ..LoadOptions::default()
        };
        let message = message(&text, &options);
        assert!(message.contains(part), "{message}");
    }
    let options = LoadOptions {
        repeats: Some(0),
        ..LoadOptions::default()
    };
    assert_eq!(message(&text, &options), "--repeats 0: from 1 to 10000");
}

#[test]
fn a_setting_that_does_not_fit_the_file_is_named() {
    let text = dumbbell("warmup = \"1s\"", "");
    let with = |set: &[(&str, &str)], record: Option<u64>| {
        let set = set.iter();
        let options = LoadOptions {
            set: set
                .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
                .collect(),
            record: record.map(|nanos| Some(std::time::Duration::from_nanos(nanos))),
            ..LoadOptions::default()
        };
        message(&text, &options)
    };
    let short = with(&[("duration", "900ms")], None);
    assert!(short.starts_with("--set duration=900ms: "), "{short}");
    assert!(short.contains("shorter than `duration`"), "{short}");
    // The setting that is wrong, and not others that only fit together.
    let set = [("duration", "900ms"), ("rtt", "long"), ("warmup", "0s")];
    let rtt = with(&set, Some(1_000_000));
    assert!(rtt.starts_with("--set rtt=long: "), "{rtt}");
    let record = with(&[], Some(1));
    assert!(record.starts_with("--record 1ns: "), "{record}");
    let both = with(&[("duration", "1"), ("rtt", "long")], None);
    assert!(
        both.starts_with("--set duration=1 --set rtt=long: "),
        "{both}"
    );
}

#[test]
fn absent_traces_say_how_to_name_their_folder() {
    let text = dumbbell("", "").replace("rate = \"20mbit\"", "trace = \"cell/x.csv\"");
    let folder = tempfile::tempdir().expect("temporary folder");
    for traces in [None, Some(folder.path().to_path_buf())] {
        let options = LoadOptions {
            traces: traces.clone(),
            ..LoadOptions::default()
        };
        match load_with(&text, &options) {
            Err(error @ ScenarioError::TraceMissing { .. }) => {
                let message = error.to_string();
                assert!(
                    message.contains("s.toml:7: trace `cell/x.csv`"),
                    "{message}"
                );
                assert!(
                    message.contains("--traces or SWIFTWATER_TRACES"),
                    "{message}"
                );
            }
            other => panic!("{other:?}"),
        }
    }
    let link = |line: &str| dumbbell("", "").replace("rate = \"20mbit\"", line);
    check(
        &link("trace = \"synthetic:5g\"!"),
        &["known are lte, wifi, leo"],
    );
    check(
        &link("trace = \"../secret\"!"),
        &["below the folder of traces"],
    );
    check(
        &link("trace = \"synthetic:lte\"\ncolumns = [\"rtt\"]!"),
        &["known are rate, delay, loss"],
    );
    check(
        &link("trace = \"synthetic:lte\"\ncolumns = [\"loss\"]!"),
        &["must be among them"],
    );
    check(
        &link("trace = \"synthetic:lte\"\nscale = 0!"),
        &["from 0.001 to 1000"],
    );
    check(
        &dumbbell("", "scale = 1.5!"),
        &["it goes with `trace`, not with `rate`"],
    );

    // A file that is there and makes no sense is an error of the scenario.
    std::fs::write(folder.path().join("bad.csv"), "t_ms,rate\n").expect("file");
    let options = LoadOptions {
        traces: Some(folder.path().to_path_buf()),
        ..LoadOptions::default()
    };
    let message = message(&link("trace = \"bad.csv\""), &options);
    assert!(
        message.contains("bad.csv: line 1: the header is"),
        "{message}"
    );
}

#[test]
fn errors_in_size_files_have_their_line() {
    let folder = tempfile::tempdir().expect("temporary folder");
    std::fs::create_dir(folder.path().join("sizes")).expect("folder");
    let text = with("[[flow]]\napp = \"poisson\"\ncc = \"cubic\"\nload = 0.1\nsizes = \"own\"\n");
    std::fs::write(folder.path().join("s.toml"), text).expect("file");
    for (sizes, part) in [
        ("# sizes\n100;1\n", "sizes/own.csv:2: write a size in bytes"),
        ("100,0.5\n\n50,1\n", "sizes/own.csv:3: sizes must rise"),
        ("100,0.5\n", "sizes/own.csv:1: the last share must be 1"),
        ("", "the last share must be 1"),
    ] {
        std::fs::write(folder.path().join("sizes/own.csv"), sizes).expect("file");
        let error = Library::folder(folder.path())
            .load("s", &LoadOptions::default())
            .expect_err("wrong");
        assert!(error.to_string().contains(part), "{error}");
    }
}

#[test]
fn names_that_are_not_there() {
    let library = Library::embedded();
    let options = LoadOptions::default();
    for (name, part) in [
        ("examples/frist", "did you mean `examples/first`?"),
        ("../examples/first", "no scenario"),
        ("/etc/passwd", "no scenario"),
        ("", "no scenario"),
    ] {
        let error = library
            .load(name, &options)
            .expect_err("not there")
            .to_string();
        assert!(error.contains(part), "{error}");
        assert!(library.select(name).is_err());
    }
    let example = library
        .select("exampels")
        .expect_err("not there")
        .to_string();
    assert!(example.contains("did you mean `examples`?"), "{example}");
    let missing = library.select("no/such.toml").expect_err("not there");
    assert!(matches!(missing, ScenarioError::Unreadable { .. }));
    assert!(matches!(
        Library::folder("/no/such/folder").list(),
        Err(ScenarioError::Unreadable { .. })
    ));
}

/// Loads an arbitrary text; an error must be one clear line with a position in it.
fn survives(text: &str) -> Result<(), TestCaseError> {
    for quick in [false, true] {
        let options = LoadOptions {
            quick,
            ..LoadOptions::default()
        };
        match load_with(text, &options) {
            Err(ScenarioError::Invalid { line, .. }) => {
                prop_assert!(line >= 1 && line <= text.lines().count() + 1);
            }
            Ok(experiment) => prop_assert!(!experiment.cases.is_empty()),
            Err(ScenarioError::TraceMissing { .. }) => {}
            Err(other) => prop_assert!(false, "{other}"),
        }
        if let Err(error) = load_with(text, &options) {
            prop_assert!(!error.to_string().contains('\n'), "{error}");
        }
    }
    Ok(())
}

const FULL: &str = include_str!("data/full.toml");

/// Pieces that a mutation puts in.
fn piece() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("\"${buffer}\"".to_owned()),
        Just("\"${path.rtt}\"".to_owned()),
        Just("\"${path}\"".to_owned()),
        Just("[]".to_owned()),
        Just("{}".to_owned()),
        Just("[[1, 2], [3]]".to_owned()),
        Just("{ mean = 1, label = \"x\" }".to_owned()),
        Just("true".to_owned()),
        Just("nan".to_owned()),
        Just("-inf".to_owned()),
        Just("1e308".to_owned()),
        Just("0xffff".to_owned()),
        Just("9223372036854775807".to_owned()),
        Just("-1".to_owned()),
        Just("0".to_owned()),
        Just("\"\"".to_owned()),
        Just("\"1e9s\"".to_owned()),
        Just("\"10000000mbit\"".to_owned()),
        Just("\"18446744073709551615\"".to_owned()),
        Just("1979-05-27".to_owned()),
        "\"[^\"\\\\\\n]{0,12}\"",
        any::<i64>().prop_map(|number| number.to_string()),
        any::<f64>().prop_map(|number| format!("{number:e}")),
    ]
}

#[test]
fn the_base_of_mutations_is_valid() {
    let experiment = load_with(FULL, &LoadOptions::default()).expect("valid");
    assert_eq!(experiment.cases.len(), 10);
    assert_eq!(experiment.claims.len(), 4);
    assert_eq!(experiment.figures.len(), 4);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    #[test]
    fn no_text_panics(text in "\\PC*") {
        survives(&text)?;
    }

    #[test]
    fn no_other_value_panics(changes in prop::collection::vec((any::<prop::sample::Index>(), piece()), 1..4)) {
        let mut lines: Vec<String> = FULL.lines().map(str::to_owned).collect();
        for (index, piece) in changes {
            let line = index.get_mut(&mut lines);
            if let Some((key, _)) = line.split_once('=') {
                *line = format!("{key}= {piece}");
            }
        }
        survives(&lines.join("\n"))?;
    }

    #[test]
    fn no_missing_or_doubled_line_panics(changes in prop::collection::vec((any::<prop::sample::Index>(), any::<bool>()), 1..4)) {
        let mut lines: Vec<String> = FULL.lines().map(str::to_owned).collect();
        for (index, doubled) in changes {
            let place = index.index(lines.len());
            if doubled {
                lines.insert(place, lines[place].clone());
            } else {
                lines.remove(place);
            }
        }
        survives(&lines.join("\n"))?;
    }

    #[test]
    fn no_other_bytes_panic(changes in prop::collection::vec((any::<prop::sample::Index>(), any::<char>()), 1..8)) {
        let mut text: Vec<char> = FULL.chars().collect();
        for (index, other) in changes {
            *index.get_mut(&mut text) = other;
        }
        survives(&text.into_iter().collect::<String>())?;
    }
}
