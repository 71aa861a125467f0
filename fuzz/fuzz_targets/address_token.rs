//! Address tokens of any content: nobody makes one that a server takes for its own, and whatever a
//! server's own key opens is read without harm.
#![no_main]

use libfuzzer_sys::fuzz_target;
use swiftwater_fuzz::tokens::Presented;

fuzz_target!(|presented: Presented| presented.run());
