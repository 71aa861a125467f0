//! One path, nothing sent twice, acknowledgements per RFC 9000: what a plain QUIC v1 stack does.

use swiftwater_quic::policy::{
    AckPolicy, EveryOther, NoReinjection, PolicyFactory, Reinjector, Scheduler, SinglePath,
};

/// Makes the policies of a connection with one path.
#[derive(Clone, Copy, Debug, Default)]
pub struct SinglePathPolicies;

impl PolicyFactory for SinglePathPolicies {
    fn scheduler(&self) -> Box<dyn Scheduler> {
        Box::new(SinglePath)
    }

    fn reinjector(&self) -> Box<dyn Reinjector> {
        Box::new(NoReinjection)
    }

    fn ack_policy(&self, threshold: u64) -> Box<dyn AckPolicy> {
        Box::new(EveryOther {
            threshold: threshold.max(1),
        })
    }
}
