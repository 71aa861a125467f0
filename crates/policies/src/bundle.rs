//! One policy of each kind for a connection.

use std::sync::Arc;

use swiftwater_quic::policy::{
    FeedbackPolicy, LossJudge, PolicyFactory, Reinjector, ReorderingThresholds, Scheduler,
};
use swiftwater_units::PathId;

use crate::chorus::{
    ChorusFeedbackConfig, ChorusPlusReinjectorConfig, ChorusPlusSchedulerConfig,
    ChorusReinjectorConfig, ChorusSchedulerConfig,
};
use crate::feedback::{FeedbackFactory, PlayerFeedbackConfig, Silent};
use crate::loss_judges::{FixedConfig, LossJudgeFactory};
use crate::redundant_copies::RedundantCopiesConfig;
use crate::reinjector_factory::{Arq, ReinjectorFactory};
use crate::schedulers::{FirstPath, MinRttConfig, RedundantSchedulerConfig, SchedulerFactory};
use crate::tecc::{TeccClientFeedbackConfig, TeccFeedbackConfig, TeccLossJudgeConfig};
use crate::xlink::XlinkConfig;

/// The policies of a connection; by default those of a plain QUIC v1 stack: the first path, no
/// re-injection, acknowledgements per RFC 9000, section 13.2.2, loss detection per RFC 9002, section
/// 6.1, no feedback.
#[derive(Clone, Debug)]
pub struct Policies {
    scheduler: Arc<dyn SchedulerFactory>,
    reinjector: Arc<dyn ReinjectorFactory>,
    loss_judge: Arc<dyn LossJudgeFactory>,
    feedback: Arc<dyn FeedbackFactory>,
}

impl Default for Policies {
    fn default() -> Self {
        Self {
            scheduler: Arc::new(FirstPath),
            reinjector: Arc::new(Arq),
            loss_judge: Arc::new(FixedConfig),
            feedback: Arc::new(Silent),
        }
    }
}

impl Policies {
    /// The default ones with another re-injector.
    pub fn reinjecting(config: impl ReinjectorFactory + 'static) -> Self {
        Self::default().with_reinjector(Arc::new(config))
    }

    /// Redundant transmission: every new datum leaves on every path. The scheduler and the recovery policy
    /// that are both called `redundant`.
    pub fn redundant() -> Self {
        Self::reinjecting(RedundantCopiesConfig::default())
            .with_scheduler(Arc::new(RedundantSchedulerConfig::default()))
    }

    /// Chorus at the sender of media (`MobiCom` 2024): the scheduler, the recovery policy and the feedback policy that
    /// are all called `chorus`.
    pub fn chorus() -> Self {
        Self::reinjecting(ChorusReinjectorConfig::default())
            .with_scheduler(Arc::new(ChorusSchedulerConfig::default()))
            .with_feedback(Arc::new(ChorusFeedbackConfig::default()))
    }

    /// The project's variant of Chorus at the sender of media: the scheduler and the recovery policy that are called
    /// `chorus+`, and the feedback policy `chorus`.
    pub fn chorus_plus() -> Self {
        Self::reinjecting(ChorusPlusReinjectorConfig::default())
            .with_scheduler(Arc::new(ChorusPlusSchedulerConfig::default()))
            .with_feedback(Arc::new(ChorusFeedbackConfig::default()))
    }

    /// XLINK's sender (SIGCOMM 2021): the scheduler `min-rtt` and the re-injector `xlink`, which goes by
    /// what a peer with [`Policies::player`] reports.
    pub fn xlink() -> Self {
        Self::reinjecting(XlinkConfig::default()).with_scheduler(Arc::new(MinRttConfig::default()))
    }

    /// The receiver of media: the scheduler `min-rtt`, and the feedback policy `player`, which sends the
    /// hints of the application to the peer. Takes a peer with a `max_feedback_size`.
    pub fn player() -> Self {
        Self::default()
            .with_scheduler(Arc::new(MinRttConfig::default()))
            .with_feedback(Arc::new(PlayerFeedbackConfig::default()))
    }

    /// TECC at the server of a connection through a tunnel that repairs losses (NSDI 2024): the loss judge and the
    /// feedback policy that are called `tecc`. Goes with the congestion controller `follow-external`.
    pub fn tecc() -> Self {
        Self::default()
            .with_loss_judge(Arc::new(TeccLossJudgeConfig::default()))
            .with_feedback(Arc::new(TeccFeedbackConfig::default()))
    }

    /// TECC at the client: the feedback policy `tecc-client`. Takes a peer with a `max_feedback_size`.
    pub fn tecc_client() -> Self {
        Self::default().with_feedback(Arc::new(TeccClientFeedbackConfig::default()))
    }

    /// Sets the scheduler.
    #[must_use]
    pub fn with_scheduler(mut self, scheduler: Arc<dyn SchedulerFactory>) -> Self {
        self.scheduler = scheduler;
        self
    }

    /// Sets the re-injector.
    #[must_use]
    pub fn with_reinjector(mut self, reinjector: Arc<dyn ReinjectorFactory>) -> Self {
        self.reinjector = reinjector;
        self
    }

    /// Sets the loss judge.
    #[must_use]
    pub fn with_loss_judge(mut self, loss_judge: Arc<dyn LossJudgeFactory>) -> Self {
        self.loss_judge = loss_judge;
        self
    }

    /// Sets the feedback policy.
    #[must_use]
    pub fn with_feedback(mut self, feedback: Arc<dyn FeedbackFactory>) -> Self {
        self.feedback = feedback;
        self
    }
}

impl PolicyFactory for Policies {
    fn scheduler(&self) -> Box<dyn Scheduler> {
        self.scheduler.scheduler()
    }

    fn reinjector(&self) -> Box<dyn Reinjector> {
        self.reinjector.reinjector()
    }

    fn loss_judge(&self, path: PathId, configured: ReorderingThresholds) -> Box<dyn LossJudge> {
        self.loss_judge.loss_judge(path, configured)
    }

    fn feedback(&self) -> Box<dyn FeedbackPolicy> {
        self.feedback.feedback()
    }
}
