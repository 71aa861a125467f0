//! Packet schedulers and re-injectors, one file per system.
