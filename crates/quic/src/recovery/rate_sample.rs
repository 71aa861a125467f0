//! Delivery-rate samples, and marks for what limits the flow besides path and window
//! (draft-ietf-ccwg-bbr, section 4.1).

use std::time::Duration;

use swiftwater_congestion::RateSample;
use swiftwater_units::{Bandwidth, ByteCount, Instant, PacketCount};

use super::{AckedPacket, DeliverySnapshot, LostRecord};

/// Something limited the flow until what was in flight then has been delivered.
#[derive(Clone, Copy, Debug)]
struct Mark {
    /// The mark stands until `delivered` exceeds this; 0 is no mark. It equals `delivered` plus what
    /// is still in flight of the packets sent by `at`.
    until: u64,
    at: Instant,
}

impl Mark {
    fn is_set(&self) -> bool {
        self.until != 0
    }

    /// True if the mark is set and counts packets sent at `sent_at`.
    fn counts(&self, sent_at: Instant) -> bool {
        self.is_set() && sent_at <= self.at
    }

    fn set(&mut self, now: Instant, delivered: u64, inflight: ByteCount) {
        self.until = delivered.saturating_add(inflight.get()).max(1);
        self.at = now;
    }

    fn expire(&mut self, delivered: u64) {
        if delivered > self.until {
            self.until = 0;
        }
    }

    fn on_delivered(&mut self, packet: &AckedPacket) {
        if packet.lost_in.is_some() && self.counts(packet.sent_at) {
            // It was taken out of the mark when it was lost, or never was in it.
            self.until = self.until.saturating_add(u64::from(packet.size));
        }
    }

    fn on_lost(&mut self, packet: &LostRecord) {
        if self.counts(packet.sent_at) {
            self.until = self.until.saturating_sub(u64::from(packet.size)).max(1);
        }
    }

    /// No more than `reachable` will ever be delivered of what is in flight.
    fn limit(&mut self, reachable: u64) {
        if self.is_set() {
            self.until = self.until.min(reachable).max(1);
        }
    }
}

/// Delivery accounting of one path.
#[derive(Clone, Copy, Debug)]
pub(super) struct RateSampler {
    delivered: u64,
    delivered_at: Instant,
    first_sent_at: Instant,
    lost: u64,
    ce: u64,
    /// Packets are sampled as application-limited.
    app_limited: Mark,
    /// The controller held sending back: packets are sampled as application-limited, though the
    /// application may have had more.
    held_back: Mark,
    /// The peer's flow control held data back. Samples are none the less worth: a peer that is slow
    /// is as good as a path that is slow (section 4.1.1.3.1).
    flow_limited: Mark,
}

impl RateSampler {
    /// Until something was delivered it isn't known what limits the flow, so it counts as limited
    /// by the application.
    pub(super) fn new(now: Instant) -> Self {
        Self {
            delivered: 0,
            delivered_at: now,
            first_sent_at: now,
            lost: 0,
            ce: 0,
            app_limited: Mark { until: 1, at: now },
            held_back: Mark { until: 0, at: now },
            flow_limited: Mark { until: 0, at: now },
        }
    }

    /// A packet leaves; what to keep of it.
    pub(super) fn on_sent(
        &mut self,
        now: Instant,
        inflight_before: ByteCount,
        size: u64,
        is_probe: bool,
        period: u64,
    ) -> DeliverySnapshot {
        if inflight_before.is_zero() {
            // A new flight: the idle time before it must not dilute its samples.
            self.first_sent_at = now;
            self.delivered_at = now;
        }
        DeliverySnapshot {
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_sent_at: self.first_sent_at,
            tx_in_flight: inflight_before.get().saturating_add(size),
            lost: self.lost,
            ce: self.ce,
            // What a timeout sends is spaced by the timeout, not by the path.
            is_app_limited: is_probe || self.is_app_limited(),
            period,
        }
    }

    /// `packet` arrived; counted once, however late.
    pub(super) fn on_delivered(&mut self, now: Instant, packet: &AckedPacket) {
        self.app_limited.on_delivered(packet);
        self.held_back.on_delivered(packet);
        self.flow_limited.on_delivered(packet);
        self.delivered = self.delivered.saturating_add(u64::from(packet.size));
        self.delivered_at = now;
    }

    /// After the last [`RateSampler::on_delivered`] of an ACK.
    pub(super) fn expire_marks(&mut self) {
        self.app_limited.expire(self.delivered);
        self.held_back.expire(self.delivered);
        self.flow_limited.expire(self.delivered);
    }

    /// `packet` was lost.
    pub(super) fn on_lost(&mut self, packet: &LostRecord) {
        self.lost = self.lost.saturating_add(u64::from(packet.size));
        self.app_limited.on_lost(packet);
        self.held_back.on_lost(packet);
        self.flow_limited.on_lost(packet);
    }

    /// Packets left flight unaccounted; `inflight` remain.
    pub(super) fn on_discard(&mut self, inflight: ByteCount) {
        let reachable = self.delivered.saturating_add(inflight.get());
        self.app_limited.limit(reachable);
        self.held_back.limit(reachable);
        self.flow_limited.limit(reachable);
    }

    pub(super) fn on_ce(&mut self, packets: PacketCount) {
        self.ce = self.ce.saturating_add(packets.get());
    }

    /// The application has nothing more to send, with `inflight` on the way.
    pub(super) fn mark_app_limited(&mut self, now: Instant, inflight: ByteCount) {
        self.app_limited.set(now, self.delivered, inflight);
    }

    /// The controller holds sending back, with `inflight` on the way.
    pub(super) fn mark_held_back(&mut self, now: Instant, inflight: ByteCount) {
        self.held_back.set(now, self.delivered, inflight);
    }

    /// The peer's flow control holds back what the application has, with `inflight` on the way.
    pub(super) fn mark_flow_limited(&mut self, now: Instant, inflight: ByteCount) {
        self.flow_limited.set(now, self.delivered, inflight);
    }

    /// True if packets are sampled as application-limited.
    pub(super) fn is_app_limited(&self) -> bool {
        self.app_limited.is_set() || self.held_back.is_set()
    }

    /// True if the window isn't what limits the flow, and so isn't tested (RFC 9002, section 7.8).
    pub(super) fn is_window_untested(&self) -> bool {
        self.app_limited.is_set() || self.flow_limited.is_set()
    }

    pub(super) fn delivered(&self) -> u64 {
        self.delivered
    }

    /// The sample of an ACK whose most recently sent packet is `newest`; `None` if it spans less
    /// than a round trip and so says more about ACK compression than about the path.
    pub(super) fn sample(
        &mut self,
        newest: &AckedPacket,
        min_rtt: Option<Duration>,
    ) -> Option<RateSample> {
        let then = &newest.snapshot;
        self.first_sent_at = newest.sent_at;
        let send_elapsed = newest.sent_at.saturating_since(then.first_sent_at);
        let ack_elapsed = self.delivered_at.saturating_since(then.delivered_at);
        let interval = send_elapsed.max(ack_elapsed);
        if interval.is_zero() || interval < min_rtt.unwrap_or_default() {
            return None;
        }
        let delivered = self.delivered.saturating_sub(then.delivered);
        Some(RateSample {
            delivered: ByteCount::new(delivered),
            interval,
            rate: Bandwidth::from_transfer(delivered, interval),
            is_app_limited: then.is_app_limited,
            prior_delivered: ByteCount::new(then.delivered),
            tx_in_flight: ByteCount::new(then.tx_in_flight),
            lost_since_sent: ByteCount::new(self.lost.saturating_sub(then.lost)),
            ce_since_sent: PacketCount::new(self.ce.saturating_sub(then.ce)),
            send_elapsed,
            ack_elapsed,
        })
    }
}
