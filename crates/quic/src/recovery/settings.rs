//! What the configuration says about the recovery of a path, at its present packet size.

use std::sync::Arc;

use rand_core::Rng;
use swiftwater_congestion::Env;
use swiftwater_units::{ByteCount, PathId};

use crate::config::TransportConfig;

/// Largest factor of the probe timeout's back-off.
const MAX_BACKOFF: f64 = 8.0;

/// What the configuration says about recovery, and the path's present packet size.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    pub(super) config: Arc<TransportConfig>,
    /// The congestion window to start with, at the present packet size.
    pub(super) initial_window: ByteCount,
    pub(super) path: PathId,
    pub(super) max_datagram_size: u16,
}

impl Settings {
    pub(super) fn new(path: PathId, config: &Arc<TransportConfig>, max_datagram_size: u16) -> Self {
        let mut new = Self {
            config: Arc::clone(config),
            initial_window: ByteCount::ZERO,
            path,
            max_datagram_size,
        };
        new.set_max_datagram_size(max_datagram_size);
        new
    }

    pub(super) fn set_max_datagram_size(&mut self, max_datagram_size: u16) {
        self.max_datagram_size = max_datagram_size;
        self.initial_window = self.first_window();
    }

    pub(super) fn packet(&self) -> ByteCount {
        ByteCount::new(u64::from(self.max_datagram_size))
    }

    fn minimum_window(&self) -> ByteCount {
        self.packet().times(2)
    }

    /// As configured, or as the algorithm asks, or as in RFC 9002, section 7.2.
    fn first_window(&self) -> ByteCount {
        let packet = self.packet();
        let usual = packet
            .times(10)
            .min(packet.times(2).max(ByteCount::new(14_720)));
        let wanted = self.config.controller.initial_window();
        let wanted = wanted.map(|packets| packet.times(packets.get()));
        (self.config.initial_window)
            .or(wanted)
            .unwrap_or(usual)
            .max(self.minimum_window())
    }

    /// The factor of the probe timeout's back-off, thousandths.
    pub(super) fn pto_backoff(&self) -> u32 {
        (self.config.pto_backoff.clamp(1.0, MAX_BACKOFF) * 1000.0).round() as u32
    }

    pub(super) fn env<'a>(&self, rng: &'a mut dyn Rng) -> Env<'a> {
        Env {
            max_datagram_size: self.packet(),
            initial_window: self.initial_window,
            minimum_window: self.minimum_window(),
            path: self.path,
            rng,
        }
    }
}
