//! What breaks the rules, each with its error: frames and streams in the wrong place (RFC 9114,
//! sections 6, 7 and 8.1), malformed messages (section 4.1.2).

#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod support;

#[path = "h3_rules/frames.rs"]
mod frames;
#[path = "h3_rules/messages.rs"]
mod messages;
#[path = "h3_rules/streams.rs"]
mod streams;
