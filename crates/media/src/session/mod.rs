//! A frame-level sender and receiver over datagrams, sans-I/O.
//!
//! A [`Sender`] divides frames into packets of equal size, numbers and paces them, processes
//! acknowledgements, and retransmits lost packets while they can still be in time. Redundancy beyond
//! that is added by a scheme of [`crate::protection`]. A [`Receiver`] acknowledges every packet,
//! restores frames and reports when each is complete. There is no congestion control: video has its
//! rate, as on the platforms of the schemes' publications.
//!
//! Contract, as in `swiftwater-quic`: after every call with an input, drain `poll_transmit`, then
//! call `poll_timeout` again. Time must not decrease.
//!
//! Packets carry a pattern that the receiver checks, or (in sessions with [`Coding::Counted`]) no
//! content: then packets only have a size, and a frame of n packets is complete when n of its
//! source and repair packets were received, so that Reed-Solomon could restore it.

mod config;
mod content;
mod feedback;
mod packet;
mod reassembly;
mod receiver;
mod rtt;
mod sender;
mod sent_frames;
mod sent_packets;

pub use config::{Coding, Datagram, SessionConfig, SessionError};
pub use content::Cut;
pub use feedback::{Ack, Feedback, MAX_ACK_RANGES, Report};
pub use packet::{HEADER_LEN, Header, Kind, MAX_WINDOW, PacketError, VideoPacket};
pub use receiver::{Completed, Receiver, ReceiverStats};
pub use rtt::RttEstimate;
pub use sender::{Recovery, Sender, SenderStats};
