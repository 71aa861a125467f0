//! Delivery-rate samples and the application-limited mark (draft-ietf-ccwg-bbr, section 4.5).

use std::time::Duration;

use swiftwater_congestion::RateSample;
use swiftwater_units::{Bandwidth, ByteCount, Instant, PacketCount};

use super::{AckedPacket, DeliverySnapshot, LostRecord};

/// Delivery accounting of one path.
#[derive(Clone, Copy, Debug)]
pub(super) struct RateSampler {
    delivered: u64,
    delivered_at: Instant,
    first_sent_at: Instant,
    lost: u64,
    ce: u64,
    /// Packets are sampled as application-limited until `delivered` exceeds this; 0 is "not
    /// limited". It equals `delivered` plus what is still in flight of the packets sent by
    /// `marked_at`.
    limited_until: u64,
    marked_at: Instant,
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
            limited_until: 1,
            marked_at: now,
        }
    }

    /// A packet leaves; what to remember of it.
    pub(super) fn on_sent(
        &mut self,
        now: Instant,
        inflight_before: ByteCount,
        size: u64,
        is_probe: bool,
        epoch: u64,
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
            epoch,
        }
    }

    /// `packet` arrived; counted once, however late.
    pub(super) fn on_delivered(&mut self, now: Instant, packet: &AckedPacket) {
        let size = u64::from(packet.size);
        if packet.lost_in.is_some() && self.is_marked(packet.sent_at) {
            // It was taken out of the mark when it was lost, or never was in it.
            self.limited_until = self.limited_until.saturating_add(size);
        }
        self.delivered = self.delivered.saturating_add(size);
        self.delivered_at = now;
    }

    /// After the last [`RateSampler::on_delivered`] of an ACK.
    pub(super) fn expire_mark(&mut self) {
        if self.delivered > self.limited_until {
            self.limited_until = 0;
        }
    }

    /// `packet` was lost.
    pub(super) fn on_lost(&mut self, packet: &LostRecord) {
        let size = u64::from(packet.size);
        self.lost = self.lost.saturating_add(size);
        if self.is_marked(packet.sent_at) {
            self.limited_until = self.limited_until.saturating_sub(size).max(1);
        }
    }

    /// Packets left flight unaccounted; `inflight` remain.
    pub(super) fn on_discard(&mut self, inflight: ByteCount) {
        if self.is_app_limited() {
            let reachable = self.delivered.saturating_add(inflight.get());
            self.limited_until = self.limited_until.min(reachable).max(1);
        }
    }

    pub(super) fn on_ce(&mut self, packets: PacketCount) {
        self.ce = self.ce.saturating_add(packets.get());
    }

    /// The application has nothing more to send, with `inflight` on the way.
    pub(super) fn mark_app_limited(&mut self, now: Instant, inflight: ByteCount) {
        self.limited_until = self.delivered.saturating_add(inflight.get()).max(1);
        self.marked_at = now;
    }

    pub(super) fn is_app_limited(&self) -> bool {
        self.limited_until != 0
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

    /// True if the mark is set and counts packets sent at `sent_at`.
    fn is_marked(&self, sent_at: Instant) -> bool {
        self.is_app_limited() && sent_at <= self.marked_at
    }
}
