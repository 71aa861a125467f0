//! Handshake messages, genuine, damaged and made up, to sessions of both kinds of TLS: a handshake
//! that both ends complete is one that nobody tampered with.
#![no_main]

use libfuzzer_sys::fuzz_target;
use swiftwater_fuzz::handshakes::Handshake;

fuzz_target!(|handshake: Handshake| handshake.run());
