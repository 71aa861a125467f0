//! What the encoder decides, seen from the wire.

use bytes::Bytes;
use swiftwater_http::qpack::{Decoded, Decoder, DecoderConfig, Encoder, EncoderConfig, Field};

use super::support::list;

const AGENT: (&str, &str) = ("user-agent", "a name that is worth remembering");

fn encoder(capacity: u64, blocked: u64) -> Encoder {
    let mut encoder = Encoder::new(EncoderConfig::default());
    encoder.set_peer_limits(capacity, blocked).unwrap();
    encoder
}

fn encode(encoder: &mut Encoder, stream: u64, fields: &[Field]) -> Vec<u8> {
    let mut block = Vec::new();
    encoder.encode(stream, fields, &mut block);
    block
}

fn requires_insertions(block: &[u8]) -> bool {
    block[0] != 0
}

#[test]
fn nothing_dynamic_before_settings_or_without_capacity() {
    for mut encoder in [
        Encoder::new(EncoderConfig::default()),
        encoder(0, 100),
        encoder(31, 100),
    ] {
        for stream in 0..3 {
            assert!(!requires_insertions(&encode(
                &mut encoder,
                stream,
                &list(&[AGENT])
            )));
        }
        assert_eq!(encoder.poll_instructions(), None);
    }
}

#[test]
fn a_field_that_comes_again_is_one_byte() {
    let mut encoder = encoder(4096, 16);
    let first = encode(&mut encoder, 0, &list(&[AGENT]));
    assert_eq!(
        first,
        [2, 0x80, 0x10],
        "inserted and referred to above Base"
    );
    assert!(encoder.poll_instructions().unwrap().len() > 20);
    let second = encode(&mut encoder, 4, &list(&[AGENT]));
    assert_eq!(second, [2, 0, 0x80]);
    assert_eq!(encoder.poll_instructions(), None);
}

/// Only so many streams may wait; what was acknowledged is no risk.
#[test]
fn risks_only_what_the_peer_allows() {
    let mut encoder = encoder(4096, 1);
    let fields = list(&[AGENT]);
    assert!(requires_insertions(&encode(&mut encoder, 0, &fields)));
    assert!(
        requires_insertions(&encode(&mut encoder, 0, &fields)),
        "at risk anyway"
    );
    assert!(!requires_insertions(&encode(&mut encoder, 4, &fields)));
    encoder.on_decoder_stream(&[0x80]).unwrap();
    assert!(requires_insertions(&encode(&mut encoder, 4, &fields)));
    assert_eq!(encoder.stats().at_risk, 2);
}

#[test]
fn without_permission_to_block_entries_serve_once_acknowledged() {
    let mut encoder = encoder(4096, 0);
    let fields = list(&[AGENT]);
    assert!(!requires_insertions(&encode(&mut encoder, 0, &fields)));
    assert!(!requires_insertions(&encode(&mut encoder, 4, &fields)));
    assert_eq!(encoder.stats().inserted, 1);
    encoder.on_decoder_stream(&[0x01]).unwrap();
    assert_eq!(encode(&mut encoder, 8, &fields), [2, 0, 0x80]);
}

/// A short value is no reason to risk that a stream waits.
#[test]
fn small_savings_are_no_risk() {
    let mut encoder = encoder(4096, 16);
    let fields = list(&[("server", "small")]);
    assert!(!requires_insertions(&encode(&mut encoder, 0, &fields)));
    assert_eq!(encoder.stats().inserted, 1);
    encoder.on_decoder_stream(&[0x01]).unwrap();
    assert!(requires_insertions(&encode(&mut encoder, 4, &fields)));
}

#[test]
fn sensitive_fields_stay_literals() {
    let mut encoder = encoder(4096, 16);
    let mut decoder = Decoder::new(DecoderConfig::default());
    let fields = [
        Field::sensitive("authorization", "Basic c2VjcmV0OnNlY3JldA=="),
        Field::sensitive("cookie", "id=1"),
        Field::sensitive("x-secret", "the same as ever"),
        Field::sensitive(":method", "GET"),
    ];
    for stream in 0..4 {
        let block = Bytes::from(encode(&mut encoder, stream, &fields));
        assert_eq!(encoder.poll_instructions(), None);
        let decoded = decoder.decode(stream, &block);
        assert_eq!(decoded, Ok(Decoded::Fields(fields.to_vec())));
    }
    // Nor is an entry used that a public field of the same content made.
    let public = list(&[("x-secret", "the same as ever")]);
    encode(&mut encoder, 16, &public);
    encoder.on_decoder_stream(&[0x01]).unwrap();
    let len = encode(&mut encoder, 20, &fields[2..3]).len();
    assert!(len > 12, "the value is a literal: {len} bytes");
}

/// Values that differ each time are not inserted, whether the name is known for it or detected.
#[test]
fn changing_values_do_not_fill_the_table() {
    for name in ["etag", "x-request-number"] {
        let mut encoder = encoder(4096, 16);
        for turn in 0..50 {
            let value = format!("\"value number {turn} of fifty\"");
            encode(&mut encoder, turn, &[Field::new(name, value)]);
        }
        assert!(encoder.stats().inserted <= 1, "{name}");
    }
    // The same value twice is worth an entry.
    let mut encoder = encoder(4096, 16);
    let fields = list(&[("etag", "\"the same value again\"")]);
    encode(&mut encoder, 0, &fields);
    assert_eq!(encoder.stats().inserted, 0);
    encode(&mut encoder, 4, &fields);
    assert_eq!(encoder.stats().inserted, 1);
}

/// An entry in constant use is renewed before it has to be evicted.
#[test]
fn hot_entries_are_duplicated() {
    let mut encoder = encoder(512, 16);
    let mut decoder = Decoder::new(DecoderConfig {
        max_table_capacity: 512,
        ..DecoderConfig::default()
    });
    let mut literal_again = 0;
    for turn in 0..100_u64 {
        let other = Field::new(format!("x-{turn}"), format!("a value of its own {turn}"));
        let fields = [list(&[AGENT])[0].clone(), other];
        let hits = encoder.stats().dynamic_hits;
        let block = Bytes::from(encode(&mut encoder, 4 * turn, &fields));
        literal_again += u64::from(encoder.stats().dynamic_hits == hits);
        if let Some(data) = encoder.poll_instructions() {
            decoder.on_encoder_stream(&data).unwrap();
        }
        let decoded = decoder.decode(4 * turn, &block);
        assert_eq!(decoded, Ok(Decoded::Fields(fields.to_vec())));
        let feedback = decoder.poll_instructions().unwrap_or_default();
        encoder.on_decoder_stream(&feedback).unwrap();
    }
    assert_eq!(literal_again, 0);
    assert!(encoder.stats().duplicated > 5);
    assert!(encoder.stats().inserted > 100);
}

/// Entries that the peer has not acknowledged are not evicted: without feedback insertions end.
#[test]
fn without_feedback_the_table_stands_still() {
    // With references to its entries, and without any.
    for blocked in [1, 0] {
        let mut encoder = encoder(512, blocked);
        let mut bytes = 0;
        for turn in 0..1000 {
            let field = Field::new(format!("x-{turn}"), "some value");
            encode(&mut encoder, turn, &[field]);
            bytes += encoder.poll_instructions().map_or(0, |data| data.len());
        }
        assert!(encoder.stats().inserted <= 512 / 32);
        assert!(bytes <= 512 + 8);
    }
}

/// References that are not acknowledged are counted, and beyond the limit there are none.
#[test]
fn references_are_bounded() {
    let mut encoder = Encoder::new(EncoderConfig {
        max_references: 10,
        ..EncoderConfig::default()
    });
    encoder.set_peer_limits(4096, 1000).unwrap();
    let fields = list(&[AGENT]);
    let dynamic: Vec<bool> = (0..20)
        .map(|stream| requires_insertions(&encode(&mut encoder, stream, &fields)))
        .collect();
    assert_eq!(dynamic, [vec![true; 10], vec![false; 10]].concat());
    encoder.on_decoder_stream(&[0x80]).unwrap();
    assert!(requires_insertions(&encode(&mut encoder, 40, &fields)));
    assert!(!requires_insertions(&encode(&mut encoder, 44, &fields)));
}

#[test]
fn instructions_fit_in_the_credit() {
    let mut encoder = encoder(4096, 16);
    encoder.set_stream_credit(40);
    for turn in 0..20 {
        let field = Field::new(format!("x-{turn}"), "some value of some length");
        encode(&mut encoder, turn, &[field]);
    }
    let written = encoder.poll_instructions().unwrap().len();
    assert!((20..=40).contains(&written), "{written}");
    encoder.set_stream_credit(0);
    encode(&mut encoder, 100, &list(&[("x-more", "some other value")]));
    assert_eq!(encoder.poll_instructions(), None);
}

/// Sections that never left do not hold entries, nor a place among the streams at risk.
#[test]
fn state_of_discarded_sections_is_removed() {
    let mut encoder = encoder(4096, 1);
    let fields = list(&[AGENT]);
    assert!(requires_insertions(&encode(&mut encoder, 0, &fields)));
    assert!(!requires_insertions(&encode(&mut encoder, 4, &fields)));
    encoder.discard_stream(0);
    assert!(requires_insertions(&encode(&mut encoder, 4, &fields)));
    assert!(encoder.on_decoder_stream(&[0x80]).is_err());
}

#[test]
fn the_same_fields_give_the_same_bytes() {
    let run = || {
        let mut encoder = encoder(600, 16);
        let mut bytes = Vec::new();
        for turn in 0..100_u64 {
            let field = Field::new(format!("x-{}", turn % 7), format!("value {}", turn % 11));
            encoder.encode(turn, &[field], &mut bytes);
            bytes.extend(encoder.poll_instructions().unwrap_or_default());
        }
        bytes
    };
    assert_eq!(run(), run());
}
