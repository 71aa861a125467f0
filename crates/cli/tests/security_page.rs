//! `SECURITY.md` is true: each test that its tables name exists, and each threat has one.

use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The rows of the page's tables that begin with `heading`, cell by cell.
fn rows<'a>(page: &'a str, heading: &str) -> Vec<Vec<&'a str>> {
    let cells = |line: &'a str| -> Vec<&'a str> {
        let inner = line.trim().trim_start_matches('|').trim_end_matches('|');
        inner.split('|').map(str::trim).collect()
    };
    let table = page
        .lines()
        .skip_while(|line| !line.starts_with(&format!("| {heading} |")))
        .take_while(|line| line.starts_with('|'));
    table.skip(2).map(cells).collect()
}

/// What a cell quotes with backquotes.
fn quoted(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2)
}

/// The file that a test is in, and its name: `file.rs::test`, or `topic::test` for the tests of hostile
/// peers.
fn test(quoted: &str) -> Option<(PathBuf, &str)> {
    let (file, name) = quoted.rsplit_once("::")?;
    let crates = root().join("crates");
    let file = if Path::new(file).extension().is_some() {
        crates.join(file)
    } else {
        crates.join(format!("quic/tests/hostile/{file}.rs"))
    };
    Some((file, name))
}

#[test]
fn every_threat_has_tests_and_they_exist() {
    let page = fs::read_to_string(root().join("SECURITY.md")).unwrap();
    let threats = rows(&page, "threat");
    assert!(threats.len() > 30, "{} threats", threats.len());
    for row in threats {
        let [threat, _, bound, code, tests] = row[..] else {
            panic!("five cells are expected: {row:?}");
        };
        assert!(!bound.is_empty(), "no bound: {threat}");
        for file in quoted(code) {
            let path = root().join("crates").join(file);
            assert!(path.exists(), "{threat}: there is no crates/{file}");
        }
        let mut named = 0;
        for (file, name) in quoted(tests).filter_map(test) {
            let source = fs::read_to_string(&file)
                .unwrap_or_else(|error| panic!("{threat}: {}: {error}", file.display()));
            let exists = source.contains(&format!("fn {name}("));
            assert!(exists, "{threat}: no test {name} in {}", file.display());
            named += 1;
        }
        assert!(named > 0, "no test is named: {threat}");
    }
}

#[test]
fn every_cap_says_what_happens_beyond_it() {
    let page = fs::read_to_string(root().join("SECURITY.md")).unwrap();
    let caps = rows(&page, "what");
    assert!(caps.len() > 10, "{} caps", caps.len());
    for row in caps {
        assert_eq!(row.len(), 3, "{row:?}");
        assert!(row.iter().all(|cell| !cell.is_empty()), "{row:?}");
    }
}
