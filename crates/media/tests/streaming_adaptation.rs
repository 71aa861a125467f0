//! Bitrate adaptation and the score that it works for.

use std::time::Duration;

use proptest::prelude::*;
use swiftwater_media::streaming::adaptation::{
    Adaptation, AdaptationKind, Bola, Mpc, RateRule, Situation,
};
use swiftwater_media::streaming::{Chunk, Ladder, Qoe, QoeWeights};
use swiftwater_units::Bandwidth;

const MAXIMUM: Duration = Duration::from_secs(30);

/// A chunk of 4 s of nominal size.
fn nominal(ladder: &Ladder) -> Chunk {
    let duration = Duration::from_secs(4);
    let bytes = ladder
        .renditions()
        .iter()
        .map(|r| r.rate.bytes_in(duration));
    Chunk {
        duration,
        bytes: bytes.collect(),
    }
}

/// The choice among `ladder` with so many seconds buffered and so many Mbit/s predicted.
fn choice(
    adaptation: &mut dyn Adaptation,
    previous: Option<usize>,
    buffered: f64,
    predicted: Option<f64>,
) -> usize {
    let ladder = Ladder::chorus();
    let chunk = nominal(&ladder);
    let upcoming = vec![&chunk; adaptation.lookahead()];
    adaptation.choose(&Situation {
        ladder: &ladder,
        upcoming: &upcoming,
        previous,
        buffered: Duration::from_secs_f64(buffered),
        maximum: MAXIMUM,
        predicted: predicted.map(|mbps| Bandwidth::from_bps((mbps * 1e6) as u64)),
    })
}

#[test]
fn without_a_prediction_the_first_chunk_is_the_lowest() {
    for kind in AdaptationKind::ALL {
        assert_eq!(choice(&mut *kind.build(), None, 20.0, None), 0, "{kind}");
        assert_eq!(kind.to_string().parse(), Ok(kind));
    }
    assert_eq!(choice(&mut Mpc::default(), Some(3), 20.0, Some(0.0)), 0);
    assert!("best".parse::<AdaptationKind>().is_err());
}

#[test]
fn the_rate_rule_takes_nine_tenths() {
    let mut rule = RateRule::default();
    let mut at = |mbps| choice(&mut rule, Some(0), 0.0, Some(mbps));
    assert_eq!(
        [at(0.5), at(2.7), at(2.8), at(8.8), at(8.9), at(99.0)],
        [0, 0, 1, 2, 3, 4]
    );
}

#[test]
fn bola_raises_the_level_with_the_buffer() {
    let mut bola = Bola::default();
    let mut last = 0;
    for tenths in 0..400 {
        let level = choice(&mut bola, Some(0), f64::from(tenths) / 10.0, Some(1.0));
        assert!(level >= last, "{tenths}");
        last = level;
    }
    assert_eq!(last, 4);
    assert_eq!(choice(&mut bola, Some(4), 0.0, Some(99.0)), 0);
    assert_eq!(choice(&mut bola, None, 25.0, Some(99.0)), 0);
}

#[test]
fn bola_changes_level_where_its_objective_does() {
    // V = (7.5 - 1) / (ln 16 + 5). Levels 0 and 1 are equal where
    // (V 5 - Q) = (V (ln 2.5 + 5) - Q) / 2.5.
    let control = 6.5 / (16_f64.ln() + 5.0);
    let equal = (2.5 * control * 5.0 - control * (2.5_f64.ln() + 5.0)) / 1.5;
    let mut bola = Bola::default();
    assert_eq!(choice(&mut bola, Some(0), 4.0 * equal - 0.01, None), 0);
    assert_eq!(choice(&mut bola, Some(0), 4.0 * equal + 0.01, None), 1);
}

#[test]
fn mpc_risks_no_stall_and_uses_a_full_buffer() {
    let mut mpc = Mpc::default();
    // At 5 Mbit/s with an empty buffer anything but the lowest stalls for long.
    assert_eq!(choice(&mut mpc, Some(0), 0.0, Some(5.0)), 0);
    // 30 s are enough for five chunks of 16 Mbit/s at 12 Mbit/s.
    assert_eq!(choice(&mut mpc, Some(3), 30.0, Some(12.0)), 4);
    assert_eq!(choice(&mut mpc, Some(3), 4.0, Some(12.0)), 3);
}

/// The value of a sequence of levels, summed forward.
fn value(
    levels: &[usize],
    chunks: &[Chunk],
    rates: &[f64],
    weights: &QoeWeights,
    mut buffered: f64,
    mut previous: Option<usize>,
    bps: f64,
) -> f64 {
    let mut sum = 0.0;
    for (chunk, level) in chunks.iter().zip(levels) {
        let seconds = (chunk.bytes[*level] * 8) as f64 / bps;
        sum += rates[*level] - weights.stall * (seconds - buffered).max(0.0);
        if let Some(previous) = previous {
            sum -= weights.switching * (rates[*level] - rates[previous]).abs();
        }
        buffered = (buffered - seconds).max(0.0) + chunk.duration.as_secs_f64();
        previous = Some(*level);
    }
    sum
}

proptest! {
    /// Compared with all sequences, which are numbered in the base of the number of levels.
    #[test]
    fn the_choice_of_mpc_begins_a_best_sequence(
        steps in proptest::collection::btree_set(1_u64..20, 1..4),
        factors in proptest::collection::vec((1_u64..30, 1_u64..8), 1..6),
        buffered in 0_u64..40,
        previous in proptest::option::of(0_usize..3),
        kbps in 200_u64..30_000,
        stall in 0_u32..40,
        switching in 0_u32..5,
    ) {
        let text: Vec<String> = steps.iter().map(|step| format!("{step}mbit")).collect();
        let ladder: Ladder = text.join(",").parse().expect("a ladder");
        let rates: Vec<f64> = steps.iter().map(|step| *step as f64).collect();
        let previous = previous.map(|level| level.min(ladder.top()));
        let chunks: Vec<Chunk> = factors.iter().map(|(size, seconds)| Chunk {
            duration: Duration::from_secs(*seconds),
            bytes: steps.iter().map(|step| step * size * seconds * 12_500).collect(),
        }).collect();
        let weights = QoeWeights { stall: f64::from(stall), switching: f64::from(switching) };
        let upcoming: Vec<&Chunk> = chunks.iter().collect();
        let chosen = Mpc::new(5, weights).choose(&Situation {
            ladder: &ladder,
            upcoming: &upcoming,
            previous,
            buffered: Duration::from_secs(buffered),
            maximum: MAXIMUM,
            predicted: Some(Bandwidth::from_kbps(kbps)),
        });
        let count = ladder.levels();
        let (mut best, mut best_with_chosen) = (f64::NEG_INFINITY, f64::NEG_INFINITY);
        for number in 0..count.pow(chunks.len() as u32) {
            let digit = |place: usize| number / count.pow(place as u32) % count;
            let levels: Vec<usize> = (0..chunks.len()).map(digit).collect();
            let bps = kbps as f64 * 1000.0;
            let value = value(&levels, &chunks, &rates, &weights, buffered as f64, previous, bps);
            best = best.max(value);
            if levels[0] == chosen {
                best_with_chosen = best_with_chosen.max(value);
            }
        }
        prop_assert!(best_with_chosen >= best - 1e-6, "{} {}", best_with_chosen, best);
    }

    #[test]
    fn the_parts_of_a_score_add_up(
        chunks in proptest::collection::vec((1_u64..20, 0_u64..5000), 0..30),
    ) {
        let weights = QoeWeights::default();
        let rate = |mbps| Bandwidth::from_mbps(mbps);
        let stall = |(_, millis): &(u64, u64)| Duration::from_millis(*millis);
        let whole = Qoe::of(chunks.iter().map(|(mbps, _)| rate(*mbps)), chunks.iter().map(stall).sum());
        let mut sum = Qoe::default();
        let mut scores = 0.0;
        let mut previous = None;
        for chunk in &chunks {
            let own = Qoe::of_chunk(rate(chunk.0), previous, stall(chunk));
            scores += own.score(&weights);
            sum = sum.plus(own);
            previous = Some(rate(chunk.0));
        }
        prop_assert!((whole.score(&weights) - scores).abs() < 1e-6);
        prop_assert!((sum.score(&weights) - scores).abs() < 1e-6);
        prop_assert!((whole.stall_s - sum.stall_s).abs() < 1e-6);
        prop_assert!((whole.bitrate_mbps - sum.bitrate_mbps).abs() < 1e-6);
        prop_assert!((whole.switching_mbps - sum.switching_mbps).abs() < 1e-6);
    }
}

#[test]
fn a_score_by_hand() {
    let rates = [1, 5, 5, 2].map(Bandwidth::from_mbps);
    let qoe = Qoe::of(rates, Duration::from_millis(250));
    let parts = [qoe.bitrate_mbps, qoe.stall_s, qoe.switching_mbps];
    let wrong = parts
        .iter()
        .zip([13.0, 0.25, 7.0])
        .any(|(part, by_hand)| (part - by_hand).abs() > 1e-9);
    assert!(!wrong, "{parts:?}");
    assert!((qoe.score(&QoeWeights::default()) - (13.0 - 4.0 - 7.0)).abs() < 1e-12);
    // The upper bound of five minutes at 16 Mbit/s in Chorus' evaluation.
    let best = Qoe::of([Bandwidth::from_mbps(16); 83], Duration::ZERO);
    assert!((best.score(&QoeWeights::default()) - 1328.0).abs() < 1e-9);
}
