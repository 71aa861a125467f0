//! Flags with which users restrict a demonstration to some of what it shows.

use clap::ValueEnum;

/// The wanted ones in their usual order; all if none is named.
pub(in crate::demo) fn wanted_or_all<T: ValueEnum + Copy + PartialEq>(wanted: &[T]) -> Vec<T> {
    let all = T::value_variants().iter().copied();
    all.filter(|one| wanted.is_empty() || wanted.contains(one))
        .collect()
}
