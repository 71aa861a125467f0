//! Frames of packets that were sent.
//!
//! The draft's frames are maps that may hold more than it lists (`$QuicFrame`, section 8.13); what we
//! add is named in `schema/swiftwater.cddl`.

use serde::{Serialize, Serializer};
use swiftwater_quic::observe::{Purpose, SentFrame};

/// Frames of one packet that are written; more would be a packet of nothing but tiny frames.
pub(crate) const MAX_FRAMES: usize = 128;

/// The draft's `RawInfo`, without the bytes themselves.
#[derive(Serialize)]
pub(crate) struct Raw {
    pub(crate) length: u64,
}

/// The frames of a packet, as an array.
pub(crate) struct Frames<'a>(pub(crate) &'a [SentFrame]);

impl Serialize for Frames<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().take(MAX_FRAMES).map(Frame::from))
    }
}

#[derive(Serialize)]
#[serde(tag = "frame_type", rename_all = "snake_case")]
enum Frame {
    Ack {
        /// The draft's `acked_ranges` would have to be complete, and only this is observed.
        largest_acknowledged: u64,
    },
    Crypto {
        offset: u64,
        raw: Raw,
    },
    Stream {
        stream_id: u64,
        offset: u64,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        fin: bool,
        raw: Raw,
        #[serde(skip_serializing_if = "Option::is_none")]
        purpose: Option<&'static str>,
    },
    /// A small value, such as MAX_DATA; which one isn't observed.
    SwiftwaterControl,
    /// A frame that this crate doesn't know yet.
    SwiftwaterOther,
}

impl From<&SentFrame> for Frame {
    fn from(frame: &SentFrame) -> Self {
        match *frame {
            SentFrame::Ack { largest } => Self::Ack {
                largest_acknowledged: largest.get(),
            },
            SentFrame::Crypto { offset, len } => Self::Crypto {
                offset,
                raw: Raw { length: len.into() },
            },
            SentFrame::Stream {
                id,
                offset,
                len,
                fin,
                purpose,
            } => Self::Stream {
                stream_id: id.get(),
                offset,
                fin,
                raw: Raw { length: len.into() },
                purpose: match purpose {
                    Purpose::New => None,
                    Purpose::Retransmission => Some("retransmission"),
                    Purpose::Replica => Some("replica"),
                },
            },
            SentFrame::Control => Self::SwiftwaterControl,
            _ => Self::SwiftwaterOther,
        }
    }
}
