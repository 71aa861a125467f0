//! Video on demand over QUIC: a server of chunks and ranges, and a viewer that downloads ahead.
//!
//! What a viewer requests, and when, is decided by the players of `swiftwater_media::streaming`; here they are on a
//! simulated host. Each request is a bidirectional stream (`wire.rs`). The server announces the size of each response
//! and marks the bytes of a first frame; the viewer gives its transport hints about what it has buffered and when it
//! expects a chunk, which feedback policies may send to the server.

mod announced_shares;
mod buffer_levels;
mod migration;
mod player;
mod server;
mod viewer;
mod viewing;
mod wire;

pub(super) use player::Player;
pub(super) use server::StreamingServer;
pub(super) use viewer::StreamingViewer;
