//! The performance value by which requests of different sizes are compared.

use crate::parameters::Parameters;

/// Completion time and size of a request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Timed {
    /// Request completion time, ms.
    pub(crate) completion: f32,
    /// Bytes of content.
    pub(crate) bytes: f32,
}

/// True if the sizes differ so much that completion times alone can't be compared.
pub(crate) fn sizes_differ(all: impl IntoIterator<Item = Timed>, parameters: &Parameters) -> bool {
    let (mut least, mut most) = (f32::INFINITY, 0.0_f32);
    for timed in all {
        least = least.min(timed.bytes);
        most = most.max(timed.bytes);
    }
    // Below a kilobyte, size has no effect on time.
    f64::from(most.max(1024.0)) > parameters.size_ratio * f64::from(least.max(1024.0))
}

/// The value of a request, less is better: its completion time, or with `by_size` the completion time per
/// size, RCT / (1 + bytes / S).
pub(crate) fn value(timed: Timed, by_size: bool, parameters: &Parameters) -> f64 {
    let completion = f64::from(timed.completion);
    if by_size {
        completion / (1.0 + f64::from(timed.bytes) / parameters.size_scale)
    } else {
        completion
    }
}
