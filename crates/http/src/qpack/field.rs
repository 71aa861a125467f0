//! Field lines and their size as defined by the RFCs.

use std::borrow::Cow;

use bytes::Bytes;

/// Overhead of an entry or a field line, bytes (RFC 9204, section 3.2.1; RFC 9114, section 4.2.2).
pub(super) const OVERHEAD: u64 = 32;

/// One field line. Names are bytes as on the wire, lower-case in HTTP; they are not interpreted here.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub struct Field {
    /// The name; pseudo-headers with their colon.
    pub name: Bytes,
    /// The value.
    pub value: Bytes,
    /// Must never be put into a table, here or by a later hop: the `N` bit (RFC 9204, section 7.1.3). The
    /// value is always sent as a literal.
    pub sensitive: bool,
}

impl Field {
    /// A field that may be indexed.
    pub fn new(name: impl Into<Bytes>, value: impl Into<Bytes>) -> Self {
        Self {
            name: name.into(),
            value: value.into(),
            sensitive: false,
        }
    }

    /// A field that is never indexed.
    pub fn sensitive(name: impl Into<Bytes>, value: impl Into<Bytes>) -> Self {
        Self {
            sensitive: true,
            ..Self::new(name, value)
        }
    }

    /// Bytes of name and value plus 32, as counted by `SETTINGS_MAX_FIELD_SECTION_SIZE` (RFC 9114,
    /// section 4.2.2) and of table entries (RFC 9204, section 3.2.1).
    pub fn size(&self) -> u64 {
        size(&self.name, &self.value)
    }
}

/// A borrowed [`Field`], for the encoder: names and values of messages are encoded where they are.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct FieldLine<'a> {
    /// As [`Field::name`].
    pub name: &'a [u8],
    /// As [`Field::value`].
    pub value: Cow<'a, [u8]>,
    /// As [`Field::sensitive`].
    pub sensitive: bool,
}

impl FieldLine<'_> {
    /// As [`Field::size`].
    pub fn size(&self) -> u64 {
        size(self.name, &self.value)
    }
}

impl<'a> From<&'a Field> for FieldLine<'a> {
    fn from(field: &'a Field) -> Self {
        Self {
            name: &field.name,
            value: Cow::Borrowed(&field.value),
            sensitive: field.sensitive,
        }
    }
}

impl<'a> From<&'a FieldLine<'_>> for FieldLine<'a> {
    fn from(line: &'a FieldLine<'_>) -> Self {
        Self {
            name: line.name,
            value: Cow::Borrowed(&line.value),
            sensitive: line.sensitive,
        }
    }
}

/// The size of a field with this name and value.
pub(super) fn size(name: &[u8], value: &[u8]) -> u64 {
    name.len() as u64 + value.len() as u64 + OVERHEAD
}
