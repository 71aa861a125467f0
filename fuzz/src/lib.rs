//! What the targets share: a victim and a peer against it, as in the tests of hostile peers.

#[path = "../../crates/quic/tests/hostile/attack.rs"]
pub mod attack;
#[path = "../../crates/quic/tests/hostile/bystander.rs"]
pub mod bystander;
#[path = "../../crates/quic/tests/hostile/coding.rs"]
pub mod coding;
#[path = "../../crates/quic/tests/hostile/peer.rs"]
pub mod peer;
#[path = "../../crates/quic/tests/hostile/persona.rs"]
pub mod persona;

pub mod closing;
pub mod handshakes;
pub mod http3;
pub mod inputs;
pub mod meter;
pub mod operations;
pub mod paths;
pub mod qpack;
pub mod session;
pub mod tokens;
pub mod watchdog;
