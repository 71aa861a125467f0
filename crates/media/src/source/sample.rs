//! The frame table of the video that the project ships.

use super::recording::Recording;

/// Made from `assets/fractal.mp4`; a test compares it with what the file says.
const TABLE: &str = include_str!("sample.csv");

/// The video track of `assets/fractal.mp4` (see the README there): ten seconds of H.264, 1280x720,
/// 25 frames/s, about 1.9 Mbit/s, its first frame alone a key frame.
pub fn sample() -> Recording {
    TABLE
        .parse()
        .expect("the table is a part of this crate, and tests read it")
}
