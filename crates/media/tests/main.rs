//! The tests of `swiftwater-media`: one program, so that generic code and helpers are compiled and linked once.
//! Each topic is a module: `cargo test -p swiftwater-media --test all TOPIC::` runs one.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod block_code;
mod cost;
mod deadline;
mod demux;
mod display;
mod hairpin;
mod live_player;
mod presentation_dash;
mod presentation_hls;
mod presentation_index;
mod recordings;
mod reinjection;
mod schemes;
mod session;
mod session_packets;
mod sources;
mod spec;
mod streaming_adaptation;
mod streaming_buffer;
mod streaming_chunked;
mod streaming_division;
mod streaming_prediction;
mod streaming_short_video;
mod streaming_video;
mod tambur;
mod webrtc;
