//! What a peer can make grow, and where it ends.

use bytes::Bytes;
use swiftwater_http::qpack::{
    Decoded, Decoder, DecoderConfig, Excess, Field, QpackError, QpackFault,
};

use super::support::{fields, hex};

/// A decoder with one entry, `a: ` and `len` letters.
fn decoder(len: usize, config: DecoderConfig) -> Decoder {
    let mut decoder = Decoder::new(config);
    let mut stream = hex("3fe11f 4161 7f");
    assert_eq!(config.max_table_capacity, 4096);
    let mut rest = len - 127;
    while rest >= 128 {
        stream.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    stream.push(rest as u8);
    stream.resize(stream.len() + len, b'x');
    decoder.on_encoder_stream(&stream).unwrap();
    assert_eq!(decoder.stats().inserted, 1);
    decoder
}

/// A section that refers to the one entry so many times.
fn bomb(references: usize) -> Bytes {
    let mut block = vec![2, 0];
    block.resize(2 + references, 0x80);
    block.into()
}

/// 16 kB that decode to 60 MB: decoding stops at the limit, and the result shares the entry.
#[test]
fn a_header_bomb_stops_at_the_size() {
    let config = DecoderConfig {
        max_fields: usize::MAX,
        ..DecoderConfig::default()
    };
    let mut decoder = decoder(4000, config);
    let decoded = decoder.decode(0, &bomb(16_000));
    assert_eq!(decoded, Ok(Decoded::TooLarge(Excess::Size)));
    // 64 KiB have room for 16 of these fields.
    let Ok(Decoded::Fields(fields)) = decoder.decode(4, &bomb(16)) else {
        panic!("16 fields of 4033 bytes are allowed");
    };
    let first = fields[0].value.as_ptr();
    assert!(fields.iter().all(|field| field.value.as_ptr() == first));
    let decoded = decoder.decode(8, &bomb(17));
    assert_eq!(decoded, Ok(Decoded::TooLarge(Excess::Size)));
}

#[test]
fn a_header_bomb_stops_at_the_count() {
    let config = DecoderConfig {
        max_fields: 10,
        ..DecoderConfig::default()
    };
    let mut decoder = decoder(200, config);
    let decoded = decoder.decode(0, &bomb(10)).unwrap();
    assert!(matches!(decoded, Decoded::Fields(fields) if fields.len() == 10));
    let decoded = decoder.decode(4, &bomb(11));
    assert_eq!(decoded, Ok(Decoded::TooLarge(Excess::Count)));
}

/// A section that is too large is acknowledged, and the next one decodes.
#[test]
fn too_large_leaves_the_state_right() {
    let config = DecoderConfig {
        max_field_section_size: 1000,
        ..DecoderConfig::default()
    };
    let mut decoder = decoder(200, config);
    assert_eq!(decoder.poll_instructions().unwrap(), hex("01"));
    for (stream, references, acknowledgement) in [(4, 5, "84"), (8, 2000, "88")] {
        let decoded = decoder.decode(stream, &bomb(references));
        assert_eq!(decoded, Ok(Decoded::TooLarge(Excess::Size)));
        assert_eq!(decoder.poll_instructions().unwrap(), hex(acknowledgement));
    }
    let value = "x".repeat(200);
    let expected = Decoded::Fields(vec![Field::new("a", value)]);
    assert_eq!(decoder.decode(12, &bomb(1)), Ok(expected));
}

/// One string that is too large when decoded, though its code is not.
#[test]
fn strings_count_as_decoded() {
    let mut decoder = Decoder::new(DecoderConfig {
        max_field_section_size: 1000,
        ..DecoderConfig::default()
    });
    // 640 bytes of code for 1024 times '0'.
    let mut block = hex("0000 51 ff8104");
    block.resize(block.len() + 640, 0);
    let decoded = decoder.decode(0, &block.into());
    assert_eq!(decoded, Ok(Decoded::TooLarge(Excess::Size)));
}

/// A blocked section beyond the limit keeps its turn, but no bytes.
#[test]
fn too_large_while_blocked() {
    let mut decoder = Decoder::new(DecoderConfig {
        max_field_section_size: 100,
        ..DecoderConfig::default()
    });
    assert_eq!(decoder.decode(0, &bomb(1)), Ok(Decoded::Blocked));
    assert_eq!(decoder.decode(0, &bomb(2000)), Ok(Decoded::Blocked));
    decoder.on_encoder_stream(&hex("3f61 4161 0162")).unwrap();
    let first = fields(&[("a", "b")]);
    assert_eq!(decoder.poll_unblocked(), Some((0, Ok(first))));
    let second = Decoded::TooLarge(Excess::Size);
    assert_eq!(decoder.poll_unblocked(), Some((0, Ok(second))));
    assert_eq!(decoder.poll_unblocked(), None);
    assert_eq!(decoder.poll_instructions().unwrap(), hex("8080"));
}

/// Sections behind a blocked one wait for it, whatever they refer to, up to a number.
#[test]
fn sections_on_a_blocked_stream_keep_their_order() {
    let mut decoder = Decoder::new(DecoderConfig::default());
    let plain = Bytes::from(hex("0000 d9"));
    assert_eq!(decoder.decode(0, &bomb(1)), Ok(Decoded::Blocked));
    for _ in 1..8 {
        assert_eq!(decoder.decode(0, &plain), Ok(Decoded::Blocked));
    }
    assert_eq!(
        decoder.decode(0, &plain),
        Err(QpackError::DecompressionFailed(QpackFault::TooManyHeld))
    );
    assert_eq!(decoder.decode(4, &plain), Ok(fields(&[(":status", "200")])));
    decoder.on_encoder_stream(&hex("3f61 4161 0162")).unwrap();
    let unblocked = std::iter::from_fn(|| decoder.poll_unblocked());
    let decoded: Vec<_> = unblocked.map(|(_, decoded)| decoded.unwrap()).collect();
    assert_eq!(decoded[0], fields(&[("a", "b")]));
    assert_eq!(decoded[1..], vec![fields(&[(":status", "200")]); 7]);
}

/// A started instruction is refused as soon as it can fit in no entry, not after its bytes were kept.
#[test]
fn unfinished_instructions_are_bounded() {
    let mut decoder = decoder(200, DecoderConfig::default());
    // 4065 bytes announced, with 4064 possible; 4064 are waited for.
    assert_eq!(decoder.on_encoder_stream(&hex("c0 7fe11e")), Ok(()));
    let mut decoder = self::decoder(200, DecoderConfig::default());
    assert_eq!(
        decoder.on_encoder_stream(&hex("c0 7fe21e")),
        Err(QpackError::EncoderStream(QpackFault::EntryTooLarge))
    );
}

/// A peer that causes decoder instructions but does not read them.
#[test]
fn waiting_decoder_instructions_are_bounded() {
    let mut decoder = decoder(200, DecoderConfig::default());
    let (mut stream, mut sections) = (1 << 40, 0);
    let error = loop {
        match decoder.decode(stream, &bomb(1)) {
            Ok(_) => sections += 1,
            Err(error) => break error,
        }
        stream += 4;
        assert!(sections < 100_000);
    };
    assert_eq!(error, QpackError::ExcessiveLoad);
    assert_eq!(error.code(), 0x0107);
    assert!(sections > 1000);

    let mut decoder = self::decoder(200, DecoderConfig::default());
    for stream in 0..1 << 16 {
        decoder.cancel_stream(4 * stream);
    }
    assert_eq!(
        decoder.on_encoder_stream(&[]),
        Err(QpackError::ExcessiveLoad)
    );
    assert!(decoder.poll_instructions().unwrap().len() < 66_000);
}

/// Increments wait for each other, and are left out where acknowledgements say the same.
#[test]
fn increments_are_coalesced() {
    let mut decoder = Decoder::new(DecoderConfig::default());
    decoder
        .on_encoder_stream(&hex("3f61 4161 0162 00 00"))
        .unwrap();
    decoder.on_encoder_stream(&hex("00")).unwrap();
    assert_eq!(decoder.poll_instructions().unwrap(), hex("04"));
    assert_eq!(decoder.poll_instructions(), None);
    decoder.on_encoder_stream(&hex("00 00")).unwrap();
    let block = Bytes::from(hex("0600 80"));
    assert!(decoder.decode(4, &block).is_ok());
    assert_eq!(decoder.poll_instructions().unwrap(), hex("84 01"));
}

/// Without a table, there is no decoder stream to use.
#[test]
fn no_cancellations_without_a_table() {
    let mut decoder = Decoder::new(DecoderConfig {
        max_table_capacity: 0,
        ..DecoderConfig::default()
    });
    decoder.cancel_stream(0);
    assert_eq!(decoder.poll_instructions(), None);
}
