//! The prefix of an encoded field section: Required Insert Count and Base (RFC 9204, section 4.5.1).

use super::error::QpackFault;
use super::field::OVERHEAD;
use super::integer::{self, ReadError, Reader};

/// The prefix of one section.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Prefix {
    /// Insertions that must have been received before the section can be decoded; 0 without dynamic
    /// references.
    pub(super) required: u64,
    /// The insert count that relative indices start from.
    pub(super) base: u64,
}

impl Prefix {
    /// Appends the prefix. `max_capacity` is the limit of the decoder's settings.
    pub(super) fn write(self, max_capacity: u64, out: &mut Vec<u8>) {
        if self.required == 0 {
            out.extend_from_slice(&[0, 0]);
            return;
        }
        let range = full_range(max_capacity);
        debug_assert!(range > 0, "no references without a table");
        integer::write(0, 8, self.required % range + 1, out);
        match self.base.checked_sub(self.required) {
            Some(above) => integer::write(0, 7, above, out),
            None => integer::write(0x80, 7, self.required - self.base - 1, out),
        }
    }

    /// Reads the prefix, given the decoder's maximum capacity and its insert count.
    pub(super) fn read(
        reader: &mut Reader<'_>,
        max_capacity: u64,
        inserted: u64,
    ) -> Result<Self, QpackFault> {
        let encoded = reader.integer(8).map_err(ReadError::at_end)?;
        let required = required(encoded, max_capacity, inserted)?;
        let negative = reader.peek().map_err(ReadError::at_end)? & 0x80 != 0;
        let delta = reader.integer(7).map_err(ReadError::at_end)?;
        let base = if negative {
            required.checked_sub(delta + 1)
        } else {
            Some(required + delta)
        };
        let base = base.ok_or(QpackFault::NegativeBase)?;
        Ok(Self { required, base })
    }
}

/// Twice the number of entries that fit in a table: required counts are sent modulo this.
const fn full_range(max_capacity: u64) -> u64 {
    2 * (max_capacity / OVERHEAD)
}

/// Decodes the count `encoded` to the value within half a range of `inserted`.
fn required(encoded: u64, max_capacity: u64, inserted: u64) -> Result<u64, QpackFault> {
    if encoded == 0 {
        return Ok(0);
    }
    let range = full_range(max_capacity);
    if encoded > range {
        return Err(QpackFault::RequiredInsertCount);
    }
    let highest = inserted + max_capacity / OVERHEAD;
    let wrapped = highest / range * range;
    let mut required = wrapped + encoded - 1;
    if required > highest {
        required = required
            .checked_sub(range)
            .ok_or(QpackFault::RequiredInsertCount)?;
    }
    if required == 0 {
        return Err(QpackFault::RequiredInsertCount);
    }
    Ok(required)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(bytes: &[u8], max_capacity: u64, inserted: u64) -> Result<Prefix, QpackFault> {
        Prefix::read(&mut Reader::new(bytes), max_capacity, inserted)
    }

    /// The two examples in sections 4.5.1.1 and 4.5.1.2.
    #[test]
    fn examples_of_the_specification() {
        let prefix = Prefix {
            required: 9,
            base: 6,
        };
        assert_eq!(read(&[4, 0x82], 100, 10), Ok(prefix));
        let mut out = Vec::new();
        prefix.write(100, &mut out);
        assert_eq!(out, [4, 0x82]);
    }

    #[test]
    fn impossible_counts_are_refused() {
        let wrong = Err(QpackFault::RequiredInsertCount);
        assert_eq!(read(&[1, 0], 0, 0), wrong, "no table");
        assert_eq!(read(&[7, 0], 100, 10), wrong, "beyond the range");
        assert_eq!(read(&[1, 0], 100, 0), wrong, "encodes zero");
        assert_eq!(read(&[6, 0], 100, 0), wrong, "5 with 0 inserted, 3 at most");
        assert_eq!(
            read(&[4, 0x83], 100, 10),
            Ok(Prefix {
                required: 9,
                base: 5
            })
        );
        assert_eq!(read(&[4, 0x89], 100, 10), Err(QpackFault::NegativeBase));
        assert_eq!(read(&[0, 0x80], 100, 10), Err(QpackFault::NegativeBase));
        assert_eq!(read(&[0], 100, 10), Err(QpackFault::Truncated));
        assert_eq!(read(&[], 100, 10), Err(QpackFault::Truncated));
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(
            max_capacity in 32..100_000_u64,
            inserted in 0..1_000_000_u64,
            place in any::<prop::sample::Index>(),
            base in 0..2_000_000_u64,
        ) {
            // An encoder refers to live entries; a decoder is at most one table behind or ahead.
            let entries = max_capacity / 32;
            let lowest = inserted.saturating_sub(entries) + 1;
            let required = lowest + place.index((inserted + entries - lowest + 1) as usize) as u64;
            let prefix = Prefix { required, base };
            let mut out = Vec::new();
            prefix.write(max_capacity, &mut out);
            prop_assert_eq!(read(&out, max_capacity, inserted), Ok(prefix));
        }
    }
}
