//! Plans that failed once, as small as they could be made.

use super::plan::{Op, Plan, Settings, Wire};
use super::run::run;
use swiftwater_units::{Dir, Side};
use swiftwater_sim::Direction;

#[test]
fn zz_tmp() {
    let s = Settings { cid_limit: 2, ack_threshold: 1, max_ack_delay_ms: 0, bidi_streams: 0, uni_streams: 0, pacing: false, ecn: false, ..Settings::default() };
    run(&Plan {
        seed: 4142198395165947505,
        segments: 1,
        finish_all: false,
        wires: [Wire { delay_ms: 9, loss: 11, ..Wire::default() }, Wire { delay_ms: 29, loss: 1, ..Wire::default() }],
        ends: [ s.clone(), s ],
        ops: vec![Op::Advance(169), Op::Open(Side::Client, Dir::Bi), Op::Advance(30), Op::Advance(65),
          Op::Replay { to: Direction::ToClient, index: 92, damaged: false, stranger: true }],
        ..Plan::default()
    });
}
