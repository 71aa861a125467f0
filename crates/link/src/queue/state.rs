//! What a discipline has in mind, for those who look on.

/// The state of a queue's discipline, to record or to plot.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum AqmState {
    /// The discipline has none: drop-tail.
    None,
    /// CoDel.
    CoDel {
        /// The delay has been above the target for an interval and packets are being dropped or
        /// marked.
        dropping: bool,
        /// How many were since that began; with the remembered start of RFC 8289, section 5.
        count: u32,
    },
}
