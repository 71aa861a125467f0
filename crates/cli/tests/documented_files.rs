//! Source files that pages name exist.

use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The paths of all files below a folder, relative to it, build output left out.
fn files(folder: &Path, prefix: &str, found: &mut Vec<String>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let entry = entry.expect("an entry");
        let name = entry.file_name().to_string_lossy().into_owned();
        if name == "target" || name.starts_with('.') {
            continue;
        }
        let path = format!("{prefix}/{name}");
        if entry.path().is_dir() {
            files(&entry.path(), &path, found);
        } else {
            found.push(path);
        }
    }
}

fn is_rust(name: &str) -> bool {
    Path::new(name)
        .extension()
        .is_some_and(|extension| extension == "rs")
}

/// The Rust files in a page's code spans: `quic/src/lib.rs`, or `quic/tests/cids.rs::name_of_a_test`.
fn named(page: &str) -> Vec<String> {
    let spans = page.split('`').skip(1).step_by(2);
    let names = spans.map(|span| span.split("::").next().unwrap_or_default());
    let is_plain = |c: char| c.is_alphanumeric() || "_-/.".contains(c);
    names
        .filter(|name| is_rust(name) && name.chars().all(is_plain))
        .map(str::to_owned)
        .collect()
}

#[test]
fn files_that_pages_name_exist() {
    let mut known = Vec::new();
    for folder in ["crates", "benches", "fuzz", "interop"] {
        files(&root().join(folder), &format!("/{folder}"), &mut known);
    }
    let pages = fs::read_dir(root().join("docs")).expect("docs");
    let pages = pages.map(|entry| entry.expect("an entry").path());
    let pages =
        pages.chain(["ARCHITECTURE.md", "README.md", "SECURITY.md"].map(|page| root().join(page)));
    let mut missing = Vec::new();
    let mut count = 0;
    for page in pages.filter(|page| page.extension().is_some_and(|extension| extension == "md")) {
        for name in named(&fs::read_to_string(&page).expect("text")) {
            count += 1;
            let end = format!("/{name}");
            if !known.iter().any(|path| path.ends_with(&end)) {
                missing.push(format!("{}: {name}", page.display()));
            }
        }
    }
    assert!(count > 100, "{count}");
    assert!(missing.is_empty(), "{missing:#?}");
}

#[test]
fn names_are_read_from_code_spans() {
    let page = "in `quic/src/lib.rs` and `cids.rs::a_test`, not in `<topic>.rs`, quic/src/no.rs or `cargo`";
    assert_eq!(named(page), ["quic/src/lib.rs", "cids.rs"]);
}
