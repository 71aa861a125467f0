//! The record of used tokens: none is discarded while it is valid, few are taken for used.

use std::collections::BTreeSet;
use std::time::Duration;

use proptest::prelude::*;
use rand_chacha::ChaCha20Rng;
use rand_core::{Rng, SeedableRng};
use swiftwater_units::{ByteCount, Instant};

use super::UsedTokens;
use super::used::TokenHash;

const LIFETIME: Duration = Duration::from_secs(1000);

fn at(second: u64) -> Instant {
    Instant::from_millis(second * 1000)
}

fn smallest() -> UsedTokens {
    UsedTokens::new(UsedTokens::MIN_MEMORY)
}

/// The hash of token `n`, as if of a random function.
fn token(n: u64) -> TokenHash {
    let mut rng = ChaCha20Rng::seed_from_u64(n);
    TokenHash::new([rng.next_u64(), rng.next_u64()])
}

/// Records the tokens `numbers`, issued and used at `second`; how many of them counted as used.
fn insert_all(used: &UsedTokens, second: u64, numbers: std::ops::Range<u64>) -> u64 {
    let refused = |n: &u64| !used.insert(at(second), LIFETIME, at(second), token(*n));
    numbers.filter(refused).count() as u64
}

/// How many of the tokens `numbers`, issued at `issued`, count as used.
fn count_used(used: &UsedTokens, issued: u64, numbers: std::ops::Range<u64>) -> u64 {
    let is_used = |n: &u64| used.contains(at(issued), token(*n));
    numbers.filter(is_used).count() as u64
}

#[test]
fn a_token_is_used_once() {
    let used = smallest();
    assert!(!used.contains(at(1), token(1)));
    assert!(used.insert(at(2), LIFETIME, at(1), token(1)));
    assert!(used.contains(at(1), token(1)));
    assert!(!used.insert(at(2), LIFETIME, at(1), token(1)));
    assert!(used.insert(at(2), LIFETIME, at(1), token(2)));
}

#[test]
fn memory_is_within_its_range_and_capacity_follows() {
    let of = |bytes| UsedTokens::new(ByteCount::new(bytes));
    assert_eq!(of(0).memory(), UsedTokens::MIN_MEMORY);
    assert_eq!(of(u64::MAX >> 2).memory(), UsedTokens::MAX_MEMORY);
    assert_eq!(smallest().generation_capacity(), 10_922);
    let default = UsedTokens::default();
    assert_eq!(default.memory(), ByteCount::new(2 << 20));
    assert_eq!(default.generation_capacity(), 349_525);
}

/// With both generations full, at two sizes: as few as documented, and not so few that nothing was
/// measured.
#[test]
fn few_tokens_are_taken_for_used_ones() {
    const ASKED: u64 = 2_000_000;
    for memory in [UsedTokens::MIN_MEMORY, ByteCount::new(300_000)] {
        let used = UsedTokens::new(memory);
        let capacity = used.generation_capacity();
        insert_all(&used, 1, 0..2 * capacity);
        let taken = count_used(&used, 1, 1 << 40..(1 << 40) + ASKED);
        let promised = UsedTokens::FALSE_POSITIVE_RATE * ASKED as f64;
        // The expectation is 40; the deviations are four standard ones and more.
        assert!(
            (promised * 0.3..promised * 1.7).contains(&(taken as f64)),
            "{taken}"
        );
    }
}

/// More tokens than two generations hold: the oldest are discarded, and unused ones as old as they are
/// count as used, newer ones don't.
#[test]
fn a_full_record_takes_old_tokens_for_used() {
    let used = smallest();
    let capacity = used.generation_capacity();
    for generation in 0..4 {
        let second = 10 + generation;
        let numbers = generation * capacity..(generation + 1) * capacity;
        assert!(insert_all(&used, second, numbers) < 10);
    }
    // Generations 2 and 3 are kept; 0 and 1 ended at second 11, or a few tokens later: those that were
    // taken for used ones, and not recorded, leave room.
    for second in 10..14 {
        let first = (second - 10) * capacity;
        let count = count_used(&used, second, first..first + capacity);
        assert!(count > capacity - 10, "{count} of second {second}");
    }
    let never_used = 1 << 40..(1 << 40) + 1000;
    assert_eq!(count_used(&used, 11, never_used.clone()), 1000);
    assert_eq!(count_used(&used, 13, never_used), 0);
}

/// Generations as old as tokens live make way without being full, so that the filter does not stay full
/// for ever; what is discarded has expired.
#[test]
fn generations_end_with_the_lifetime_of_their_tokens() {
    let used = smallest();
    let capacity = used.generation_capacity();
    insert_all(&used, 1, 0..capacity / 2);
    // A lifetime later a new generation begins.
    insert_all(&used, 1001, 1 << 20..(1 << 20) + 1);
    assert_eq!(count_used(&used, 1, 0..capacity / 2), capacity / 2);
    // Another later the first one is discarded: tokens of second 1 have expired long ago.
    insert_all(&used, 2001, 1 << 21..(1 << 21) + 1);
    assert_eq!(count_used(&used, 2, 0..capacity / 2), 0);
    assert_eq!(count_used(&used, 1, 1 << 22..(1 << 22) + 1), 1);
    assert!(used.contains(at(1001), token(1 << 20)));
}

proptest! {
    /// Against a set that discards nothing: no used token is accepted again while it is valid, through
    /// any number of generations.
    #[test]
    fn no_used_token_is_accepted_while_it_is_valid(
        steps in prop::collection::vec((0u64..200, 0u64..600, 0u64..40_000, 1u64..8_000), 1..12),
    ) {
        let used = smallest();
        let mut all = BTreeSet::new();
        let mut now = 1000;
        for (passed, age, first, count) in steps {
            now += passed;
            let issued = now.saturating_sub(age);
            for n in first..first + count {
                // A token is its number and the time when it was issued.
                let hash = token(n << 20 | issued);
                let accepted = used.insert(at(now), LIFETIME, at(issued), hash);
                prop_assert!(!accepted || all.insert((n, issued)), "{n} of {issued} at {now}");
                prop_assert!(used.contains(at(issued), hash));
            }
        }
        for (n, issued) in &all {
            let valid = now - issued <= LIFETIME.as_secs();
            let known = used.contains(at(*issued), token(n << 20 | issued));
            prop_assert!(known || !valid, "{n} of {issued} at {now}");
        }
    }
}
