//! Parts of a TCP endpoint in virtual time, modelled on the Linux kernel.
//!
//! [`Segment`] has the sizes on the wire, [`Receiver`] delivers bytes in order and decides when to
//! acknowledge, [`Scoreboard`] has what was sent, [`Rack`] finds losses, and
//! [`RetransmissionTimeout`] estimates the round trip and computes the timeout. They take time as an
//! argument and do no I/O. Congestion control, the handshake and the connection are not here.

mod rack;
mod receiver;
mod rto;
mod scoreboard;
mod segment;

pub use rack::Rack;
pub use receiver::{DELAYED_ACK, QUICK_ACKS, Receiver};
pub use rto::{INITIAL_TIMEOUT, MAX_TIMEOUT, MIN_TIMEOUT, RetransmissionTimeout};
pub use scoreboard::{Scoreboard, SentSegment};
pub use segment::{Acknowledgement, MAX_SACK_BLOCKS, MSS, Segment};
