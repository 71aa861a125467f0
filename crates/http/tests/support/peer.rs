//! A peer that is driven by hand, byte by byte.
