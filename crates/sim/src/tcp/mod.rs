//! Parts of a TCP endpoint in virtual time, modelled on the Linux kernel.
//!
//! [`Segment`] has the sizes on the wire, [`Receiver`] delivers bytes in order and decides when to
//! acknowledge, and [`RetransmissionTimeout`] estimates the round trip and computes the timeout.
//! They take time as an argument and do no I/O. The sender (congestion control and loss recovery)
//! and the connection are not here.

mod receiver;
mod rto;
mod segment;

pub use receiver::{DELAYED_ACK, QUICK_ACKS, Receiver};
pub use rto::{INITIAL_TIMEOUT, MAX_TIMEOUT, MIN_TIMEOUT, RetransmissionTimeout};
pub use segment::{Acknowledgement, MAX_SACK_BLOCKS, MSS, Segment};
