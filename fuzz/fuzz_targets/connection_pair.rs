//! Any operations on a connection between two honest stacks, over a network that does what it likes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use swiftwater_fuzz::operations::Case;

fuzz_target!(|case: Case| case.run());
