//! HTTP/3 (RFC 9114), sans-I/O: frames, messages and the engine that runs on a QUIC connection.
//!
//! [`Connection`] is one end of HTTP/3 on one [`swiftwater_quic::Connection`]. It has no socket, clock
//! or task: a driver passes the transport's events to it and its own events to the application.
//!
//! It also implements priorities (RFC 9218), extended CONNECT (RFC 9220), HTTP datagrams and
//! capsules (RFC 9297), and the association of streams with WebTransport sessions. Server push is
//! refused as the RFC permits. Not included: services, and asynchronous interfaces.

mod budget;
pub mod capsule;
mod code;
mod config;
mod connection;
mod datagram;
mod error;
mod event;
mod fields;
pub mod frame;
mod grease;
mod limits;
mod priority;
mod receiving;
mod sending;
mod settings;
mod stats;
mod stream_type;
pub mod webtransport;

pub use code::Code;
pub use config::Config;
pub use connection::{Connection, MessagePart};
pub use error::{
    BodyError, DatagramError, Fault, HeadError, RequestError, SendError, SessionError,
};
pub use event::Event;
pub use fields::ConnectProtocol;
pub use limits::Limits;
pub use priority::Priority;
pub use settings::Settings;
pub use stats::Stats;
pub use stream_type::StreamType;
