//! Vocabulary types of Swiftwater: time, rates, counts and identifiers.
//!
//! Every crate of the workspace uses these types, so that a gain can't be compared with a byte
//! count, a packet number can't be used as a stream offset, and time never comes from a clock.
//! Arithmetic here saturates: a virtual clock or a hostile peer must not be able to cause a panic.
//!
//! [`text`] parses quantities written by users. There is no protocol logic in this crate.

#![forbid(unsafe_code)]

mod count;
mod id;
mod rate;
pub mod text;
mod time;

pub use count::{ByteCount, PacketCount};
pub use id::{Dir, PacketNumber, PathId, Side, StreamId};
pub use rate::Bandwidth;
pub use time::Instant;
