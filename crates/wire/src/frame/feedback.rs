//! FEEDBACK frames: small opaque messages between the policies of two peers.
//!
//! A private extension: frame types and transport parameter are random codepoints, and a peer that
//! didn't send the `max_feedback_size` transport parameter is never sent a frame of it.
//!
//! ```text
//! FEEDBACK Frame {
//!   Type (i) = 0x19d1f5a4 or 0x19d1f5a5,
//!   Kind (i),            0 to 15
//!   Sequence (i),        rises with each frame of a kind
//!   Length (i),          0 to 64
//!   Payload (..),
//! }
//! ```
//!
//! Type 0x19d1f5a4 is ack-eliciting, 0x19d1f5a5 isn't. A frame whose sequence isn't above the largest
//! received of its kind is ignored: only the newest message of a kind counts. A kind above 15 or a
//! payload above 64 bytes is a FRAME_ENCODING_ERROR.

use super::Frame;
use crate::coding::Reader;
use crate::error::DecodeError;

/// Largest payload of a FEEDBACK frame, bytes.
pub const MAX_FEEDBACK_SIZE: usize = 64;

/// What a FEEDBACK frame is about: 0 to 15, with a meaning that the two peers agree on.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct FeedbackKind(u8);

impl FeedbackKind {
    /// Kinds that there are.
    pub const COUNT: usize = 16;

    /// Kind `n`; `None` above 15.
    pub const fn new(n: u8) -> Option<Self> {
        if (n as usize) < Self::COUNT {
            Some(Self(n))
        } else {
            None
        }
    }

    /// Its number, 0 to 15.
    pub const fn get(self) -> u8 {
        self.0
    }
}

/// `FEEDBACK`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Feedback<'a> {
    /// What it is about.
    pub kind: FeedbackKind,
    /// Rises with each frame of a kind; frames that come out of order are ignored.
    pub sequence: u64,
    /// What it says, at most [`MAX_FEEDBACK_SIZE`] bytes.
    pub payload: &'a [u8],
    /// True for the type that makes its packet ack-eliciting.
    pub ack_eliciting: bool,
}

pub(super) fn read<'a>(r: &mut Reader<'a>, ack_eliciting: bool) -> Result<Frame<'a>, DecodeError> {
    let kind = u8::try_from(r.varint()?)
        .ok()
        .and_then(FeedbackKind::new)
        .ok_or(DecodeError::Invalid("a kind above 15 in FEEDBACK"))?;
    let sequence = r.varint()?;
    let payload = r.length_prefixed()?;
    if payload.len() > MAX_FEEDBACK_SIZE {
        return Err(DecodeError::Invalid("a payload above 64 bytes in FEEDBACK"));
    }
    Ok(Frame::Feedback(Feedback {
        kind,
        sequence,
        payload,
        ack_eliciting,
    }))
}
