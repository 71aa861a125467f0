//! What all networking commands share: transport settings from flags, TLS, sockets, connecting, and
//! failure messages.

mod endpoints;
mod failures;
mod flags;

pub use endpoints::{
    CloseReason, Trust, client, connect, connect_early, farewell, hang_up, listen, resolve, server,
};
pub use failures::{
    bind_failure, build_failure, client_failure, connection_failure, lookup_failure, no_address,
    qlog_failure,
};
pub use flags::{
    BackoffError, Basics, QuicVersion, Suite, Tuning, parse_backoff, parse_controller,
    parse_recovery, recovery_help, with_recoveries,
};
