//! Bytes from hexadecimal digits, fields from text.

use bytes::Bytes;
use swiftwater_http::qpack::{Decoded, Decoder, Field};

pub(crate) fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u32> = text.chars().filter_map(|c| c.to_digit(16)).collect();
    let bytes = digits.chunks(2).map(|pair| (pair[0] << 4) | pair[1]);
    bytes.map(|byte| byte as u8).collect()
}

pub(crate) fn list(pairs: &[(&'static str, &'static str)]) -> Vec<Field> {
    let fields = pairs.iter().map(|&(name, value)| Field::new(name, value));
    fields.collect()
}

pub(crate) fn fields(pairs: &[(&'static str, &'static str)]) -> Decoded {
    Decoded::Fields(list(pairs))
}

pub(crate) fn decode(decoder: &mut Decoder, stream: u64, block: &str) -> Decoded {
    decoder.decode(stream, &Bytes::from(hex(block))).unwrap()
}
