//! WebTransport sessions whose connection ends at any moment: no task waits forever, and none panics.
#![no_main]

use libfuzzer_sys::fuzz_target;
use swiftwater_fuzz::session;

fuzz_target!(|bytes: &[u8]| session::run(bytes));
