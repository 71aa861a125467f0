//! The frame table of the project's sample video.

use super::recording::Recording;

/// Generated from `assets/fractal.mp4`; a test compares it with the file.
const TABLE: &str = include_str!("sample.csv");

/// The video track of `assets/fractal.mp4` (see the README there): ten seconds of H.264, 1280x720,
/// 25 frames/s, about 1.9 Mbit/s, only its first frame a key frame.
pub fn sample() -> Recording {
    TABLE
        .parse()
        .expect("the table is a part of this crate, and tests read it")
}
