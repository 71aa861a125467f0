//! Schemes that protect frames against loss: retransmission, erasure codes, re-injection.
