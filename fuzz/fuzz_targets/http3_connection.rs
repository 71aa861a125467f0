//! Any bytes on any stream of an HTTP/3 connection: no panic, and every fault has a name.
#![no_main]

use libfuzzer_sys::fuzz_target;
use swiftwater_fuzz::http3::Case;

fuzz_target!(|case: Case| case.run());
