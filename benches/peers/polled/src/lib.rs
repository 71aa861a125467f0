//! The jobs of the comparison for libraries that are polled: quiche and tquic.
//!
//! A program implements the operations of connections and streams with its library ([`Library`], [`Endpoint`],
//! [`Streams`]); [`run`] does the rest, from the command line on. Events of connections are passed to a
//! [`Role`]: that of a server, or the job of a client. Programs with other protocols on their streams use the loops
//! alone ([`serve`], [`perform`]).

#![forbid(unsafe_code)]

mod client;
mod library;
mod role;
mod run;
mod server;
mod streams;

pub use client::Client;
pub use library::{Endpoint, Library, Shared};
pub use role::Role;
pub use run::{perform, run, serve};
pub use streams::{Failure, Streams};
