//! What a peer must not send, and the error that answers it.

use bytes::Bytes;
use proptest::prelude::*;
use swiftwater_http::qpack::{
    Decoder, DecoderConfig, Encoder, EncoderConfig, Field, QpackError, QpackFault,
};

use super::support::hex;

const DECOMPRESSION_FAILED: u64 = 0x0200;
const ENCODER_STREAM_ERROR: u64 = 0x0201;
const DECODER_STREAM_ERROR: u64 = 0x0202;

/// A decoder of 256 bytes with two entries: `a: b` and `c: d`, capacity 128 set.
fn decoder() -> Decoder {
    let mut decoder = Decoder::new(DecoderConfig {
        max_table_capacity: 256,
        max_blocked_streams: 2,
        ..DecoderConfig::default()
    });
    decoder
        .on_encoder_stream(&hex("3f61 4161 0162 4163 0164"))
        .unwrap();
    assert_eq!(decoder.stats().inserted, 2);
    decoder
}

#[test]
fn sections() {
    for (what, block, fault) in [
        ("nothing", "", QpackFault::Truncated),
        ("half a prefix", "00", QpackFault::Truncated),
        (
            "no static entry 99",
            "0000 ff24",
            QpackFault::StaticIndex(99),
        ),
        (
            "no static name 99",
            "0000 5f54 00",
            QpackFault::StaticIndex(99),
        ),
        (
            "dynamic without required",
            "0000 80",
            QpackFault::DynamicIndex,
        ),
        ("relative below zero", "0300 82", QpackFault::DynamicIndex),
        ("relative at required", "0201 80", QpackFault::DynamicIndex),
        ("post-base at required", "0280 11", QpackFault::DynamicIndex),
        (
            "post-base name at required",
            "0280 01 00",
            QpackFault::DynamicIndex,
        ),
        (
            "a huge relative index",
            "0300 bfffffffffffffff7f",
            QpackFault::DynamicIndex,
        ),
        (
            "a huge post-base index",
            "0300 1fffffffffffffff7f",
            QpackFault::DynamicIndex,
        ),
        (
            "count beyond the range",
            "1200",
            QpackFault::RequiredInsertCount,
        ),
        ("count far ahead", "0d00", QpackFault::RequiredInsertCount),
        (
            "count of zero in disguise",
            "0100",
            QpackFault::RequiredInsertCount,
        ),
        ("negative base", "0382", QpackFault::NegativeBase),
        (
            "negative base without references",
            "0080",
            QpackFault::NegativeBase,
        ),
        ("name ends early", "0000 2361", QpackFault::Truncated),
        ("value ends early", "0000 2161 0562", QpackFault::Truncated),
        ("index ends early", "0000 ffff", QpackFault::Truncated),
        (
            "integer of 63 bits",
            "0000 ffffffffffffffffff7f",
            QpackFault::IntegerTooLarge,
        ),
        (
            "integer in eleven bytes",
            "0000 ff80808080808080808000",
            QpackFault::IntegerTooLarge,
        ),
        (
            "string of 2^62 bytes",
            "0000 51ffffffffffffffffff3f",
            QpackFault::IntegerTooLarge,
        ),
        (
            "huffman: a byte of padding",
            "0000 5181ff",
            QpackFault::Huffman,
        ),
        (
            "huffman: padding with zeros",
            "0000 518100",
            QpackFault::Huffman,
        ),
        (
            "huffman: end of string",
            "0000 5184ffffffff",
            QpackFault::Huffman,
        ),
    ] {
        let error = decoder().decode(0, &Bytes::from(hex(block))).unwrap_err();
        assert_eq!(error, QpackError::DecompressionFailed(fault), "{what}");
        assert_eq!(error.code(), DECOMPRESSION_FAILED);
    }
}

#[test]
fn references_to_evicted_entries() {
    let mut decoder = decoder();
    // Two more of 34 bytes: the first goes from a table of 128.
    decoder
        .on_encoder_stream(&hex("4165 0166 4167 0168"))
        .unwrap();
    let block = |text: &str| Bytes::from(hex(text));
    assert!(decoder.decode(0, &block("0500 80 81 82")).is_ok());
    assert_eq!(
        decoder.decode(4, &block("0500 83")),
        Err(QpackError::DecompressionFailed(QpackFault::DynamicIndex))
    );
    assert_eq!(
        decoder.on_encoder_stream(&hex("03")),
        Err(QpackError::EncoderStream(QpackFault::DynamicIndex))
    );
}

#[test]
fn encoder_streams() {
    for (what, stream, fault) in [
        (
            "capacity above the maximum",
            "3fe201",
            QpackFault::Capacity(257),
        ),
        (
            "name of static entry 99",
            "ff2400",
            QpackFault::StaticIndex(99),
        ),
        ("name of dynamic entry 2", "8200", QpackFault::DynamicIndex),
        ("duplicate of entry 2", "02", QpackFault::DynamicIndex),
        (
            "a value that fits in no entry",
            "c061",
            QpackFault::EntryTooLarge,
        ),
        (
            "a name that fits in no entry",
            "5f42",
            QpackFault::EntryTooLarge,
        ),
        (
            "a code of 2^61 bytes",
            "c0ffffffffffffffffff1f",
            QpackFault::EntryTooLarge,
        ),
        (
            "a long code fits in no entry",
            "7ff102",
            QpackFault::EntryTooLarge,
        ),
        (
            "name and value that do not fit together",
            "4161 60 000000000000000000000000000000000000000000000000\
             000000000000000000000000000000000000000000000000\
             000000000000000000000000000000000000000000000000\
             000000000000000000000000000000000000000000000000",
            QpackFault::EntryTooLarge,
        ),
        (
            "integer of 63 bits",
            "3fffffffffffffffffff7f",
            QpackFault::IntegerTooLarge,
        ),
        (
            "endless integer",
            "1f8080808080808080808080",
            QpackFault::IntegerTooLarge,
        ),
        ("huffman: padding with zeros", "c08100", QpackFault::Huffman),
        (
            "huffman: end of string",
            "c084ffffffff",
            QpackFault::Huffman,
        ),
    ] {
        let error = decoder().on_encoder_stream(&hex(stream)).unwrap_err();
        assert_eq!(error, QpackError::EncoderStream(fault), "{what}");
        assert_eq!(error.code(), ENCODER_STREAM_ERROR);
    }
}

#[test]
fn an_insertion_into_no_table() {
    let config = DecoderConfig {
        max_table_capacity: 0,
        ..DecoderConfig::default()
    };
    for (stream, fault) in [
        ("3f01", QpackFault::Capacity(32)),
        ("c000", QpackFault::EntryTooLarge),
        ("00", QpackFault::DynamicIndex),
    ] {
        let mut decoder = Decoder::new(config);
        let error = decoder.on_encoder_stream(&hex(stream)).unwrap_err();
        assert_eq!(error, QpackError::EncoderStream(fault));
    }
    // A capacity of zero is what it has.
    assert_eq!(Decoder::new(config).on_encoder_stream(&hex("20")), Ok(()));
    let block = Bytes::from(hex("0200 80"));
    assert_eq!(
        Decoder::new(config).decode(0, &block),
        Err(QpackError::DecompressionFailed(
            QpackFault::RequiredInsertCount
        ))
    );
}

#[test]
fn more_blocked_streams_than_allowed() {
    let mut decoder = decoder();
    let block = Bytes::from(hex("0400 80"));
    for stream in [0, 4] {
        assert!(decoder.decode(stream, &block).is_ok());
    }
    let error = decoder.decode(8, &block).unwrap_err();
    assert_eq!(
        error,
        QpackError::DecompressionFailed(QpackFault::TooManyBlocked)
    );
}

/// An encoder that inserted one entry and refers to it on stream 4.
fn encoder() -> Encoder {
    let mut encoder = Encoder::new(EncoderConfig::default());
    encoder.set_peer_limits(4096, 16).unwrap();
    let field = Field::new("user-agent", "a name worth remembering");
    encoder.encode(4, &[field], &mut Vec::new());
    assert_eq!(encoder.stats().inserted, 1);
    assert_eq!(encoder.stats().dynamic_hits, 1);
    encoder
}

#[test]
fn decoder_streams() {
    for (what, stream, fault) in [
        (
            "no section on this stream",
            "80",
            QpackFault::NothingToAcknowledge(0),
        ),
        (
            "acknowledged twice",
            "8484",
            QpackFault::NothingToAcknowledge(4),
        ),
        (
            "acknowledged and cancelled",
            "4484",
            QpackFault::NothingToAcknowledge(4),
        ),
        ("increment of zero", "00", QpackFault::Increment(0)),
        ("more than inserted", "02", QpackFault::Increment(2)),
        ("more than is left", "8401", QpackFault::Increment(1)),
        (
            "integer of 63 bits",
            "ffffffffffffffffff7f",
            QpackFault::IntegerTooLarge,
        ),
        (
            "endless integer",
            "3f8080808080808080808000",
            QpackFault::IntegerTooLarge,
        ),
    ] {
        let error = encoder().on_decoder_stream(&hex(stream)).unwrap_err();
        assert_eq!(error, QpackError::DecoderStream(fault), "{what}");
        assert_eq!(error.code(), DECODER_STREAM_ERROR);
    }
    for (what, stream) in [
        ("acknowledged", "84"),
        ("cancelled, twice", "4444"),
        ("a stream without references cancelled", "40"),
        ("inserted, then acknowledged", "0184"),
    ] {
        assert_eq!(encoder().on_decoder_stream(&hex(stream)), Ok(()), "{what}");
    }
}

/// RFC 9204, section 3.2.3: settings stored for early data.
#[test]
fn a_capacity_in_use_cannot_change() {
    let changed = |capacity| {
        let fault = QpackFault::CapacityChanged(capacity);
        Err(QpackError::DecoderStream(fault))
    };
    assert_eq!(encoder().set_peer_limits(4096, 100), Ok(()));
    assert_eq!(encoder().set_peer_limits(0, 16), changed(0));
    assert_eq!(encoder().set_peer_limits(8192, 16), changed(8192));
    let mut encoder = Encoder::new(EncoderConfig::default());
    assert_eq!(encoder.set_peer_limits(0, 0), Ok(()));
    assert_eq!(encoder.set_peer_limits(8192, 16), Ok(()));
}

/// Bytes that look like instructions and sections more often than random ones.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![
        any::<u8>(),
        Just(0xff),
        0..4_u8,
        0x80..0x84_u8,
        prop::sample::select(vec![0x10, 0x20, 0x3f, 0x40, 0x41, 0x51, 0xc0, 0xc1]),
    ];
    prop::collection::vec(byte, 0..60)
}

proptest! {
    /// Whatever arrives, the answer is a result, and the table keeps its limit.
    #[test]
    fn any_bytes_are_answered(steps in prop::collection::vec((0..4_u8, 0..4_u64, bytes()), 0..12)) {
        let (mut decoder, mut encoder) = (decoder(), encoder());
        for (kind, stream, data) in steps {
            match kind {
                0 => {
                    let _ = decoder.on_encoder_stream(&data);
                }
                1 => {
                    let _ = decoder.decode(stream, &data.into());
                }
                2 => decoder.cancel_stream(stream),
                _ => {
                    let _ = encoder.on_decoder_stream(&data);
                    encoder.encode(stream, &[Field::new("x-name", data)], &mut Vec::new());
                }
            }
            while decoder.poll_unblocked().is_some() {}
            prop_assert!(decoder.stats().table_size <= 256);
        }
    }
}
