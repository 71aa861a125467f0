//! Variable-length integers and the cursors that carry them.

#![allow(
    clippy::unwrap_used,
    reason = "a helper that fails is a test that fails"
)]

use proptest::prelude::*;
use swiftwater_wire::{DecodeError, Reader, VarInt, Writer};

fn decode(bytes: &[u8]) -> Result<u64, DecodeError> {
    let mut r = Reader::new(bytes);
    let value = r.varint()?;
    assert!(r.is_empty(), "the whole encoding is read");
    Ok(value)
}

fn encode(value: u64) -> Vec<u8> {
    let mut buf = [0; 8];
    let mut w = Writer::new(&mut buf);
    w.varint(value);
    let len = w.written();
    buf[..len].to_vec()
}

#[test]
fn vectors_of_rfc_9000_a_1() {
    let vectors: [(&[u8], u64); 4] = [
        (
            &[0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c],
            151_288_809_941_952_652,
        ),
        (&[0x9d, 0x7f, 0x3e, 0x7d], 494_878_333),
        (&[0x7b, 0xbd], 15_293),
        (&[0x25], 37),
    ];
    for (bytes, value) in vectors {
        assert_eq!(decode(bytes), Ok(value));
        assert_eq!(encode(value), bytes);
    }
}

#[test]
fn longer_encodings_than_needed_are_read() {
    assert_eq!(decode(&[0x40, 0x25]), Ok(37));
    assert_eq!(decode(&[0x80, 0, 0, 0x25]), Ok(37));
    assert_eq!(decode(&[0xc0, 0, 0, 0, 0, 0, 0, 0x25]), Ok(37));
}

#[test]
fn sizes_change_where_the_prefix_does() {
    let edges = [
        (0, 1),
        (63, 1),
        (64, 2),
        (16_383, 2),
        (16_384, 4),
        ((1 << 30) - 1, 4),
        (1 << 30, 8),
        (VarInt::MAX.get(), 8),
    ];
    for (value, size) in edges {
        assert_eq!(VarInt::new(value).unwrap().size(), size, "{value}");
        assert_eq!(encode(value).len(), size, "{value}");
        let encoded = VarInt::new(value).unwrap().encode();
        assert_eq!(encoded.as_bytes(), encode(value), "{value}");
        assert_eq!(decode(&encode(value)), Ok(value));
    }
}

#[test]
fn values_of_more_than_62_bits_are_refused() {
    assert!(VarInt::new(1 << 62).is_err());
    assert!(VarInt::try_from(u64::MAX).is_err());
    assert_eq!(VarInt::saturating(u64::MAX), VarInt::MAX);
}

#[test]
fn two_byte_form_is_kept_for_small_values() {
    let mut buf = [0; 2];
    Writer::new(&mut buf).varint_2(5);
    assert_eq!(buf, [0x40, 0x05]);
    assert_eq!(decode(&buf), Ok(5));
}

#[test]
fn a_failed_read_takes_nothing() {
    let mut r = Reader::new(&[0xc0, 1, 2]);
    assert_eq!(r.varint(), Err(DecodeError::UnexpectedEnd));
    assert_eq!(r.remaining(), 3);
    assert_eq!(r.bytes(4), Err(DecodeError::UnexpectedEnd));
    assert_eq!(r.array::<4>(), Err(DecodeError::UnexpectedEnd));
    assert_eq!(r.take_rest(), [0xc0, 1, 2]);
    assert_eq!(r.varint(), Err(DecodeError::UnexpectedEnd));
}

#[test]
fn a_length_beyond_the_end_is_an_error() {
    assert_eq!(
        Reader::new(&[3, 1, 2]).length_prefixed(),
        Err(DecodeError::UnexpectedEnd)
    );
    assert_eq!(
        Reader::new(&[0xff; 8]).length_prefixed(),
        Err(DecodeError::UnexpectedEnd)
    );
    assert_eq!(
        Reader::new(&[2, 1, 2, 3]).length_prefixed(),
        Ok(&[1, 2][..])
    );
}

#[test]
fn fixed_width_integers_are_big_endian() {
    let mut buf = [0; 7];
    let mut w = Writer::new(&mut buf);
    w.u8(1);
    w.u16(0x0203);
    w.u32(0x0405_0607);
    assert_eq!((w.written(), w.remaining()), (7, 0));
    assert_eq!(buf, [1, 2, 3, 4, 5, 6, 7]);
    let mut r = Reader::new(&buf);
    assert_eq!(
        (r.u8(), r.u16(), r.u32()),
        (Ok(1), Ok(0x0203), Ok(0x0405_0607))
    );
}

proptest! {
    #[test]
    fn round_trip(value in 0..=VarInt::MAX.get(), shift in 0..62_u32) {
        let value = value >> shift;
        prop_assert_eq!(decode(&encode(value)), Ok(value));
    }

    #[test]
    fn every_prefix_is_too_short(value in 0..=VarInt::MAX.get(), shift in 0..62_u32) {
        let bytes = encode(value >> shift);
        for end in 0..bytes.len() {
            prop_assert_eq!(decode(&bytes[..end]), Err(DecodeError::UnexpectedEnd));
        }
    }
}
