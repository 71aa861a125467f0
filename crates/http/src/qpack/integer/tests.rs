use proptest::prelude::*;

use super::*;

/// RFC 7541, appendix C.1.
#[test]
fn examples_of_the_specification() {
    for (prefix, value, bytes) in [
        (5, 10, &[0x0a][..]),
        (5, 1337, &[0x1f, 0x9a, 0x0a]),
        (8, 42, &[0x2a]),
    ] {
        let mut out = Vec::new();
        write(0, prefix, value, &mut out);
        assert_eq!(out, bytes);
        assert_eq!(Reader::new(bytes).integer(prefix), Ok(value));
    }
}

#[test]
fn sixty_two_bits_and_no_more() {
    for prefix in 1..=8 {
        let mut out = Vec::new();
        write(0, prefix, MAX, &mut out);
        assert_eq!(Reader::new(&out).integer(prefix), Ok(MAX));
    }
    // One more than the largest: the last byte of the encoding has room for it.
    let mut out = Vec::new();
    write(0, 8, MAX, &mut out);
    let carry = out.iter_mut().skip(1).find(|byte| **byte & 0x7f != 0x7f);
    *carry.unwrap() += 1;
    assert_eq!(
        Reader::new(&out).integer(8),
        Err(QpackFault::IntegerTooLarge.into())
    );
}

#[test]
fn padding_ends_at_the_length_of_the_largest() {
    let mut padded = vec![0xff];
    padded.extend([0x80; 8]);
    padded.push(0);
    assert_eq!(Reader::new(&padded).integer(8), Ok(255));
    let last = padded.len() - 1;
    padded[last] = 0x80;
    padded.push(0);
    assert_eq!(
        Reader::new(&padded).integer(8),
        Err(QpackFault::IntegerTooLarge.into())
    );
}

proptest! {
    #[test]
    fn what_is_written_is_read(value in prop_oneof![0..300_u64, 0..=MAX], prefix in 1..=8_u32, rest in any::<Vec<u8>>()) {
        let high = !(u8::MAX >> (8 - prefix));
        let mut out = Vec::new();
        write(high, prefix, value, &mut out);
        prop_assert_eq!(out[0] & high, high);
        for cut in 0..out.len() {
            prop_assert_eq!(Reader::new(&out[..cut]).integer(prefix), Err(ReadError::End));
        }
        let len = out.len();
        out.extend(&rest);
        let mut reader = Reader::new(&out);
        prop_assert_eq!(reader.integer(prefix), Ok(value));
        prop_assert_eq!(reader.position(), len);
    }
}
