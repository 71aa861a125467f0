//! A frame-level sender and receiver over datagrams, sans-I/O.
//!
//! A [`Sender`] cuts frames into packets of equal size, numbers and paces them, watches
//! acknowledgements, and sends again what was lost while it can still be in time. What it sends beyond
//! that is up to a scheme of [`crate::protection`]. A [`Receiver`] acknowledges every packet,
//! restores frames and tells when each is complete. There is no congestion control: video has its
//! rate, as on the platforms that the schemes were published on.
//!
//! Contract, as in `swiftwater-quic`: after every call with an input, drain `poll_transmit`, then
//! read `poll_timeout` anew. Time must not go back.
//!
//! Frames have no pictures here; packets carry a pattern that the receiver checks, or (in sessions
//! with [`Coding::Counted`]) nothing at all: then packets only count their size, and a frame of n
//! packets is complete when n of its source and repair packets are there, which is when
//! Reed-Solomon can restore it.

mod config;
mod content;
mod feedback;
mod incoming;
mod ledger;
mod outgoing;
mod packet;
mod receiver;
mod rtt;
mod sender;

pub use config::{Coding, Datagram, SessionConfig, SessionError};
pub use content::Cut;
pub use feedback::{Ack, Feedback, MAX_ACK_RANGES, Report};
pub use packet::{HEADER_LEN, Header, Kind, MAX_WINDOW, PacketError, VideoPacket};
pub use receiver::{Completed, Receiver, ReceiverStats};
pub use rtt::RttEstimate;
pub use sender::{Recovery, Sender, SenderStats};
