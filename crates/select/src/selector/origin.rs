//! What is remembered of networks and origins.

use std::collections::{BTreeMap, BTreeSet};

use swiftwater_units::Instant;

use super::config::Config;
use crate::bandit::{Bandit, Comparisons};
use crate::blocked::Block;
use crate::decision::{Reason, Trigger};
use crate::experiment::Experiment;
use crate::key::OriginHash;
use crate::monitor::Monitor;
use crate::parameters::Parameters;
use crate::patience::Patience;
use crate::recheck::Recheck;
use crate::rollback::{Pause, Watch};
use crate::strategy::Strategy;
use crate::window::Window;

/// What all origins of a network have in common.
#[derive(Clone, Debug, Default)]
pub(super) struct Shared {
    /// UDP is blocked on the network.
    pub(super) block: Block,
    /// Origins where QUIC failed since it last worked anywhere.
    pub(super) failing: BTreeSet<OriginHash>,
    pub(super) comparisons: Comparisons,
}

/// A network.
#[derive(Clone, Debug, Default)]
pub(super) struct NetworkState {
    pub(super) used: Instant,
    pub(super) shared: Shared,
    pub(super) origins: BTreeMap<OriginHash, OriginState>,
}

/// An origin on a network.
#[derive(Clone, Debug)]
pub(super) struct OriginState {
    pub(super) used: Instant,
    /// Position of the selected arm, and why it is selected.
    pub(super) current: usize,
    pub(super) why: Reason,
    /// A connection was established.
    pub(super) connected: bool,
    /// By arm.
    pub(super) windows: Vec<Window>,
    /// Failures in a row, by arm.
    pub(super) failures: Vec<u32>,
    pub(super) block: Block,
    /// By arm.
    pub(super) in_flight: Vec<u32>,
    /// An experiment is to be started.
    pub(super) due: Option<Trigger>,
    pub(super) experiment: Option<Experiment>,
    /// Number of experiments so far: tells their requests apart.
    pub(super) experiments: u64,
    pub(super) monitor: Monitor,
    /// Last score of the model, first version.
    pub(super) score: Option<f32>,
    pub(super) watch: Option<Watch>,
    pub(super) pause: Pause,
    pub(super) patience: Patience,
    pub(super) recheck: Recheck,
    pub(super) bandit: Option<Bandit>,
    /// Arm that lost last, and until when its connection is useful.
    pub(super) loser: Option<(usize, Instant)>,
}

impl OriginState {
    pub(super) fn new(now: Instant, config: &Config) -> Self {
        let arms = config.arms.len();
        let is_plus = config.strategy == Strategy::Plus;
        Self {
            used: now,
            current: 0,
            why: Reason::Kept,
            connected: false,
            windows: vec![Window::default(); arms],
            failures: vec![0; arms],
            block: Block::default(),
            in_flight: vec![0; arms],
            due: Some(Trigger::NewConnection),
            experiment: None,
            experiments: 0,
            monitor: Monitor::default(),
            score: None,
            watch: None,
            pause: Pause::default(),
            patience: Patience::default(),
            recheck: Recheck::default(),
            bandit: is_plus.then(|| Bandit::new(arms, &config.parameters)),
            loser: None,
        }
    }

    /// Requests that a new one on `arm` waits for, about: those on the same connection are answered before it, and other
    /// connections have their shares of the link meanwhile.
    pub(super) fn ahead(&self, arm: usize) -> u32 {
        let own = self.in_flight[arm];
        let all: u32 = self.in_flight.iter().sum();
        own + (all - own).min(own + 1)
    }

    /// When something is to be done, if at all.
    pub(super) fn next_due(&self, parameters: &Parameters) -> Option<Instant> {
        let experiment = self.experiment.as_ref();
        let experiment = experiment.map(|experiment| experiment.due(parameters));
        let watch = self.watch.as_ref().map(|watch| watch.due(parameters));
        [experiment, watch].into_iter().flatten().min()
    }

    /// Forgets what was measured before the host came to the network (again).
    pub(super) fn start_anew(&mut self, config: &Config) {
        self.windows.iter_mut().for_each(Window::clear);
        self.failures.fill(0);
        self.due = Some(Trigger::NetworkChange);
        self.experiment = None;
        self.monitor = Monitor::default();
        self.score = None;
        self.watch = None;
        self.pause.clear();
        self.patience = Patience::default();
        self.recheck = Recheck::default();
        self.connected = false;
        if let Some(bandit) = &mut self.bandit {
            *bandit = Bandit::new(config.arms.len(), &config.parameters);
        }
    }

    /// The host left the network: nothing more comes of the requests in flight.
    pub(super) fn suspend(&mut self) {
        self.experiment = None;
        self.watch = None;
    }
}
