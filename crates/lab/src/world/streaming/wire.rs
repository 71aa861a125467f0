//! What a viewer sends: the length of the response, the number of its pattern, and how many of its first bytes belong
//! to the first frame of a video; three numbers of 8 bytes in network order. The response is the pattern.

use swiftwater_sim::Pattern;

/// Length of a request.
pub(super) const REQUEST_LEN: usize = 24;

/// A request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Request {
    /// Number of the pattern.
    pub(super) id: u64,
    /// Bytes of the response.
    pub(super) bytes: u64,
    /// Bytes at its start that belong to a first frame.
    pub(super) first_frame: u64,
}

impl Request {
    pub(super) fn pattern(&self) -> Pattern {
        Pattern::new(self.id)
    }

    pub(super) fn encode(&self) -> [u8; REQUEST_LEN] {
        let mut encoded = [0; REQUEST_LEN];
        for (field, value) in
            encoded
                .chunks_exact_mut(8)
                .zip([self.bytes, self.id, self.first_frame])
        {
            field.copy_from_slice(&value.to_be_bytes());
        }
        encoded
    }

    /// `None` if `encoded` is incomplete.
    pub(super) fn decode(encoded: &[u8]) -> Option<Self> {
        let (bytes, rest) = encoded.split_first_chunk()?;
        let (id, rest) = rest.split_first_chunk()?;
        let first_frame = rest.first_chunk()?;
        Some(Self {
            id: u64::from_be_bytes(*id),
            bytes: u64::from_be_bytes(*bytes),
            first_frame: u64::from_be_bytes(*first_frame),
        })
    }
}
