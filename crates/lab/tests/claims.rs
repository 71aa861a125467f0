//! Claims against tables made by hand.

use crate::texts::{dumbbell, load, load_with};
use swiftwater_lab::claim::{Outcome, Verdict, evaluate, half_width};
use swiftwater_lab::scenario::{Experiment, LoadOptions};
use swiftwater_lab::store::{Row, Table};

/// An experiment of `buffer` x `cc` with three repeats and one claim.
fn experiment(claim: &str) -> Experiment {
    load(&text(claim))
}

fn text(claim: &str) -> String {
    let axes = "repeats = 3\n[sweep]\nbuffer = [\"1bdp\", \"2bdp\", \"4bdp\"]\n\
                cc = [\"cubic\", \"newreno\"]\n[quick]\nsweep.cc = [\"cubic\"]\n";
    let scenario = dumbbell(axes, "buffer = \"${buffer}\"");
    scenario.replace("cc = \"cubic\"\n", "cc = \"${cc}\"\n")
        + "[[claim]]\nid = \"A\"\nsays = \"it is so\"\npaper = \"+1 %\"\n"
        + claim
}

/// A table in which `value` gives the measure of a run by its labels and repeat.
fn table(experiment: &Experiment, value: impl Fn(&str, &str, u32) -> Option<f64>) -> Table {
    let rows = experiment.runs().map(|run| {
        let labels = experiment.cases[run.case].labels.clone();
        let goodput = value(&labels[0], &labels[1], run.repeat);
        Row {
            run,
            labels,
            values: vec![goodput, goodput.map(|goodput| 2.0 * goodput)],
        }
    });
    Table {
        axes: vec!["buffer".to_owned(), "cc".to_owned()],
        measures: vec!["goodput_mbps".to_owned(), "jain".to_owned()],
        rows: rows.collect(),
    }
}

fn verdict(claim: &str, value: impl Fn(&str, &str, u32) -> Option<f64>) -> Verdict {
    let experiment = experiment(claim);
    let mut verdicts = evaluate(&experiment, &table(&experiment, value));
    assert_eq!(verdicts.len(), 1);
    verdicts.remove(0)
}

/// By buffer 10, 20, 40, for NewReno half of it, plus 1 for each repeat after the first, minus 1.
#[allow(clippy::unnecessary_wraps, reason = "a table's values may be missing")]
fn plain(buffer: &str, cc: &str, repeat: u32) -> Option<f64> {
    let base = match buffer {
        "1bdp" => 10.0,
        "2bdp" => 20.0,
        _ => 40.0,
    };
    let base = if cc == "newreno" { base / 2.0 } else { base };
    Some(base + f64::from(repeat) - 1.0)
}

#[track_caller]
fn close(value: Option<f64>, expected: f64) {
    let value = value.expect("a number");
    assert!((value - expected).abs() < 1e-6, "{value} is not {expected}");
}

/// Student's t for 95 % and two degrees of freedom.
const T2: f64 = 4.302_652_729_911_275;

#[test]
fn intervals_are_those_of_the_t_table() {
    // 97.5 % quantiles for 1, 4, 9 and 30 degrees of freedom.
    for (count, t) in [
        (2, 12.706_205),
        (5, 2.776_445),
        (10, 2.262_157),
        (31, 2.042_272),
    ] {
        let values: Vec<f64> = (0..count).map(f64::from).collect();
        let n = f64::from(count);
        // The variance of 0 to n - 1 is n (n + 1) / 12.
        let expected = t * (n * (n + 1.0) / 12.0 / n).sqrt();
        let width = half_width(&values).expect("several");
        assert!(
            (width / expected - 1.0).abs() < 1e-6,
            "{count}: {width} {expected}"
        );
    }
    assert_eq!(half_width(&[3.0, 3.0, 3.0]), Some(0.0));
    assert_eq!(half_width(&[3.0]), None);
    assert_eq!(half_width(&[]), None);
    assert_eq!(half_width(&[1.0, f64::NAN]), None);
    assert_eq!(half_width(&[1.0, f64::INFINITY]), None);
}

#[test]
fn a_value_is_the_mean_of_the_repeats() {
    let claim = "measure = \"goodput_mbps\"\nwhere = { buffer = \"2bdp\", cc = \"cubic\" }\n\
                 pass = { min = 17.5, max = 22.5 }\nnote = \"n\"\n";
    let verdict = verdict(claim, plain);
    assert_eq!(verdict.outcome, Outcome::Pass);
    assert_eq!(
        (verdict.id.as_str(), verdict.says.as_str()),
        ("A", "it is so")
    );
    assert_eq!(
        (verdict.paper.as_str(), verdict.note.as_str()),
        ("+1 %", "n")
    );
    close(verdict.value, 20.0);
    // 19, 20, 21: standard deviation 1.
    close(verdict.margin, T2 / 3.0_f64.sqrt());
    assert_eq!(verdict.here, "20.0 ± 2.5");
    assert_eq!(verdict.band, "17.5 to 22.5");
    assert_eq!(verdict.runs, Some((3, 3)));
    assert_eq!(verdict.detail, "mean of 3 repeats");
}

const PAIR: &str = "measure = \"goodput_mbps\"\nwhere = { buffer = \"2bdp\", cc = \"cubic\" }\n\
                    against = { cc = \"newreno\" }\n";

#[test]
fn differences_are_paired_by_seed() {
    // Both sides vary alike with the seed: their difference doesn't vary at all.
    let claim = format!("{PAIR}compare = \"difference\"\npass = {{ min = 10 }}\n");
    let verdict = verdict(&claim, plain);
    close(verdict.value, 10.0);
    close(verdict.margin, 0.0);
    assert_eq!(verdict.outcome, Outcome::Pass);
    assert_eq!(verdict.here, "+10.0 ± 0.0");
    assert_eq!(verdict.band, "at least +10");
}

#[test]
fn ratios_and_changes_are_of_the_means() {
    let claim = format!("{PAIR}compare = \"ratio\"\npass = {{ max = 1.9 }}\n");
    let ratio = verdict(&claim, plain);
    // (19 + 20 + 21) / (9 + 10 + 11).
    close(ratio.value, 2.0);
    // (a - 2 b) / mean(b): 0.1, 0, -0.1.
    close(ratio.margin, T2 * 0.1 / 3.0_f64.sqrt());
    // 1.75 to 2.25 contains 1.9.
    assert_eq!(ratio.outcome, Outcome::Open);
    assert_eq!(
        (ratio.here.as_str(), ratio.band.as_str()),
        ("2.00x ± 0.25", "at most 1.9x")
    );

    let claim = format!("{PAIR}compare = \"change\"\npass = {{ min = 0.2 }}\n");
    let value = |_: &str, cc: &str, _: u32| Some(if cc == "cubic" { 14.88 } else { 10.0 });
    let change = verdict(&claim, value);
    close(change.value, 0.488);
    assert_eq!(change.here, "+48.8 % ± 0.0 %");
    assert_eq!(
        (change.outcome, change.band.as_str()),
        (Outcome::Pass, "at least +20 %")
    );
}

#[test]
fn another_measure_may_be_the_other_side() {
    let claim = "measure = \"goodput_mbps\"\nwhere = { buffer = \"1bdp\", cc = \"cubic\" }\n\
                 compare = \"ratio\"\nagainst = { measure = \"jain\" }\npass = { max = 1 }\n";
    let verdict = verdict(claim, plain);
    close(verdict.value, 0.5);
    close(verdict.margin, 0.0);
}

#[test]
fn averages_are_taken_before_comparing() {
    let claim = "measure = \"goodput_mbps\"\nwhere = { cc = \"cubic\" }\naverage = [\"buffer\"]\n\
                 compare = \"ratio\"\nagainst = { cc = \"newreno\" }\npass = { min = 1 }\n";
    let value = |buffer: &str, cc: &str, _: u32| {
        Some(match (buffer, cc) {
            ("1bdp", "cubic") => 1.0,
            ("2bdp", "cubic") => 2.0,
            (_, "cubic") => 6.0,
            ("1bdp", _) => 2.0,
            _ => 1.0,
        })
    };
    // Mean 3 against mean 4/3.
    close(verdict(claim, value).value, 2.25);
}

fn over_buffers(take: &str, pass: &str) -> String {
    format!(
        "measure = \"goodput_mbps\"\nwhere = {{ cc = \"cubic\" }}\neach = [\"buffer\"]\n\
         take = {take}\npass = {{ {pass} }}\n"
    )
}

#[test]
fn a_verdict_needs_the_whole_interval() {
    // 20 ± 2.48.
    let judged = |pass: &str| {
        let claim = format!(
            "measure = \"goodput_mbps\"\nwhere = {{ buffer = \"2bdp\", cc = \"cubic\" }}\n\
             pass = {{ {pass} }}\n"
        );
        verdict(&claim, plain).outcome
    };
    for (pass, outcome) in [
        ("min = 17.5", Outcome::Pass),
        ("min = 17.6", Outcome::Open),
        ("min = 22.4", Outcome::Open),
        ("min = 22.5", Outcome::Fail),
        ("max = 22.5", Outcome::Pass),
        ("max = 22.4", Outcome::Open),
        ("max = 17.5", Outcome::Fail),
        ("min = 19.9, max = 20.1", Outcome::Open),
    ] {
        assert_eq!(judged(pass), outcome, "{pass}");
    }
}

#[test]
fn all_points_must_pass_and_the_worst_is_shown() {
    // 10, 20 and 40, each ± 2.48; for three points at once ± 4.4.
    let some = verdict(&over_buffers("\"all\"", "min = 15"), plain);
    assert_eq!(some.outcome, Outcome::Fail);
    close(some.value, 10.0);
    assert_eq!(some.detail, "worst at buffer=1bdp; 2 of 3 points pass");
    let nearly = verdict(&over_buffers("\"all\"", "min = 13"), plain);
    assert_eq!(
        nearly.outcome,
        Outcome::Open,
        "one of three is outside by chance"
    );
    let crossed = verdict(&over_buffers("\"all\"", "min = 11"), plain);
    assert_eq!(
        (crossed.outcome, crossed.detail.as_str()),
        (
            Outcome::Open,
            "worst at buffer=1bdp; 2 of 3 points pass, 1 open"
        )
    );
    let upper = verdict(&over_buffers("\"all\"", "max = 43"), plain);
    assert_eq!(upper.outcome, Outcome::Pass);
    assert_eq!(upper.detail, "worst at buffer=4bdp; 3 of 3 points pass");
    // 20 is 8 inside; 10 is 2 outside, 40 is 12 outside.
    let both = verdict(&over_buffers("\"all\"", "min = 12, max = 28"), plain);
    close(both.value, 40.0);
    assert_eq!(
        both.detail,
        "worst at buffer=4bdp; 1 of 3 points pass, 1 open"
    );
}

#[test]
fn the_smallest_largest_and_mean_point() {
    let min = verdict(&over_buffers("\"min\"", "min = 15"), plain);
    close(min.value, 10.0);
    assert_eq!(
        (min.outcome, min.detail.as_str()),
        (Outcome::Fail, "smallest of 3 points, at buffer=1bdp")
    );
    let max = verdict(&over_buffers("\"max\"", "min = 11"), plain);
    close(max.value, 40.0);
    assert_eq!(
        (max.outcome, max.detail.as_str()),
        (Outcome::Pass, "largest of 3 points, at buffer=4bdp")
    );
    let mean = verdict(&over_buffers("\"mean\"", "min = 11"), plain);
    close(mean.value, 70.0 / 3.0);
    // Every point has the same residuals -1, 0, 1, and so has their mean.
    close(mean.margin, T2 / 3.0_f64.sqrt());
    assert_eq!(mean.detail, "mean of 3 points");
}

#[test]
fn the_largest_of_noisy_points_has_an_interval_for_all_of_them() {
    // Three points of one mean: the largest is so by chance. t for 0.05 / 3 and two degrees of freedom.
    let t = 7.648_861;
    let value = |buffer: &str, _: &str, repeat: u32| {
        let noise = f64::from(repeat) - 1.0;
        Some(match buffer {
            "1bdp" => 10.0 + noise,
            "2bdp" => 10.5 - noise,
            _ => 9.5 + noise,
        })
    };
    let largest = verdict(&over_buffers("\"max\"", "min = 7"), value);
    close(largest.value, 10.5);
    assert_eq!(largest.margin, None);
    let interval = largest.interval.expect("three repeats");
    let half = t / 3.0_f64.sqrt();
    assert!((interval.low - (10.5 - half)).abs() < 1e-3, "{interval:?}");
    // That it is at most so much is wrong only if the end of the point is that is the largest.
    let own = T2 / 3.0_f64.sqrt();
    assert!((interval.high - (10.5 + own)).abs() < 1e-3, "{interval:?}");
    assert_eq!(largest.outcome, Outcome::Open);
    assert_eq!(largest.here, "10.5 [6.08, 13.0]");
}

#[test]
fn where_a_threshold_is_first_reached() {
    let claim = over_buffers("{ first_at_least = 30 }", "min = 2, max = 4");
    let crossing = verdict(&claim, plain);
    // From 20 at 2 to 40 at 4; by repeats from 19 or 21, which moves it by 0.1.
    close(crossing.value, 3.0);
    close(crossing.margin, T2 * 0.1 / 3.0_f64.sqrt());
    assert_eq!(crossing.outcome, Outcome::Pass);
    assert_eq!(
        (crossing.here.as_str(), crossing.band.as_str()),
        ("3.00bdp ± 0.25", "2bdp to 4bdp")
    );
    assert_eq!(crossing.detail, "between 2bdp and 4bdp");

    let first = verdict(&over_buffers("{ first_at_least = 5 }", "max = 1"), plain);
    close(first.value, 1.0);
    assert_eq!(
        (first.outcome, first.detail.as_str()),
        (Outcome::Pass, "already at 1bdp, the first")
    );

    let most = verdict(
        &over_buffers("{ first_at_most = 30 }", "max = 1"),
        |b, cc, r| plain(b, cc, r).map(|value| 50.0 - value),
    );
    // 40, 30, 10.
    close(most.value, 2.0);
    assert_eq!(most.outcome, Outcome::Fail);

    let never = verdict(&over_buffers("{ first_at_least = 50 }", "min = 0"), plain);
    assert_eq!((never.outcome, never.value), (Outcome::Fail, None));
    assert_eq!(
        (never.here.as_str(), never.detail.as_str()),
        ("never", "50 is never reached; nearest 40.0 at buffer=4bdp")
    );
}

#[test]
fn missing_rows_give_no_verdict() {
    let experiment = experiment(&over_buffers("\"all\"", "min = 0"));
    let mut table = table(&experiment, plain);
    let without = |table: &Table| evaluate(&experiment, table).remove(0);
    // A row of NewReno isn't needed.
    table
        .rows
        .retain(|row| row.labels[1] == "cubic" || row.run.repeat == 0);
    assert_eq!(without(&table).outcome, Outcome::Pass);
    table
        .rows
        .retain(|row| row.run.repeat < 2 || row.labels[0] == "1bdp");
    let verdict = without(&table);
    assert_eq!((verdict.outcome, verdict.value), (Outcome::NoData, None));
    assert_eq!(
        (verdict.here.as_str(), verdict.detail.as_str()),
        ("", "2 of 9 runs are missing")
    );
    assert_eq!(without(&Table::default()).detail, "9 of 9 runs are missing");
}

#[test]
fn rows_of_further_repeats_are_left_out() {
    let experiment = experiment(&over_buffers("\"mean\"", "min = 0"));
    let mut table = table(&experiment, plain);
    let mut extra = table.rows[0].clone();
    extra.run.repeat = 3;
    extra.values = vec![Some(1e9); 2];
    table.rows.push(extra);
    close(evaluate(&experiment, &table)[0].value, 70.0 / 3.0);
}

#[test]
fn runs_with_nothing_to_measure_are_left_out_in_pairs() {
    // Without its second repeat, one side of the ratio has no value there; the pair is left out.
    let claim = format!("{PAIR}compare = \"ratio\"\npass = {{ min = 1.5 }}\n");
    let paired = verdict(&claim, |buffer, cc, repeat| {
        plain(buffer, cc, repeat).filter(|_| (cc, repeat) != ("newreno", 1))
    });
    // 19 and 21 against 9 and 11.
    close(paired.value, 2.0);
    assert_eq!(paired.runs, Some((2, 3)));
    assert_eq!(
        paired.detail,
        "mean of 2 repeats; 2 of 3 pairs of runs had something to measure"
    );

    let claim = over_buffers("\"all\"", "min = 5");
    let some = verdict(&claim, |buffer, cc, repeat| {
        plain(buffer, cc, repeat).filter(|_| (buffer, repeat) != ("4bdp", 1))
    });
    assert_eq!((some.outcome, some.runs), (Outcome::Pass, Some((8, 9))));
    let over_points = verdict(
        &over_buffers("\"mean\"", "min = 5"),
        |buffer, cc, repeat| plain(buffer, cc, repeat).filter(|_| (buffer, repeat) != ("4bdp", 1)),
    );
    close(over_points.value, 70.0 / 3.0);
    // The repeats that every point has: -1 and 1.
    close(over_points.margin, 12.706_204_736_432_095);
    let none = verdict(&claim, |_, _, _| None);
    assert_eq!((none.outcome, none.value), (Outcome::Open, None));
    assert!(none.detail.contains("9 of 9 runs"), "{}", none.detail);
    assert!(none.detail.ends_with("repeat 2, ..."), "{}", none.detail);
}

#[test]
fn an_event_that_never_happens_fails() {
    let claim = over_buffers("\"all\"", "max = 100").replace("goodput_mbps", "convergence_s");
    let experiment = experiment(&claim);
    let mut table = table(&experiment, |buffer, cc, repeat| {
        plain(buffer, cc, repeat).filter(|_| (buffer, repeat) != ("2bdp", 1))
    });
    table.measures[0] = "convergence_s".to_owned();
    let verdict = evaluate(&experiment, &table).remove(0);
    assert_eq!((verdict.outcome, verdict.value), (Outcome::Fail, None));
    assert_eq!(
        (verdict.here.as_str(), verdict.detail.as_str()),
        (
            "never",
            "nothing to measure in 1 of 9 runs: convergence_s at buffer=2bdp, cc=cubic, repeat 1"
        )
    );
}

#[test]
fn nan_never_passes() {
    for take in ["\"all\"", "\"min\"", "\"max\"", "\"mean\""] {
        let nan = verdict(&over_buffers(take, "min = -1e9"), |buffer, cc, repeat| {
            if buffer == "2bdp" {
                Some(f64::NAN)
            } else {
                plain(buffer, cc, repeat)
            }
        });
        assert_eq!(nan.outcome, Outcome::Fail, "{take}");
        assert_eq!(
            (nan.here.as_str(), nan.margin),
            ("not a number", None),
            "{take}"
        );
    }
}

#[test]
fn dividing_by_zero_fails_and_says_so() {
    let something = |_: &str, cc: &str, _: u32| Some(if cc == "cubic" { 5.0 } else { 0.0 });
    let nothing = |_: &str, _: &str, _: u32| Some(0.0);
    for compare in ["ratio", "change"] {
        let claim = format!("{PAIR}compare = \"{compare}\"\npass = {{ min = 0 }}\n");
        for verdict in [verdict(&claim, something), verdict(&claim, nothing)] {
            assert_eq!((verdict.outcome, verdict.value), (Outcome::Fail, None));
            assert!(verdict.detail.contains("divided by zero"), "{verdict:?}");
        }
    }
    // One point is enough, whatever the others.
    for take in ["\"max\"", "{ first_at_least = 1 }"] {
        let claim = format!(
            "measure = \"goodput_mbps\"\nwhere = {{ cc = \"cubic\" }}\neach = [\"buffer\"]\n\
             compare = \"ratio\"\nagainst = {{ cc = \"newreno\" }}\ntake = {take}\n\
             pass = {{ min = 0 }}\n"
        );
        let verdict = verdict(&claim, |buffer, cc, repeat| {
            plain(buffer, cc, repeat).map(|value| match (buffer, cc) {
                ("4bdp", "newreno") => 0.0,
                _ => value,
            })
        });
        assert_eq!(verdict.outcome, Outcome::Fail);
        assert!(verdict.detail.ends_with("at buffer=4bdp"), "{verdict:?}");
    }
    // A difference divides by nothing.
    let claim = format!("{PAIR}compare = \"difference\"\npass = {{ min = 0 }}\n");
    assert_eq!(verdict(&claim, nothing).outcome, Outcome::Pass);
}

#[test]
fn a_single_repeat_has_no_interval() {
    let text = text("measure = \"goodput_mbps\"\nwhere = { buffer = \"1bdp\", cc = \"cubic\" }\npass = { min = 0 }\n")
        .replace("repeats = 3", "repeats = 1");
    let experiment = load(&text);
    let verdict = evaluate(&experiment, &table(&experiment, |_, _, _| Some(12.345))).remove(0);
    assert_eq!((verdict.here.as_str(), verdict.margin), ("12.3", None));
    assert_eq!(verdict.detail, "one run");
    assert_eq!(verdict.outcome, Outcome::Open);
}

#[test]
fn the_short_form_judges_what_it_has() {
    let quick = LoadOptions {
        quick: true,
        ..LoadOptions::default()
    };
    let compared = text(&format!(
        "{PAIR}compare = \"ratio\"\npass = {{ min = 0 }}\n"
    ));
    let experiment = load_with(&compared, &quick).expect("valid");
    let verdict = evaluate(&experiment, &table(&experiment, plain)).remove(0);
    assert_eq!(verdict.outcome, Outcome::NoData);
    assert_eq!(verdict.detail, "its cases are no part of this run");

    let alone = text(
        "measure = \"goodput_mbps\"\nwhere = { buffer = \"1bdp\" }\neach = \"cc\"\npass = { min = 0 }\n",
    );
    let experiment = load_with(&alone, &quick).expect("valid");
    let verdict = evaluate(&experiment, &table(&experiment, plain)).remove(0);
    assert_eq!(
        (verdict.outcome, verdict.detail.as_str()),
        (Outcome::Pass, "only cc=cubic; mean of 3 repeats")
    );
}

#[test]
fn combinations_that_are_left_out_are_no_points() {
    let claim = over_buffers("\"all\"", "min = 0");
    let text = text(&claim).replace(
        "[quick]",
        "[[exclude]]\nbuffer = \"2bdp\"\ncc = \"newreno\"\n[quick]",
    );
    let text = text.replace("where = { cc = \"cubic\" }", "where = { cc = \"newreno\" }");
    let experiment = load(&text);
    let verdict = evaluate(&experiment, &table(&experiment, plain)).remove(0);
    assert_eq!(verdict.detail, "worst at buffer=1bdp; 2 of 2 points pass");
}

#[test]
fn claims_that_cannot_be_tested_say_why() {
    let verdict = verdict("untestable = \"needs a second platform\"\n", plain);
    assert_eq!(verdict.outcome, Outcome::NotTestable);
    assert_eq!(
        (verdict.here.as_str(), verdict.detail.as_str()),
        ("", "needs a second platform")
    );
    let json = serde_json::to_value(&verdict).expect("plain data");
    assert_eq!(json["outcome"], "not-testable");
}

#[test]
fn numbers_have_sensible_digits() {
    let claim = "measure = \"goodput_mbps\"\nwhere = { buffer = \"1bdp\", cc = \"cubic\" }\npass = { min = 0 }\n";
    let text = text(claim).replace("repeats = 3", "repeats = 1");
    let experiment = load(&text);
    for (value, here) in [
        (0.0, "0"),
        (0.001_234_5, "0.00123"),
        (0.983_4, "0.983"),
        (9.876, "9.88"),
        (123.4, "123"),
        (98_765.4, "98765"),
        (-1.5, "-1.50"),
    ] {
        let table = table(&experiment, |_, _, _| Some(value));
        assert_eq!(evaluate(&experiment, &table)[0].here, here);
    }
}
