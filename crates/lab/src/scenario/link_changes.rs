//! Parses `[[change]]`: what happens to paths in the course of a run.

use std::time::Duration;

use swiftwater_link::{ParseError, parse_probability};

use super::error::{Read, known_names};
use super::reader::{LONGEST, Reader};
use super::setup::{LinkChange, LinkFault, LinkSpec};

const KEYS: [&str; 4] = ["path", "what", "at", "until"];

/// Reads all changes; those with `what = "none"`, or to the path `none`, are none.
pub(super) fn read(rows: &[Reader<'_>], links: &[LinkSpec]) -> Read<Vec<LinkChange>> {
    let mut changes = Vec::new();
    for row in rows {
        row.only(&KEYS)?;
        let name = row.need("path", row.string("path")?, "the name of a [[path]]")?;
        let long = Duration::ZERO..=LONGEST;
        let from = row.duration("at", long.clone())?;
        let from = row.need("at", from, "when it happens, such as \"5s\"")?;
        let until = row.duration("until", long)?;
        if until.is_some_and(|until| until <= from) {
            return Err(row.fault("until", "it must be after `at`"));
        }
        let fault = row.parse("what", parse_fault)?;
        let expected = "such as \"cut\", \"loss:50%\", \"delay:10\"";
        let fault = row.need("what", fault, expected)?;
        if name == "none" {
            continue;
        }
        let Some(link) = links.iter().position(|link| link.name == name) else {
            let known = links.iter().map(|link| link.name.as_str());
            return Err(row.fault("path", known_names(name, known)));
        };
        changes.extend(fault.map(|fault| LinkChange {
            link,
            from,
            until,
            fault,
        }));
    }
    Ok(changes)
}

/// `None` for `none`.
fn parse_fault(text: &str) -> Result<Option<LinkFault>, ParseError> {
    let fail = || {
        let expected = "write none, cut, cut-forward, cut-backward, loss:SHARE or delay:FACTOR";
        ParseError::new("change", text, expected)
    };
    let (name, value) = text.split_once(':').unwrap_or((text, ""));
    Ok(match (name.trim(), value.is_empty()) {
        ("none", true) => None,
        ("cut", true) => Some(LinkFault::Cut),
        ("cut-forward", true) => Some(LinkFault::CutForward),
        ("cut-backward", true) => Some(LinkFault::CutBackward),
        ("loss", false) => Some(LinkFault::Loss(parse_probability(value)?)),
        ("delay", false) => {
            let factor: f64 = value.trim().parse().map_err(|_| fail())?;
            if !(1.0..=1_000.0).contains(&factor) {
                return Err(fail());
            }
            Some(LinkFault::Delay(factor))
        }
        _ => return Err(fail()),
    })
}
