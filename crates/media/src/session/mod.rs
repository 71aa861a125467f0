//! A frame-level sender and receiver over datagrams, sans-I/O.
