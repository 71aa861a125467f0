//! Content codings that a client accepts (RFC 9110, section 12.5.3), for precompressed files next
//! to the original.

use http::HeaderMap;
use http::header::ACCEPT_ENCODING;

/// A content coding of precompressed files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::web) struct Coding {
    /// The name of the coding in `Content-Encoding`.
    pub(in crate::web) name: &'static str,
    /// The suffix of its files after the name of the original.
    pub(in crate::web) suffix: &'static str,
}

/// The supported codings, the preferred first.
pub(super) const CODINGS: [Coding; 3] = [
    Coding {
        name: "br",
        suffix: ".br",
    },
    Coding {
        name: "zstd",
        suffix: ".zst",
    },
    Coding {
        name: "gzip",
        suffix: ".gz",
    },
];

/// The codings among [`CODINGS`] that the client accepts, the preferred first; with equal weights
/// in this order.
pub(in crate::web) fn accepted(headers: &HeaderMap) -> Vec<Coding> {
    let mut weighed: Vec<(u16, Coding)> = CODINGS
        .into_iter()
        .map(|coding| (weight(headers, coding.name), coding))
        .filter(|(weight, _)| *weight > 0)
        .collect();
    weighed.sort_by_key(|(weight, _)| std::cmp::Reverse(*weight));
    weighed.into_iter().map(|(_, coding)| coding).collect()
}

/// A number for a list of distinct codings among [`CODINGS`]; different lists have different ones.
pub(super) fn number_of(codings: &[Coding]) -> u8 {
    codings.iter().fold(0, |number, coding| {
        let position = CODINGS.iter().position(|known| known == coding);
        number * 4 + position.map_or(0, |position| position as u8 + 1)
    })
}

/// The weight of `name` in thousandths: that of its entry, else that of `*`, else zero.
fn weight(headers: &HeaderMap, name: &str) -> u16 {
    let mut any = 0;
    for entry in headers
        .get_all(ACCEPT_ENCODING)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
    {
        let mut parts = entry.split(';').map(str::trim);
        let coding = parts.next().unwrap_or_default();
        let weight = parts
            .find_map(|part| part.strip_prefix("q=").or_else(|| part.strip_prefix("Q=")))
            .map_or(1000, parse_weight);
        let same = coding.eq_ignore_ascii_case(name)
            || (name == "gzip" && coding.eq_ignore_ascii_case("x-gzip"));
        if same {
            return weight;
        }
        if coding == "*" {
            any = weight;
        }
    }
    any
}

/// A weight of RFC 9110, section 12.4.2, in thousandths; malformed ones count as zero.
fn parse_weight(text: &str) -> u16 {
    match text.parse::<f32>() {
        Ok(weight) if (0.0..=1.0).contains(&weight) => (weight * 1000.0).round() as u16,
        _ => 0,
    }
}
