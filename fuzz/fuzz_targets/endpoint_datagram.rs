//! Arbitrary and damaged datagrams against an endpoint and a connection in its handshake.
#![no_main]

use libfuzzer_sys::fuzz_target;
use swiftwater_fuzz::inputs::Datagrams;

fuzz_target!(|datagrams: Datagrams| datagrams.run());
