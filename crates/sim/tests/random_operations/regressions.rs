//! Plans that failed once, as small as they could be made.

use super::plan::{Op, Plan, Settings, Wire};
use super::run::run;
use swiftwater_units::{Dir, Side};
use swiftwater_sim::Direction;

#[test]
fn zz_tmp() {
    run(&Plan {
        ends: [
            Settings { cid_limit: 2, ..Settings::default() },
            Settings { cid_limit: 2, ..Settings::default() },
        ],
        ops: vec![Op::Advance(265), Op::Rotate(Side::Client)],
        ..Plan::default()
    });
}
