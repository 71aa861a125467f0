//! A streaming code across frames in the manner of Tambur (NSDI 2023).
//!
//! Parity sent with frame i covers the frames i - 3 to i. The packets of a frame are of two kinds:
//! parity of each of the three following frames covers its V packets, but only parity of the frame
//! itself and of the third after it covers its U packets. After a burst of lost frames, the first
//! parities that follow are therefore used for the V packets only.
//!
//! Differences from the original: a symbol is a whole packet (shorter ones count as padded with
//! zeros), not a stripe of one; coefficients are pseudo-random in GF(2^16), not a Cauchy matrix in
//! GF(2^32); the share of U packets is that of the parity; and the receiver solves for all packets
//! that the equations determine instead of following a schedule. The trained model that chooses the
//! amount of parity is not public: the amount is fixed while loss is reported.

mod code;
mod decoder;
mod field;
mod rate;

pub use code::{DELAY_FRAMES, Parity, Symbol, Window, WindowFrame, encode};
pub use decoder::StreamDecoder;
pub use rate::{FrameParity, TamburParity, TamburRate};
