//! What breaks the rules, each with its error: frames and streams in the wrong place (RFC 9114,
//! sections 6, 7 and 8.1), malformed messages (section 4.1.2).

mod frames;
mod messages;
mod streams;
