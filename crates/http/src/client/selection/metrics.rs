//! Counters of decisions, through the `metrics` crate.
//!
//! | counter | labels |
//! |---|---|
//! | `swiftwater_select_requests_total` | arm, reason |
//! | `swiftwater_select_probes_total` | arm |
//! | `swiftwater_select_hedged_total` | |
//! | `swiftwater_select_experiments_total` | |
//! | `swiftwater_select_switches_total` | from, to, cause |
//! | `swiftwater_select_rollbacks_total` | from, to |
//! | `swiftwater_select_blocks_total` | scope (`network`, `origin`) |
//!
//! Requests are counted when they are decided on. Switches include rollbacks, and the arms left because of failures.
//! The number of label values is bounded by the arms of the client.

use metrics::counter;
use swiftwater_select::{Decision, EventKind, SwitchCause};

const REQUESTS: &str = "swiftwater_select_requests_total";
const PROBES: &str = "swiftwater_select_probes_total";
const HEDGED: &str = "swiftwater_select_hedged_total";
const EXPERIMENTS: &str = "swiftwater_select_experiments_total";
const SWITCHES: &str = "swiftwater_select_switches_total";
const ROLLBACKS: &str = "swiftwater_select_rollbacks_total";
const BLOCKS: &str = "swiftwater_select_blocks_total";

/// Counts a decision.
pub(super) fn decided(decision: &Decision) {
    let arm = decision.arm.name().to_owned();
    if decision.reason.is_probe() {
        counter!(PROBES, "arm" => arm.clone()).increment(1);
    }
    counter!(REQUESTS, "arm" => arm, "reason" => decision.reason.name()).increment(1);
}

/// Counts a request that is sent over a second arm, too.
pub(super) fn hedged() {
    counter!(HEDGED).increment(1);
}

/// Counts an event of the selector.
pub(super) fn happened(event: &EventKind) {
    match event {
        EventKind::ExperimentStarted { .. } => counter!(EXPERIMENTS).increment(1),
        EventKind::Switched { from, to, cause } => {
            let (from, to) = (from.name().to_owned(), to.name().to_owned());
            if *cause == SwitchCause::Rollback {
                counter!(ROLLBACKS, "from" => from.clone(), "to" => to.clone()).increment(1);
            }
            counter!(SWITCHES, "from" => from, "to" => to, "cause" => cause.name()).increment(1);
        }
        EventKind::Blocked { on_network, .. } => {
            let scope = if *on_network { "network" } else { "origin" };
            counter!(BLOCKS, "scope" => scope).increment(1);
        }
        _ => {}
    }
}
