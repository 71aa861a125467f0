//! Virtual time: many links and hosts running the real stack, deterministic.
