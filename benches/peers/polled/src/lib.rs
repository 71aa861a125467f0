//! The jobs of the comparison for libraries that are polled: quiche and tquic.
//!
//! A program says how its library does what the jobs need of connections and streams ([`Library`], [`Endpoint`],
//! [`Streams`]); [`run`] does the rest, from the command line on. What happens on connections is told to a
//! [`Role`]: that of a server, or the job of a client.

#![forbid(unsafe_code)]

mod client;
mod library;
mod role;
mod run;
mod server;
mod streams;

pub use library::{Endpoint, Library, Shared};
pub use role::Role;
pub use run::run;
pub use streams::{Failure, Streams};
