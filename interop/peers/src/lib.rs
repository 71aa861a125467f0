//! What the speed comparison needs besides quinn: the clock for processor time.

pub mod cpu;
