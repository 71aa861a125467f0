use proptest::prelude::*;

use super::*;

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u32> = text.chars().filter_map(|c| c.to_digit(16)).collect();
    let bytes = digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]);
    bytes.map(|byte| byte as u8).collect()
}

fn encoded(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    encode(text, &mut out);
    assert_eq!(out.len(), encoded_len(text));
    out
}

fn decoded(code: &[u8]) -> Result<Vec<u8>, QpackFault> {
    let mut out = Vec::new();
    decode(code, &mut out).map(|()| out)
}

/// The strings of RFC 7541, appendices C.4 and C.6.
#[test]
fn examples_of_the_specification() {
    for (text, code) in [
        ("www.example.com", "f1e3c2e5f23a6ba0ab90f4ff"),
        ("no-cache", "a8eb10649cbf"),
        ("custom-key", "25a849e95ba97d7f"),
        ("custom-value", "25a849e95bb8e8b4bf"),
        ("302", "6402"),
        ("private", "aec3771a4b"),
        (
            "Mon, 21 Oct 2013 20:13:21 GMT",
            "d07abe941054d444a8200595040b8166e082a62d1bff",
        ),
        (
            "https://www.example.com",
            "9d29ad171863c78f0b97c8e9ae82ae43d3",
        ),
        ("307", "640eff"),
        ("gzip", "9bd9ab"),
        (
            "foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1",
            "94e7821dd7f2e6c7b335dfdfcd5b3960d5af27087f3672c1ab270fb5291f9587316065c003ed4ee5b1063d5007",
        ),
    ] {
        assert_eq!(encoded(text.as_bytes()), hex(code), "{text}");
        assert_eq!(decoded(&hex(code)).unwrap(), text.as_bytes(), "{text}");
    }
}

/// A few codes of RFC 7541, appendix B, from both ends of the table.
#[test]
fn codes_follow_from_lengths() {
    for (symbol, code, length) in [
        (usize::from(b'0'), 0x0, 5),
        (usize::from(b't'), 0x9, 5),
        (usize::from(b' '), 0x14, 6),
        (usize::from(b'Z'), 0xfd, 8),
        (usize::from(b'!'), 0x3f8, 10),
        (usize::from(b'\\'), 0x7fff0, 19),
        (0, 0x1ff8, 13),
        (255, 0x03ff_ffee, 26),
        (10, 0x3fff_fffc, 30),
        (END, 0x3fff_ffff, 30),
    ] {
        assert_eq!((CODES[symbol], LENGTHS[symbol]), (code, length));
    }
    // Complete: no bits are left without a meaning.
    let whole: u64 = LENGTHS.iter().map(|&length| 1_u64 << (32 - length)).sum();
    assert_eq!(whole, 1 << 32);
}

#[test]
fn wrong_padding_is_refused() {
    // '0' is five zero bits.
    assert_eq!(decoded(&[0b0000_0111]).unwrap(), b"0");
    assert_eq!(
        decoded(&[0b0000_0110]),
        Err(QpackFault::Huffman),
        "not ones"
    );
    assert_eq!(
        decoded(&[0b0000_0011]),
        Err(QpackFault::Huffman),
        "not ones"
    );
    assert_eq!(
        decoded(&[0b0000_0111, 0xff]),
        Err(QpackFault::Huffman),
        "long"
    );
    assert_eq!(decoded(&[0xff]), Err(QpackFault::Huffman), "a whole byte");
    assert_eq!(
        decoded(&[0xff; 4]),
        Err(QpackFault::Huffman),
        "the end symbol"
    );
    assert_eq!(
        decoded(&[0xff; 64]),
        Err(QpackFault::Huffman),
        "the end symbol"
    );
    assert_eq!(decoded(&[]).unwrap(), b"");
}

proptest! {
    #[test]
    fn what_is_encoded_is_decoded(text in any::<Vec<u8>>()) {
        let code = encoded(&text);
        prop_assert!(min_decoded_len(code.len() as u64) <= text.len() as u64);
        prop_assert_eq!(decoded(&code).unwrap(), text);
    }

    /// Every string has one code, so what decodes encodes to the same.
    #[test]
    fn what_is_decoded_is_encoded(code in any::<Vec<u8>>()) {
        if let Ok(text) = decoded(&code) {
            prop_assert!(text.len() <= code.len() * 8 / 5);
            prop_assert_eq!(encoded(&text), code);
        }
    }
}
