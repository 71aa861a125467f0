//! Several paths: frames about them and packets on them, sealed properly, against an established connection.
#![no_main]

use libfuzzer_sys::fuzz_target;
use swiftwater_fuzz::paths::PathSteps;

fuzz_target!(|steps: PathSteps| steps.run());
