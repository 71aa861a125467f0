//! QPACK on this connection (RFC 9204): passes field sections through the encoder and the decoder,
//! and their instructions to and from the streams.

use bytes::Bytes;
use swiftwater_quic as quic;
use swiftwater_units::{Instant, StreamId};

use super::Connection;
use crate::h3::code::Code;
use crate::h3::config::Config;
use crate::h3::error::{Fault, HeadError};
use crate::h3::fields::section_size;
use crate::h3::settings::Settings;
use crate::qpack::{
    Decoded, Decoder, DecoderConfig, Encoder, EncoderConfig, FieldLine, QpackError,
};

/// Bytes that are allocated for a field section: enough for most.
const USUAL_SECTION: usize = 128;

/// Both directions of field compression.
#[derive(Debug)]
pub(super) struct Compression {
    encoder: Encoder,
    decoder: Decoder,
    /// Largest section that the peer accepts.
    peer_max_section: Option<u64>,
}

impl Compression {
    pub(super) fn new(config: &Config) -> Self {
        let limits = &config.limits;
        Self {
            encoder: Encoder::new(EncoderConfig {
                max_table_capacity: config.qpack_encoder_table,
                max_blocked_streams: config.qpack_encoder_blocked,
                ..EncoderConfig::default()
            }),
            decoder: Decoder::new(DecoderConfig {
                max_table_capacity: config.qpack_decoder_table,
                max_blocked_streams: config.qpack_blocked_streams,
                max_field_section_size: limits.max_field_section_size,
                max_fields: limits.max_fields,
            }),
            // Early data obey the remembered settings (RFC 9114, section 7.2.4.2). The table is used
            // only once the settings were received: rejected early data are sent again to a server
            // that may allow no table.
            peer_max_section: config
                .remembered
                .and_then(|settings| settings.max_field_section_size),
        }
    }

    pub(super) fn on_settings(&mut self, settings: &Settings) -> Result<(), Fault> {
        self.peer_max_section = settings.max_field_section_size;
        let (capacity, blocked) = (
            settings.qpack_max_table_capacity,
            settings.qpack_blocked_streams,
        );
        self.encoder
            .set_peer_limits(capacity, blocked)
            .map_err(fault)
    }

    /// Encodes the field section of a message on stream `id`.
    pub(super) fn encode(
        &mut self,
        id: StreamId,
        fields: &[FieldLine<'_>],
    ) -> Result<Vec<u8>, HeadError> {
        self.check_size(fields)?;
        let mut section = Vec::with_capacity(USUAL_SECTION);
        self.encoder.encode(id.get(), fields, &mut section);
        Ok(section)
    }

    /// Fails if the section exceeds the peer's limit (RFC 9114, section 4.2.2).
    pub(super) fn check_size(&self, fields: &[FieldLine<'_>]) -> Result<(), HeadError> {
        let size = section_size(fields);
        match self.peer_max_section {
            Some(max) if size > max => Err(HeadError::TooLarge { size, max }),
            _ => Ok(()),
        }
    }

    pub(super) fn decode(&mut self, id: StreamId, section: &Bytes) -> Result<Decoded, Fault> {
        self.decoder.decode(id.get(), section).map_err(fault)
    }

    pub(super) fn on_decoder_bytes(&mut self, data: &[u8]) -> Result<(), Fault> {
        self.encoder.on_decoder_stream(data).map_err(fault)
    }

    /// Cancels the sections of stream `id` that are not decoded yet, although some may have been
    /// sent.
    pub(super) fn abandon_reading(&mut self, id: StreamId) {
        self.decoder.cancel_stream(id.get());
    }
}

/// Errors of QPACK are connection errors (RFC 9204, section 6).
fn fault(error: QpackError) -> Fault {
    let code = Code(error.code());
    let reason = code.name().unwrap_or("field compression failed");
    Fault::connection(code, reason)
}

impl Connection {
    /// The peer's encoder stream changed the decoder's table.
    pub(super) fn on_encoder_bytes(
        &mut self,
        now: Instant,
        quic: &mut quic::Connection,
        data: &[u8],
    ) -> Result<(), Fault> {
        let result = self.compression.decoder.on_encoder_stream(data);
        result.map_err(fault)?;
        while let Some((id, decoded)) = self.compression.decoder.poll_unblocked() {
            let decoded = decoded.map_err(fault)?;
            self.on_unblocked(now, quic, StreamId::from_wire(id), decoded);
        }
        Ok(())
    }

    /// Moves the instructions of both directions to their streams.
    pub(super) fn send_instructions(&mut self, now: Instant, quic: &mut quic::Connection) {
        while let Some(bytes) = self.compression.encoder.poll_instructions() {
            self.own.encoder.out().extend_from_slice(&bytes);
        }
        while let Some(bytes) = self.compression.decoder.poll_instructions() {
            self.own.decoder.out().extend_from_slice(&bytes);
        }
        self.flush_own_streams(now, quic);
        // While instructions are blocked by flow control, sections use no new insertions: they
        // might never be decoded (RFC 9204, section 2.1.3).
        let credit = if self.own.encoder.is_idle() {
            u64::MAX
        } else {
            0
        };
        self.compression.encoder.set_stream_credit(credit);
    }
}
