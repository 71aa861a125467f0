//! What the repair of lost stream data comes to, in totals that can be added and subtracted.

use std::ops::AddAssign;
use std::time::Duration;

use swiftwater_units::ByteCount;

use crate::policy::RepairCause;

/// Applies an operation to every field that is a sum.
macro_rules! each_sum {
    ($own:ident $op:tt $other:ident) => {
        $own.new_bytes $op $other.new_bytes;
        $own.lost_bytes $op $other.lost_bytes;
        $own.lost_data $op $other.lost_data;
        $own.spurious_bytes $op $other.spurious_bytes;
        $own.retransmitted_bytes $op $other.retransmitted_bytes;
        $own.recovered_bytes $op $other.recovered_bytes;
        $own.repeated_bytes $op $other.repeated_bytes;
        $own.repeated_data $op $other.repeated_data;
        $own.recovery_latency_sum $op $other.recovery_latency_sum;
        $own.deteriorated_bytes $op $other.deteriorated_bytes;
        $own.late_bytes $op $other.late_bytes;
        $own.detection_time_sum $op $other.detection_time_sum;
        $own.detected_bytes $op $other.detected_bytes;
        $own.probe_time_sum $op $other.probe_time_sum;
        $own.probed_bytes $op $other.probed_bytes;
        $own.replicas_sent $op $other.replicas_sent;
        $own.replica_bytes $op $other.replica_bytes;
        $own.replicas_useful $op $other.replicas_useful;
        $own.replicas_wasted $op $other.replicas_wasted;
    };
}

/// Totals of the repair of lost stream data. Means are weighted by bytes, so that a data range that was
/// cut in two counts no more than one that wasn't.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct RepairStats {
    /// Stream bytes sent for the first time.
    pub new_bytes: ByteCount,
    /// Bytes declared lost, or probed for, each counted once.
    pub lost_bytes: ByteCount,
    /// Data (ranges) declared lost, each counted once.
    pub lost_data: u64,
    /// Of `lost_bytes`, those whose first transmission arrived after all.
    pub spurious_bytes: ByteCount,
    /// Bytes of retransmissions sent, replicas excluded.
    pub retransmitted_bytes: ByteCount,
    /// Bytes whose repair is over.
    pub recovered_bytes: ByteCount,
    /// Of these, the ones whose first retransmission did not get through: those that a recovery
    /// latency is counted for.
    pub repeated_bytes: ByteCount,
    /// Data that `repeated_bytes` are of.
    pub repeated_data: u64,
    /// Sum over `repeated_bytes` of the time from first retransmission to the sending of the copy
    /// that arrived first, in byte-nanoseconds.
    pub recovery_latency_sum: u128,
    /// The longest such time.
    pub max_recovery_latency: Duration,
    /// Recovered bytes that needed a second loss detection.
    pub deteriorated_bytes: ByteCount,
    /// Recovered bytes whose recovery latency was no less than their own detection time.
    pub late_bytes: ByteCount,
    /// Sum over the first retransmissions of the time since the first transmission, in
    /// byte-nanoseconds; retransmissions for loss only.
    pub detection_time_sum: u128,
    /// Bytes that `detection_time_sum` is of.
    pub detected_bytes: ByteCount,
    /// As `detection_time_sum`, for data that a probe timeout repeated.
    pub probe_time_sum: u128,
    /// Bytes that `probe_time_sum` is of.
    pub probed_bytes: ByteCount,
    /// Replicas sent, of each data range; a data range that is cut in two takes its replicas along twice.
    pub replicas_sent: u64,
    /// Their bytes.
    pub replica_bytes: ByteCount,
    /// Data that a replica brought first.
    pub replicas_useful: u64,
    /// Replicas of recovered data that brought nothing.
    pub replicas_wasted: u64,
}

impl RepairStats {
    /// Counts a first retransmission of `len` bytes, `time` after their first transmission.
    pub(super) fn count_detection(&mut self, cause: RepairCause, time: Duration, len: u32) {
        let (sum, of) = match cause {
            RepairCause::Loss => (&mut self.detection_time_sum, &mut self.detected_bytes),
            RepairCause::Probe => (&mut self.probe_time_sum, &mut self.probed_bytes),
        };
        *sum += time.as_nanos() * u128::from(len);
        *of += u64::from(len).into();
    }

    /// Mean recovery latency of data whose first retransmission was lost (AutoRec, section III-C).
    pub fn mean_recovery_latency(&self) -> Option<Duration> {
        mean(self.recovery_latency_sum, self.repeated_bytes)
    }

    /// Mean time from sending to retransmission, for data found lost (`T_unit`), probes excluded.
    pub fn mean_detection_time(&self) -> Option<Duration> {
        mean(self.detection_time_sum, self.detected_bytes)
    }

    /// Share of recovered bytes that needed two or more loss detections (recovery deterioration
    /// rate, AutoRec section VII), 0 to 1; spurious losses are no losses.
    pub fn deterioration_rate(&self) -> Option<f64> {
        let lost = (self.recovered_bytes.saturating_sub(self.spurious_bytes)).get();
        (lost > 0).then(|| self.deteriorated_bytes.get() as f64 / lost as f64)
    }

    /// Replica bytes per byte sent for the first time (AutoRec, section V-A).
    pub fn redundancy_cost(&self) -> f64 {
        self.replica_bytes.get() as f64 / self.new_bytes.get().max(1) as f64
    }
}

fn mean(sum: u128, bytes: ByteCount) -> Option<Duration> {
    let nanos = sum.checked_div(u128::from(bytes.get()))?;
    Some(Duration::from_nanos(
        u64::try_from(nanos).unwrap_or(u64::MAX),
    ))
}

impl AddAssign for RepairStats {
    /// Adds another connection's; the longest recovery latency is that of both.
    fn add_assign(&mut self, other: Self) {
        each_sum!(self += other);
        self.max_recovery_latency = self.max_recovery_latency.max(other.max_recovery_latency);
    }
}

impl RepairStats {
    /// What was counted since `earlier`, which must be an earlier state of the same connections. The
    /// longest recovery latency is that of the whole time.
    #[must_use]
    pub fn since(mut self, earlier: &Self) -> Self {
        each_sum!(self -= earlier);
        self
    }
}
