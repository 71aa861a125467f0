//! Templates of addresses (ISO/IEC 23009-1, section 5.3.9.4.4).

use std::fmt::Write as _;

use super::super::PresentationError;

/// Widest number that a template may ask for.
const MAX_WIDTH: usize = 20;

/// What identifiers stand for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Values<'a> {
    pub(super) id: &'a str,
    /// Bits per second.
    pub(super) bandwidth: u64,
    pub(super) number: u64,
    /// In the units of the timescale.
    pub(super) time: u64,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Identifier {
    RepresentationId,
    Bandwidth,
    Number,
    Time,
}

#[derive(Debug)]
enum Piece {
    Text(String),
    /// An identifier, and the least number of digits.
    Value(Identifier, usize),
}

/// A template.
#[derive(Debug)]
pub(super) struct Template(Vec<Piece>);

impl Template {
    /// Text, and identifiers between dollar signs.
    pub(super) fn parse(text: &str) -> Result<Self, PresentationError> {
        let wrong = || PresentationError::Template(text.to_owned());
        let mut pieces = Vec::new();
        for (index, part) in text.split('$').enumerate() {
            // Every second part stands between two signs.
            let piece = match (index % 2, part) {
                (0, text) => Piece::Text(text.to_owned()),
                (_, "") => Piece::Text("$".to_owned()),
                (_, identifier) => identified(identifier).ok_or_else(wrong)?,
            };
            pieces.push(piece);
        }
        if pieces.len() % 2 == 0 {
            return Err(wrong());
        }
        Ok(Self(pieces))
    }

    /// The address for `values`.
    pub(super) fn fill(&self, values: &Values<'_>) -> String {
        let mut address = String::new();
        for piece in &self.0 {
            let (number, width) = match piece {
                Piece::Text(text) => {
                    address.push_str(text);
                    continue;
                }
                Piece::Value(Identifier::RepresentationId, _) => {
                    address.push_str(values.id);
                    continue;
                }
                Piece::Value(Identifier::Bandwidth, width) => (values.bandwidth, *width),
                Piece::Value(Identifier::Number, width) => (values.number, *width),
                Piece::Value(Identifier::Time, width) => (values.time, *width),
            };
            let _ = write!(address, "{number:0width$}");
        }
        address
    }
}

/// An identifier with its format, `%0[width]d`.
fn identified(text: &str) -> Option<Piece> {
    let (name, width) = match text.split_once('%') {
        Some((name, format)) => {
            let width = format.strip_prefix('0')?.strip_suffix('d')?.parse().ok()?;
            (name, width)
        }
        None => (text, 1),
    };
    let identifier = match name {
        "RepresentationID" => Identifier::RepresentationId,
        "Bandwidth" => Identifier::Bandwidth,
        "Number" => Identifier::Number,
        "Time" => Identifier::Time,
        _ => return None,
    };
    (width <= MAX_WIDTH).then_some(Piece::Value(identifier, width))
}
