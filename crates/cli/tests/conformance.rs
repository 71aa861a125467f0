//! `docs/conformance.md` is true: each test that it names exists, and its totals are right.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A line of one of the page's tables: section, requirement, proof.
struct Row {
    rfc: String,
    section: String,
    proof: String,
}

fn rows(page: &str) -> Vec<Row> {
    let mut rfc = String::new();
    let mut rows = Vec::new();
    for line in page.lines() {
        if let Some(title) = line.strip_prefix("## ") {
            let number = title
                .strip_prefix("RFC ")
                .and_then(|rest| rest.split(':').next());
            number.unwrap_or_default().clone_into(&mut rfc);
        }
        let cells: Vec<_> = line.split('|').map(str::trim).collect();
        if let ["", section, _, proof, ""] = cells[..]
            && !rfc.is_empty()
            && section.starts_with(|c: char| c.is_ascii_digit())
        {
            rows.push(Row {
                rfc: rfc.clone(),
                section: section.to_owned(),
                proof: proof.to_owned(),
            });
        }
    }
    rows
}

/// The tests that a line names: `file::test` between backquotes.
fn tests(line: &str) -> Vec<(&str, &str)> {
    line.split('`')
        .skip(1)
        .step_by(2)
        .filter_map(|quoted| quoted.split_once("::"))
        .filter(|(file, _)| Path::new(file).extension().is_some_and(|end| end == "rs"))
        .collect()
}

fn is_test(source: &str, name: &str) -> bool {
    source.contains(&format!("fn {name}(")) && source.contains("#[")
}

#[test]
fn every_test_that_the_page_names_exists() {
    let page = fs::read_to_string(root().join("docs/conformance.md")).unwrap();
    for row in rows(&page) {
        assert!(
            !tests(&row.proof).is_empty()
                || row.proof.starts_with("n/a: ")
                || row.proof.starts_with("open: "),
            "no proof: RFC {}, section {}: {}",
            row.rfc,
            row.section,
            row.proof
        );
    }
    let mut sources = BTreeMap::new();
    let mut named = 0;
    for line in page.lines() {
        for (file, name) in tests(line) {
            let source = sources.entry(file.to_owned()).or_insert_with(|| {
                let path = root().join("crates").join(file);
                fs::read_to_string(&path).unwrap_or_else(|error| panic!("{file}: {error}"))
            });
            assert!(is_test(source, name), "no test {name} in {file}: {line}");
            named += 1;
        }
    }
    assert!(
        named > 200,
        "only {named} tests are named: is the page read?"
    );
}

#[test]
fn the_totals_are_right() {
    let page = fs::read_to_string(root().join("docs/conformance.md")).unwrap();
    let mut totals: BTreeMap<String, [usize; 4]> = BTreeMap::new();
    for row in rows(&page) {
        let total = totals.entry(row.rfc).or_default();
        let kind = match &row.proof {
            proof if proof.starts_with("n/a: ") => 2,
            proof if proof.starts_with("open: ") => 3,
            _ => 1,
        };
        total[0] += 1;
        total[kind] += 1;
    }
    assert_eq!(totals.len(), 9, "five documents of QUIC, four of HTTP/3");
    for (rfc, [all, tested, not_applicable, open]) in totals {
        let line = format!("| RFC {rfc} | {all} | {tested} | {not_applicable} | {open} |");
        assert!(page.contains(&line), "the page doesn't say: {line}");
    }
}
