//! A scheduler beside the other policies of a connection.

use std::sync::Arc;

use swiftwater_policies::SchedulerFactory;
use swiftwater_quic::policy::{
    AckPolicy, FeedbackPolicy, LossJudge, PolicyFactory, Reinjector, ReorderingThresholds,
    Scheduler,
};
use swiftwater_units::PathId;

/// `policies`, with another scheduler.
#[derive(Debug)]
pub(crate) struct WithScheduler {
    pub(crate) policies: Arc<dyn PolicyFactory>,
    pub(crate) scheduler: Arc<dyn SchedulerFactory>,
}

impl PolicyFactory for WithScheduler {
    fn scheduler(&self) -> Box<dyn Scheduler> {
        self.scheduler.scheduler()
    }

    fn reinjector(&self) -> Box<dyn Reinjector> {
        self.policies.reinjector()
    }

    fn ack_policy(&self, threshold: u64) -> Box<dyn AckPolicy> {
        self.policies.ack_policy(threshold)
    }

    fn loss_judge(&self, path: PathId, configured: ReorderingThresholds) -> Box<dyn LossJudge> {
        self.policies.loss_judge(path, configured)
    }

    fn feedback(&self) -> Box<dyn FeedbackPolicy> {
        self.policies.feedback()
    }
}
