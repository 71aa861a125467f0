//! The states of the machine, with the gains of each.

use crate::bbr::gain::Gain;

use super::config::Bbr3Config;

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum State {
    Startup,
    Drain,
    /// `ProbeBW_DOWN`: sends less than is delivered, to drain the queue and to leave headroom.
    Down,
    /// `ProbeBW_CRUISE`: sends what is delivered.
    Cruise,
    /// `ProbeBW_REFILL`: fills the pipe, without a queue, before probing.
    Refill,
    /// `ProbeBW_UP`: sends more than is delivered, to find more bandwidth.
    Up,
    ProbeRtt,
}

impl State {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Startup => "startup",
            Self::Drain => "drain",
            Self::Down => "probe_bw_down",
            Self::Cruise => "probe_bw_cruise",
            Self::Refill => "probe_bw_refill",
            Self::Up => "probe_bw_up",
            Self::ProbeRtt => "probe_rtt",
        }
    }

    /// True in the states of `ProbeBW`.
    pub(super) fn is_probe_bw(self) -> bool {
        matches!(self, Self::Down | Self::Cruise | Self::Refill | Self::Up)
    }

    /// True where more is sent to find more bandwidth, so that losses say nothing about the short
    /// term.
    pub(super) fn is_accelerating(self) -> bool {
        matches!(self, Self::Startup | Self::Refill | Self::Up)
    }

    pub(super) fn pacing_gain(self, config: &Bbr3Config) -> Gain {
        match self {
            Self::Startup => Gain::new(config.startup_gain),
            Self::Drain => Gain::new(config.drain_gain),
            Self::Down => Gain::new(config.probe_down_gain),
            Self::Up => Gain::new(config.probe_up_gain),
            Self::Cruise | Self::Refill | Self::ProbeRtt => Gain::UNITY,
        }
    }

    pub(super) fn cwnd_gain(self, config: &Bbr3Config) -> Gain {
        Gain::new(match self {
            Self::Startup | Self::Drain => config.startup_cwnd_gain,
            Self::Down | Self::Cruise | Self::Refill => config.cwnd_gain,
            Self::Up => config.probe_up_cwnd_gain,
            Self::ProbeRtt => config.probe_rtt_gain,
        })
    }
}
