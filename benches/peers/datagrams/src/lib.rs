//! UDP for the libraries of the comparison that leave input and output to the program.
//!
//! What Swiftwater and quinn do with sockets, these do too, with the same layer (quinn-udp): equal datagrams of a
//! burst leave with one system call (GSO), many that have arrived are taken with one (`recvmmsg` and GRO).
//!
//! - [`Socket`] sends and waits, [`Inbox`] takes what has arrived.
//! - [`Timers`] knows which connection has to be woken next.

#![forbid(unsafe_code)]

mod inbox;
mod socket;
mod timers;

pub use inbox::Inbox;
pub use socket::Socket;
pub use timers::Timers;
