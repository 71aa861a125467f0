//! Live video over QUIC: a server that sends frames as they are encoded, and a viewer with a player.
//!
//! A viewer opens a connection and a bidirectional stream and sends one byte: the request. From its
//! arrival on the server encodes, and sends every video frame, with a short header (`wire.rs`),
//! either on the stream of the request (a pull of a live stream) or on a separate unidirectional
//! stream (video calls, without head-of-line blocking). Server and viewer only record events;
//! `viewing.rs` evaluates them afterwards with the models of `swiftwater_media::player`.

mod server;
mod viewer;
mod viewing;
mod wire;

pub(super) use server::VideoServer;
pub(super) use viewer::VideoViewer;
pub(super) use viewing::viewing;
