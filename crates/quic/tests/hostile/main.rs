//! Peers that break the rules on purpose: the victim must answer as the RFCs say, and survive what
//! it can ignore.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod amplification;
mod attack;
mod cids;
mod coding;
mod floods;
mod frames;
mod keys;
mod packets;
mod parameters;
mod peer;
mod persona;
mod stateless;
mod streams;
mod unreliable;
