//! UDP for the libraries of the comparison that leave input and output to the program.
//!
//! The same use of sockets as Swiftwater and quinn, with the same layer (quinn-udp): equal datagrams of a burst
//! are sent with one system call (GSO), received ones are read with one (`recvmmsg` and GRO).
//!
//! - [`Socket`] sends and waits, [`Inbox`] receives.
//! - [`Timers`] determines the connection to wake next.

#![forbid(unsafe_code)]

mod inbox;
mod socket;
mod timers;

pub use inbox::Inbox;
pub use socket::Socket;
pub use timers::Timers;
