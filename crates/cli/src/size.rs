//! Sizes on the command line.

use thiserror::Error;

/// A text that is not a size.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[error("'{0}' is not a size: write 500000, 20MB (decimal) or 16MiB (binary)")]
pub struct SizeError(String);

/// Reads a number of bytes: `500000`, `64k`, `20MB`, `1G` (decimal), `16MiB` (binary). Fractions are
/// allowed with a unit (`1.5G`), negative numbers never.
pub fn parse_size(input: &str) -> Result<u64, SizeError> {
    let fail = || SizeError(input.chars().take(40).collect());
    let text = input.trim();
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let factor: u64 = match unit.trim_start().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kb" => 1_000,
        "m" | "mb" => 1_000_000,
        "g" | "gb" => 1_000_000_000,
        "t" | "tb" => 1_000_000_000_000,
        "kib" => 1 << 10,
        "mib" => 1 << 20,
        "gib" => 1 << 30,
        "tib" => 1 << 40,
        _ => return Err(fail()),
    };
    if let Ok(whole) = number.parse::<u64>() {
        return whole.checked_mul(factor).ok_or_else(fail);
    }
    let bytes = number.parse::<f64>().map_err(|_| fail())? * factor as f64;
    // 2^53: beyond it fractions have no meaning.
    if factor > 1 && bytes < 9e15 {
        Ok(bytes.round() as u64)
    } else {
        Err(fail())
    }
}
