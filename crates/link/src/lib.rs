//! One emulated network link, sans-I/O.
