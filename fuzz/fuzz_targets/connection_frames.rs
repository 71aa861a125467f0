//! Arbitrary frames, sealed properly, against an established connection that is in use.
#![no_main]

use libfuzzer_sys::fuzz_target;
use swiftwater_fuzz::inputs::Steps;

fuzz_target!(|steps: Steps| steps.run());
