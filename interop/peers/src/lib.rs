//! What the quinn programs share: TLS settings, the `hq-interop` request line, the transport
//! settings of the speed comparison, and the clock for processor time.

pub mod cpu;
pub mod hq;
pub mod tls;
