//! Parses distributions of transfer sizes: files of `bytes,share` lines, or lists in the scenario.

use super::error::{Fault, Read};
use super::setup::SizeDistribution;
use super::tree::{Node, Value};

/// Most points of a distribution.
const MAX_POINTS: usize = 100_000;

/// Reads a file: on each line a size in bytes, a comma, and the share of transfers of at most that
/// size. Blank lines and comments after `#` are skipped. The error is the line with the expected
/// content.
pub(super) fn parse(text: &str) -> Result<SizeDistribution, (usize, String)> {
    let mut points = Vec::new();
    let mut lines = Vec::new();
    for (index, line) in text.trim_start_matches('\u{feff}').lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default().trim();
        if line.is_empty() {
            continue;
        }
        let numbers = line
            .split_once(',')
            .and_then(|(size, share)| Some((number(size)?, number(share)?)));
        let Some(point) = numbers else {
            let expected = "write a size in bytes, a comma, and a share from 0 to 1";
            return Err((index + 1, expected.to_owned()));
        };
        points.push(point);
        lines.push(index + 1);
        if points.len() > MAX_POINTS {
            return Err((index + 1, format!("at most {MAX_POINTS} points")));
        }
    }
    SizeDistribution::new(points).map_err(|error| {
        let line = lines.get(error.index.saturating_sub(1)).copied();
        (line.unwrap_or(1), error.expected.to_owned())
    })
}

/// Reads a list of `[bytes, share]`.
pub(super) fn from_list(items: &[Node]) -> Read<SizeDistribution> {
    let mut points = Vec::new();
    for item in items {
        let fault = || Fault::new(item.line, item.kind(), "write [bytes, share]");
        let Value::List(pair) = &item.value else {
            return Err(fault());
        };
        let [size, share] = pair.as_slice() else {
            return Err(fault());
        };
        let numbers = (as_number(size), as_number(share));
        let (Some(size), Some(share)) = numbers else {
            return Err(fault());
        };
        points.push((size, share));
    }
    SizeDistribution::new(points).map_err(|error| {
        let item = items.get(error.index.saturating_sub(1)).or(items.last());
        let line = item.map_or(1, |item| item.line);
        let what = format!("point {} of `sizes`", error.index);
        Fault::new(line, what, error.expected)
    })
}

fn number(text: &str) -> Option<f64> {
    text.trim()
        .parse()
        .ok()
        .filter(|value: &f64| value.is_finite())
}

fn as_number(node: &Node) -> Option<f64> {
    match node.value {
        Value::Whole(number, _) => Some(number as f64),
        Value::Real(number, _) => Some(number),
        _ => None,
    }
}
