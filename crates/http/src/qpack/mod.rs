//! QPACK (RFC 9204): compression of field sections for HTTP/3, sans-I/O.
//!
//! An [`Encoder`] encodes lists of [`Field`]s to encoded field sections and instructions for the peer's
//! table; a [`Decoder`] does the reverse. Streams are outside of this module: the caller carries the
//! sections in HEADERS frames, and moves the bytes of the encoder stream and of the decoder stream (without
//! their stream types).
//!
//! Contract: after any call, drain `poll_instructions` when its stream has room; after
//! [`Decoder::on_encoder_stream`] drain [`Decoder::poll_unblocked`]. An error of either type ends the
//! connection with [`QpackError::code`].
//!
//! State that the peer can make grow, and its bound:
//!
//! | what | bound | beyond |
//! |---|---|---|
//! | decoder's table | [`DecoderConfig::max_table_capacity`] | `QPACK_ENCODER_STREAM_ERROR` |
//! | sections held while blocked | [`DecoderConfig::max_blocked_streams`] streams, a few sections each | `QPACK_DECOMPRESSION_FAILED` |
//! | bytes of one section, encoded and decoded | [`DecoderConfig::max_field_section_size`] | [`Decoded::TooLarge`] |
//! | fields of one section | [`DecoderConfig::max_fields`] | [`Decoded::TooLarge`] |
//! | an incomplete encoder instruction | size of an entry of the table's capacity | `QPACK_ENCODER_STREAM_ERROR` |
//! | decoder instructions not polled | 64 KiB | `H3_EXCESSIVE_LOAD` |
//! | encoder instructions not polled | the table's capacity, because entries stay until acknowledged | no insertion |
//! | unacknowledged references | [`EncoderConfig::max_references`] | no dynamic references |
//!
//! Not here: the meaning of fields, pseudo-headers, HTTP frames (`h3`).

mod decoder;
mod encoder;
mod error;
mod field;
mod huffman;
mod instruction;
mod integer;
mod line;
mod prefix;
mod static_table;
mod string;
mod table;

pub use decoder::{Decoded, Decoder, DecoderConfig, DecoderStats, Excess};
pub use encoder::{Encoder, EncoderConfig, EncoderStats};
pub use error::{QpackError, QpackFault};
pub use field::{Field, FieldLine};
