//! Any fields through an encoder and a decoder whose streams are delayed: what goes in comes out, in order,
//! without an error.
#![no_main]

use libfuzzer_sys::fuzz_target;
use swiftwater_fuzz::qpack::RoundTrip;

fuzz_target!(|case: RoundTrip| case.run());
