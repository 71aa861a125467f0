//! How cost grows: with idle connections, with streams, with loss and with the round-trip time.
//!
//! ```sh
//! cargo run --release -p swiftwater-quic --example growth -- [--quick] [--csv FILE] [--json FILE] [--svg FILE]
//! ```
//!
//! The protocol alone, in virtual time, with the null cipher. Times are processor time, of both ends and the
//! wire together, the least of some repeats; heap is counted by the allocator. Each curve is the cost of one unit (a
//! connection, a byte, a packet) and comes with its exponent, the slope of the least-squares line through the
//! logarithms: with 0 a unit costs the same whatever the size.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a measurement: it reads the clock, and has failed if it can't go on"
)]

mod clock;
mod connections;
mod fit;
mod transfers;
mod wire;

use std::fs;

use fit::Curve;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let quick = arguments.iter().any(|argument| argument == "--quick");
    let mut curves: Vec<Curve> = Vec::new();
    let mut add = |more: Vec<Curve>| {
        for curve in more {
            print!("{}", curve.print());
            curves.push(curve);
        }
    };
    add(connections::idle(quick));
    add(transfers::streams(quick));
    add(transfers::loss(quick));
    add(transfers::round_trips(quick));
    for (flag, show) in [
        ("--csv", fit::csv as fn(&[Curve]) -> String),
        ("--json", fit::json),
        ("--svg", fit::svg),
    ] {
        let at = arguments.iter().position(|argument| argument == flag);
        if let Some(file) = at.and_then(|at| arguments.get(at + 1)) {
            fs::write(file, show(&curves)).unwrap();
        }
    }
}
