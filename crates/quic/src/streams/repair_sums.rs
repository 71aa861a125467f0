//! Sums and differences of [`RepairStats`], for those who look at several connections or at a part
//! of a connection's life.

use std::ops::AddAssign;

use super::repairs::RepairStats;

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
