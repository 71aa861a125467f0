//! The commit that the program is built from.

/// The first digits of the commit, with `-dirty` at the end if sources differed from it; `unknown` if it was built outside
/// a repository.
pub const BUILD_COMMIT: &str = env!("SWIFTWATER_BUILD_COMMIT");

/// Version and commit, as `--version` prints them.
pub(crate) const LONG_VERSION: &str = concat!(
    env!("CARGO_PKG_VERSION"),
    " (commit ",
    env!("SWIFTWATER_BUILD_COMMIT"),
    ")"
);
