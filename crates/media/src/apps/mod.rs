//! Sessions over simulated links in virtual time.
