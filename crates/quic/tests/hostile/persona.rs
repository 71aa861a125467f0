//! What a [`RawPeer`](crate::peer::RawPeer) says of itself.

#![allow(
    clippy::unwrap_used,
    dead_code,
    reason = "each user takes a part; a failed unwrap is a failed test"
)]

use swiftwater_quic::wire::{ConnectionId, Reader, TransportParameters, VERSION_1};
use swiftwater_units::Side;

use crate::coding::{cid, varint};

/// What the peer is, and how it differs from a well-behaved one.
pub(crate) struct Persona {
    /// Its connection ID.
    pub(crate) cid: ConnectionId,
    /// The version of its packets.
    pub(crate) version: u32,
    /// Its transport parameters; connection IDs of the handshake are filled in.
    pub(crate) parameters: TransportParameters,
    /// Parameters to replace (`Some`) or to leave out (`None`) in the encoded bytes, whatever they
    /// mean. A parameter may be given more than once.
    pub(crate) edits: Vec<(u64, Option<Vec<u8>>)>,
    /// Sent instead of all that.
    pub(crate) encoded: Option<Vec<u8>>,
}

impl Default for Persona {
    fn default() -> Self {
        Self {
            cid: cid(b"raw peer"),
            version: VERSION_1,
            parameters: TransportParameters {
                initial_max_data: 1 << 20,
                initial_max_stream_data_bidi_local: 1 << 18,
                initial_max_stream_data_bidi_remote: 1 << 18,
                initial_max_stream_data_uni: 1 << 18,
                initial_max_streams_bidi: 10,
                initial_max_streams_uni: 10,
                active_connection_id_limit: 4,
                max_datagram_frame_size: 65_535,
                ..TransportParameters::default()
            },
            edits: Vec::new(),
            encoded: None,
        }
    }
}

impl Persona {
    /// The parameter `id` with these bytes, or without it.
    pub(crate) fn edit(mut self, id: u64, value: Option<&[u8]>) -> Self {
        self.edits.push((id, value.map(<[u8]>::to_vec)));
        self
    }

    /// What it sends, with the connection IDs that `complete` fills in.
    pub(crate) fn encode(
        &self,
        side: Side,
        complete: impl FnOnce(&mut TransportParameters),
    ) -> Vec<u8> {
        if let Some(encoded) = &self.encoded {
            return encoded.clone();
        }
        let mut parameters = self.parameters;
        parameters.initial_source_connection_id = Some(self.cid);
        complete(&mut parameters);
        let mut encoded = Vec::new();
        parameters.encode(side, &mut encoded, None);
        let mut reader = Reader::new(&encoded);
        let mut out = Vec::new();
        let mut put = |id: u64, value: &[u8]| {
            out.extend(varint(id));
            out.extend(varint(value.len() as u64));
            out.extend_from_slice(value);
        };
        while !reader.is_empty() {
            let (id, value) = (reader.varint().unwrap(), reader.length_prefixed().unwrap());
            if self.edits.iter().all(|(edited, _)| *edited != id) {
                put(id, value);
            }
        }
        for (id, value) in &self.edits {
            if let Some(value) = value {
                put(*id, value);
            }
        }
        out
    }
}
