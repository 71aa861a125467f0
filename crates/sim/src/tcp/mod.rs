//! TCP in virtual time, modelled on the Linux kernel.
//!
//! [`Connection`] joins the parts: [`Handshake`] repeats SYN and SYN-ACK, [`Sender`] sends with
//! [`Scoreboard`], [`Rack`], [`LossProbe`], [`RetransmissionTimeout`], [`CongestionWindow`] and
//! [`Reduction`], and [`Receiver`] delivers in order and decides when to acknowledge. All take time as
//! an argument and do no I/O. How connections meet a network is not here, nor are TLS and HTTP/2.

mod byte_queue;
mod config;
mod connection;
mod cubic;
mod event;
mod gathering;
mod handshake;
mod header;
mod hystart;
mod loss_probe;
mod rack;
mod receiver;
mod recovery;
mod reduction;
mod rto;
mod scoreboard;
mod segment;
mod sender;
mod ticks;
mod undo;
mod window;

pub use byte_queue::ByteQueue;
pub use config::Config;
pub use connection::{Connection, reset_segment};
pub use cubic::Cubic;
pub use event::{ConnectionError, Event};
pub use gathering::Gathering;
pub use handshake::{Handshake, SynTimeout};
pub use header::Expected;
pub use hystart::{HyStart, SlowStartView, train_slack};
pub use loss_probe::{LossProbe, ProbeOutcome};
pub use rack::Rack;
pub use receiver::{DELAYED_ACK, QUICK_ACKS, Receiver, ReceiverStats};
pub use reduction::{Progress, Reduction};
pub use rto::{INITIAL_TIMEOUT, MAX_TIMEOUT, MIN_TIMEOUT, RetransmissionTimeout};
pub use scoreboard::{Arrived, Scoreboard, SentSegment};
pub use segment::{Acknowledgement, MAX_SACK_BLOCKS, MSS, Segment};
pub use sender::{Phase, Sender, SenderStats};
pub use ticks::Ticks;
pub use undo::Undo;
pub use window::CongestionWindow;
