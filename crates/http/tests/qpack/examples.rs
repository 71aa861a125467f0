//! The exchange of RFC 9204, appendix B, byte by byte on the decoder's side.

use swiftwater_http::qpack::{Decoded, Decoder, DecoderConfig};

use super::support::{decode, fields, hex};

fn decoder() -> Decoder {
    Decoder::new(DecoderConfig {
        max_table_capacity: 220,
        ..DecoderConfig::default()
    })
}

#[test]
fn the_exchange_of_appendix_b() {
    let mut decoder = decoder();
    // B.1
    let block = "0000 510b 2f69 6e64 6578 2e68 746d 6c";
    let decoded = decode(&mut decoder, 0, block);
    assert_eq!(decoded, fields(&[(":path", "/index.html")]));
    assert_eq!(decoder.poll_instructions(), None);

    // B.2, the section before its insertions
    assert_eq!(decode(&mut decoder, 4, "0381 10 11"), Decoded::Blocked);
    assert!(decoder.poll_unblocked().is_none());
    let instructions =
        hex("3fbd01 c00f 7777 772e 6578 616d 706c 652e 636f 6d c10c 2f73 616d 706c 652f 7061 7468");
    decoder.on_encoder_stream(&instructions).unwrap();
    let expected = fields(&[(":authority", "www.example.com"), (":path", "/sample/path")]);
    assert_eq!(decoder.poll_unblocked(), Some((4, Ok(expected))));
    assert_eq!(decoder.poll_unblocked(), None);
    assert_eq!(decoder.stats().table_size, 106);
    assert_eq!(decoder.poll_instructions().unwrap(), hex("84"));

    // B.3
    let instructions = hex("4a63 7573 746f 6d2d 6b65 790c 6375 7374 6f6d 2d76 616c 7565");
    decoder.on_encoder_stream(&instructions).unwrap();
    assert_eq!(decoder.stats().table_size, 160);
    assert_eq!(decoder.poll_instructions().unwrap(), hex("01"));

    // B.4, with the duplicate delayed and the stream cancelled
    assert_eq!(decode(&mut decoder, 8, "0500 80 c1 81"), Decoded::Blocked);
    decoder.cancel_stream(8);
    assert_eq!(decoder.poll_instructions().unwrap(), hex("48"));
    decoder.on_encoder_stream(&hex("02")).unwrap();
    assert_eq!(decoder.poll_unblocked(), None);
    assert_eq!(decoder.stats().table_size, 217);
    let decoded = decode(&mut decoder, 12, "0500 80 c1 81");
    let expected = fields(&[
        (":authority", "www.example.com"),
        (":path", "/"),
        ("custom-key", "custom-value"),
    ]);
    assert_eq!(decoded, expected);
    assert_eq!(decoder.poll_instructions().unwrap(), hex("8c"));

    // B.5
    let instructions = hex("810d 6375 7374 6f6d 2d76 616c 7565 32");
    decoder.on_encoder_stream(&instructions).unwrap();
    assert_eq!(decoder.stats().table_size, 215);
    assert_eq!(decoder.stats().inserted, 5);
    assert_eq!(decoder.poll_instructions().unwrap(), hex("01"));
}

/// Any split of the encoder stream is the same stream.
#[test]
fn instructions_come_in_any_pieces() {
    let stream = hex(
        "3fbd01 c00f 7777 772e 6578 616d 706c 652e 636f 6d c10c 2f73 616d 706c 652f 7061 7468 \
         4a63 7573 746f 6d2d 6b65 790c 6375 7374 6f6d 2d76 616c 7565 02 \
         810d 6375 7374 6f6d 2d76 616c 7565 32",
    );
    for size in 1..stream.len() {
        let mut decoder = decoder();
        for piece in stream.chunks(size) {
            decoder.on_encoder_stream(piece).unwrap();
        }
        assert_eq!(decoder.stats().inserted, 5);
        assert_eq!(decoder.stats().table_size, 215);
        // The whole table, newest first.
        let decoded = decode(&mut decoder, 0, "0600 80 81 82 83");
        let expected = fields(&[
            ("custom-key", "custom-value2"),
            (":authority", "www.example.com"),
            ("custom-key", "custom-value"),
            (":path", "/sample/path"),
        ]);
        assert_eq!(decoded, expected);
    }
}
