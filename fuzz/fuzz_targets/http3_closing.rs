//! HTTP/3 connections that end at any moment: the engine always returns, and no call waits forever.
#![no_main]

use libfuzzer_sys::fuzz_target;
use swiftwater_fuzz::closing;

fuzz_target!(|bytes: &[u8]| closing::run(bytes));
