//! The frame that loss-based algorithms share: slow start, the reaction to a congestion event, its
//! undoing, persistent congestion, pacing gains. What differs, the growth in congestion
//! avoidance and the reduction factor, is a [`Curve`].
//!
//! Episodes, rounds and the start of recovery are the transport's; nothing here records when
//! recovery began (RFC 9002, section 7.3; RFC 9438).

use std::time::Duration;

use swiftwater_tunable::parameters::{lists, unknown};
use swiftwater_tunable::{Parameter, ParameterError, Tunable};
use swiftwater_units::{ByteCount, Instant};

use crate::clamp::clamp_or;
use crate::controller::{Controller, Env, Pacing, Snapshot};
use crate::growth::{FlightPeak, MAX_WINDOW, SlowStartStep};
use crate::pacing_gains::PacingGains;
use crate::prr::Prr;
use crate::sample::{AckBatch, EcnBatch, EpisodeId, LossBatch, RttView, SentInfo};
use crate::slow_start::SlowStart;

/// Growth of the window in congestion avoidance, and the factor of a reduction.
///
/// A *stage* of congestion avoidance begins with the first ACK that may grow the window after slow
/// start or after a congestion event.
pub trait Curve: Clone + Send + 'static {
    /// The name by which users select the algorithm.
    const NAME: &'static str;

    /// What a congestion event multiplies the window by, in (0, 1).
    fn beta(&self) -> f64;

    /// The window after `acked` more bytes, for a flow that uses its window `cwnd`. May be called
    /// with less than `ack.acked_bytes` if slow start took the rest. Growth is to be `scale` times that
    /// of a single path, 0 to 2; see [`Coupling`](crate::Coupling) for what that means to a curve that
    /// isn't linear. The result never is below `cwnd`.
    fn grow(
        &mut self,
        cwnd: ByteCount,
        acked: ByteCount,
        scale: f64,
        ack: &AckBatch,
        env: &Env<'_>,
    ) -> ByteCount;

    /// The window is about to be reduced from `cwnd`; the stage ends.
    fn on_reduction(&mut self, cwnd: ByteCount);

    /// Slow start ended with window `cwnd` without a loss; a stage begins.
    fn on_slow_start_exit(&mut self, cwnd: ByteCount);

    /// Persistent congestion: reset the stage and the estimates of the path.
    fn reset(&mut self);

    /// Time up to `now` was not used for probing: idle, application-limited, in recovery.
    fn pause(&mut self, now: Instant);

    /// The maximum datagram size is now that of `env`.
    fn on_max_datagram_size_change(&mut self, env: &Env<'_>);

    /// Values for logs.
    fn details(&self) -> Vec<(&'static str, f64)>;

    /// Parameters that can be changed while the curve is in use; see [`Controller::configure`].
    fn parameters(&self) -> Vec<Parameter> {
        Vec::new()
    }

    /// Changes one of them.
    fn set_parameter(&mut self, name: &str, _value: &str) -> Result<(), ParameterError> {
        Err(ParameterError::none(name))
    }
}

/// What a reduction changes, as it was before.
#[derive(Clone, Debug)]
pub struct Checkpoint<C> {
    cwnd: ByteCount,
    ssthresh: Option<ByteCount>,
    curve: C,
}

/// A loss-based controller whose congestion avoidance follows `C`.
///
/// Other controllers may wrap it: forward the calls, and replace the reaction to a loss by
/// [`LossBased::reduce_for_loss`] with a factor of their own, or by [`LossBased::end_recovery`].
#[derive(Clone, Debug)]
pub struct LossBased<C> {
    cwnd: ByteCount,
    ssthresh: Option<ByteCount>,
    /// The window that the path started with, to notice that it was never touched.
    start_window: ByteCount,
    slow_start: SlowStart,
    curve: C,
    peak: FlightPeak,
    /// What must come back if that episode turns out to be none.
    undo: Option<Box<(EpisodeId, Checkpoint<C>)>>,
    gains: PacingGains,
    use_prr: bool,
    /// The recovery period under way, if it is under PRR.
    prr: Option<Box<Prr>>,
    /// What the growth in congestion avoidance is multiplied by; negative shrinks the window.
    growth_scale: f32,
    /// For logs only.
    recovering: bool,
}

impl<C: Curve> LossBased<C> {
    /// A controller at the start of a path.
    pub fn new(curve: C, slow_start: SlowStart, gains: PacingGains, env: &Env<'_>) -> Self {
        let cwnd = start_window(env);
        Self {
            cwnd,
            ssthresh: None,
            start_window: cwnd,
            slow_start,
            curve,
            peak: FlightPeak::default(),
            undo: None,
            gains,
            use_prr: false,
            prr: None,
            growth_scale: 1.0,
            recovering: false,
        }
    }

    /// The same with Proportional Rate Reduction (RFC 9937) in recovery, or without.
    #[must_use]
    pub fn with_prr(mut self, on: bool) -> Self {
        self.use_prr = on;
        self
    }

    /// The curve of congestion avoidance.
    pub fn curve(&self) -> &C {
        &self.curve
    }

    /// True while the window is below the slow-start threshold.
    pub fn in_slow_start(&self) -> bool {
        self.ssthresh.is_none_or(|ssthresh| self.cwnd < ssthresh)
    }

    /// The slow-start threshold; `None` before the first slow start has ended.
    pub fn ssthresh(&self) -> Option<ByteCount> {
        self.ssthresh
    }

    /// Multiplies the window by `factor`, the whole reaction to a congestion event included. With
    /// an `episode` the step can be undone by [`Controller::on_spurious`]. The window is the reduced
    /// one at once; for PRR see [`LossBased::reduce_for_loss`].
    pub fn reduce(&mut self, factor: f64, episode: Option<EpisodeId>, env: &Env<'_>) {
        self.undo = episode.map(|episode| Box::new((episode, self.checkpoint())));
        self.curve.on_reduction(self.cwnd);
        self.cwnd = self
            .cwnd
            .scaled(factor)
            .max(env.minimum_window)
            .min(MAX_WINDOW);
        self.ssthresh = Some(self.cwnd);
        self.prr = None;
        self.recovering = true;
    }

    /// [`LossBased::reduce`] for the episode that `loss` opens, followed by PRR if that is on.
    pub fn reduce_for_loss(&mut self, factor: f64, loss: &LossBatch<'_>, env: &Env<'_>) {
        self.reduce(factor, Some(loss.episode), env);
        self.begin_prr(loss.now, loss.prior_inflight, loss.inflight, env);
    }

    /// Ends the recovery period, if there is one: another congestion event begins that reduces
    /// nothing.
    pub fn end_recovery(&mut self) {
        self.prr = None;
        self.recovering = false;
    }

    /// Grows the window by `bytes` on top of what the curve gives, at most to what flights of late
    /// allow ([`FlightPeak::cap`]). A stage of congestion avoidance begins there.
    pub fn grow_ahead(&mut self, bytes: ByteCount) {
        let bytes = bytes.scaled(f64::from(self.growth_scale));
        let grown = (self.cwnd + bytes).min(self.peak.cap(false));
        if grown > self.cwnd {
            self.cwnd = grown;
            self.begin_stage();
        }
    }

    /// Begins a stage of congestion avoidance at the window as it is, as at the end of slow start.
    pub fn begin_stage(&mut self) {
        self.curve.on_slow_start_exit(self.cwnd);
    }

    /// Time up to `now` doesn't count as used for growing.
    pub fn pause(&mut self, now: Instant) {
        self.curve.pause(now);
    }

    /// Goes on with a window of `cwnd` in congestion avoidance, as after another algorithm.
    pub fn continue_at(&mut self, cwnd: ByteCount, env: &Env<'_>) {
        self.cwnd = cwnd.max(env.minimum_window).min(MAX_WINDOW);
        self.ssthresh = Some(self.cwnd);
        self.curve.reset();
        self.undo = None;
        self.end_recovery();
        self.begin_stage();
    }

    /// What the next reduction is going to change.
    pub fn checkpoint(&self) -> Checkpoint<C> {
        Checkpoint {
            cwnd: self.cwnd,
            ssthresh: self.ssthresh,
            curve: self.curve.clone(),
        }
    }

    /// Takes back all reductions since `saved`, unless the window is no smaller now. The time since
    /// doesn't count as used for growing.
    pub fn restore(&mut self, saved: Checkpoint<C>, now: Instant) {
        if self.cwnd < saved.cwnd {
            self.cwnd = saved.cwnd;
            self.ssthresh = saved.ssthresh;
            self.curve = saved.curve;
            self.curve.pause(now);
            self.end_recovery();
        }
    }

    fn begin_prr(
        &mut self,
        now: Instant,
        prior_inflight: ByteCount,
        inflight: ByteCount,
        env: &Env<'_>,
    ) {
        if self.use_prr {
            let prr = Prr::begin(now, prior_inflight, inflight, env);
            self.prr = Some(Box::new(prr));
        }
    }

    /// Moves the window by `acked` bytes in congestion avoidance, at most to `cap`.
    fn move_in_avoidance(
        &mut self,
        acked: ByteCount,
        cap: ByteCount,
        ack: &AckBatch,
        env: &Env<'_>,
    ) {
        let scale = f64::from(self.growth_scale);
        if scale < 0.0 {
            let reno = env.max_datagram_size.get() as f64 / self.cwnd.get().max(1) as f64;
            let less = acked.scaled(-scale * reno);
            let least = env.minimum_window.min(self.cwnd);
            self.cwnd = self.cwnd.saturating_sub(less).max(least);
            // A window below the threshold would be one of slow start.
            self.ssthresh = self.ssthresh.map(|ssthresh| ssthresh.min(self.cwnd));
            self.curve.pause(ack.now);
        } else {
            let grown = self.curve.grow(self.cwnd, acked, scale, ack, env);
            self.cwnd = grown.min(cap).max(self.cwnd);
        }
    }

    /// Grows in slow start; returns the bytes of `ack` left for congestion avoidance.
    fn grow_in_slow_start(
        &mut self,
        cap: ByteCount,
        ack: &AckBatch,
        env: &Env<'_>,
    ) -> Option<ByteCount> {
        match self.slow_start.on_ack(self.cwnd, ack, env) {
            SlowStartStep::Exit(window) => {
                self.cwnd = window.max(env.minimum_window);
                self.ssthresh = Some(self.cwnd);
                self.curve.on_slow_start_exit(self.cwnd);
                Some(ack.acked_bytes)
            }
            SlowStartStep::Grow(bytes) => {
                let room = self
                    .ssthresh
                    .map_or(ByteCount::MAX, |ssthresh| ssthresh - self.cwnd);
                self.cwnd = (self.cwnd + bytes.min(room)).min(cap).max(self.cwnd);
                (bytes > room).then(|| bytes - room)
            }
        }
    }
}

/// The window to start with, within the bounds that hold for every window.
fn start_window(env: &Env<'_>) -> ByteCount {
    env.initial_window.max(env.minimum_window).min(MAX_WINDOW)
}

/// What can be changed while the controller runs: the parameters of the curve, and pacing gains.
impl<C: Curve> Tunable for LossBased<C> {
    fn parameters(&self) -> Vec<Parameter> {
        [self.curve.parameters(), self.gains.parameters()].concat()
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), ParameterError> {
        let of_curve = self.curve.parameters();
        if of_curve.iter().any(|parameter| parameter.name == name) {
            self.curve.set_parameter(name, value)
        } else if lists(&self.gains, name) {
            self.gains.set(name, value)
        } else {
            Err(unknown(name, &Tunable::parameters(self)))
        }
    }
}

impl<C: Curve> Controller for LossBased<C> {
    fn name(&self) -> &'static str {
        C::NAME
    }

    fn on_sent(&mut self, sent: &SentInfo, _env: &mut Env<'_>) {
        if let Some(prr) = &mut self.prr {
            prr.on_sent(sent.bytes);
        }
    }

    fn on_ack(&mut self, ack: &AckBatch, env: &mut Env<'_>) {
        self.peak.observe(ack);
        if ack.sent_after_recovery_start {
            self.end_recovery();
        } else if let Some(prr) = &mut self.prr {
            prr.on_ack(ack, self.cwnd, env);
        }
        if ack.acked_bytes.is_zero() {
            return;
        }
        let in_slow_start = self.in_slow_start();
        let cap = self.peak.cap(in_slow_start);
        if !ack.may_grow() || self.cwnd >= cap {
            self.curve.pause(ack.now);
            return;
        }
        let left = if in_slow_start {
            self.grow_in_slow_start(cap, ack, env)
        } else {
            Some(ack.acked_bytes)
        };
        if let Some(acked) = left {
            self.move_in_avoidance(acked, cap, ack, env);
        }
    }

    fn on_loss(&mut self, loss: &LossBatch<'_>, env: &mut Env<'_>) {
        if loss.new_episode {
            self.reduce_for_loss(self.curve.beta(), loss, env);
        } else if let Some(prr) = &mut self.prr {
            prr.on_loss(loss, env);
        }
    }

    fn on_ce(&mut self, ce: &EcnBatch, env: &mut Env<'_>) {
        if ce.new_episode {
            self.reduce(self.curve.beta(), None, env);
            // Nothing was lost; the ACK that follows shows what it delivered.
            self.begin_prr(ce.now, ce.inflight, ce.inflight, env);
        } else {
            // The network itself confirms the congestion: there is nothing left to undo.
            self.undo = None;
        }
    }

    fn on_spurious(&mut self, episode: EpisodeId, now: Instant, _env: &mut Env<'_>) {
        if let Some(undo) = self.undo.take_if(|undo| undo.0 == episode) {
            self.restore(undo.1, now);
        }
    }

    fn on_persistent_congestion(&mut self, _now: Instant, env: &mut Env<'_>) {
        // The losses before it have set the threshold; without them it must be set now.
        let ssthresh = self.cwnd.scaled(self.curve.beta()).max(env.minimum_window);
        self.ssthresh.get_or_insert(ssthresh);
        self.cwnd = env.minimum_window.min(MAX_WINDOW);
        // Only this leads to slow start again, and HyStart is for the first one.
        self.slow_start = SlowStart::Standard;
        self.curve.reset();
        self.undo = None;
        self.end_recovery();
    }

    fn on_idle_restart(&mut self, now: Instant, _idle: Duration, _env: &mut Env<'_>) {
        self.curve.pause(now);
    }

    fn on_max_datagram_size_change(&mut self, env: &mut Env<'_>) {
        // RFC 9002, section 7.2: a window that is still the initial one follows the new size.
        if self.ssthresh.is_none() && self.cwnd == self.start_window {
            self.start_window = start_window(env);
            self.cwnd = self.start_window;
        }
        self.cwnd = self.cwnd.max(env.minimum_window).min(MAX_WINDOW);
        self.curve.on_max_datagram_size_change(env);
        if let Some(prr) = &mut self.prr {
            prr.on_max_datagram_size_change(env);
        }
    }

    fn cwnd(&self) -> ByteCount {
        self.prr.as_deref().map_or(self.cwnd, Prr::cwnd)
    }

    fn pacing(&self, _rtt: &RttView) -> Pacing {
        let gain = if self.in_slow_start() {
            self.gains.slow_start
        } else {
            self.gains.avoidance
        };
        Pacing {
            rate: None,
            gain,
            quantum: None,
        }
    }

    fn set_growth_scale(&mut self, scale: f64) {
        self.growth_scale = clamp_or(scale, 1.0, -1.0, 2.0) as f32;
    }

    fn can_be_coupled(&self) -> bool {
        true
    }

    fn parameters(&self) -> Vec<Parameter> {
        Tunable::parameters(self)
    }

    fn configure(&mut self, settings: &str) -> Result<(), ParameterError> {
        let mut changed = self.clone();
        changed.set_all(settings)?;
        *self = changed;
        Ok(())
    }

    fn snapshot(&self) -> Snapshot {
        let state = if self.recovering {
            "recovery"
        } else if self.in_slow_start() {
            self.slow_start.phase()
        } else {
            "congestion_avoidance"
        };
        Snapshot {
            cwnd: self.cwnd(),
            ssthresh: self.ssthresh,
            state,
            details: self.curve.details(),
        }
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }
}
