//! Requests in early data, which somebody may have recorded and sent again (RFC 8470).

/// In the extensions of a request that came as early data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EarlyData;
