//! Scheduler, loss judge and feedback policy that were chosen by name, beside the other policies of a connection.

use std::sync::Arc;

use swiftwater_policies::{FeedbackFactory, LossJudgeFactory, SchedulerFactory};
use swiftwater_quic::policy::{
    AckPolicy, FeedbackPolicy, LossJudge, PolicyFactory, Reinjector, ReorderingThresholds,
    Scheduler,
};
use swiftwater_units::PathId;

/// `policies`, with others where one was chosen.
#[derive(Debug)]
pub(crate) struct ChosenPolicies {
    pub(crate) policies: Arc<dyn PolicyFactory>,
    pub(crate) scheduler: Option<Arc<dyn SchedulerFactory>>,
    pub(crate) loss_judge: Option<Arc<dyn LossJudgeFactory>>,
    pub(crate) feedback: Option<Arc<dyn FeedbackFactory>>,
}

impl PolicyFactory for ChosenPolicies {
    fn scheduler(&self) -> Box<dyn Scheduler> {
        match &self.scheduler {
            Some(chosen) => chosen.scheduler(),
            None => self.policies.scheduler(),
        }
    }

    fn reinjector(&self) -> Box<dyn Reinjector> {
        self.policies.reinjector()
    }

    fn ack_policy(&self, threshold: u64) -> Box<dyn AckPolicy> {
        self.policies.ack_policy(threshold)
    }

    fn loss_judge(&self, path: PathId, configured: ReorderingThresholds) -> Box<dyn LossJudge> {
        match &self.loss_judge {
            Some(chosen) => chosen.loss_judge(path, configured),
            None => self.policies.loss_judge(path, configured),
        }
    }

    fn feedback(&self) -> Box<dyn FeedbackPolicy> {
        match &self.feedback {
            Some(chosen) => chosen.feedback(),
            None => self.policies.feedback(),
        }
    }
}
