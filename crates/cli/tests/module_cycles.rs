//! Modules of a crate import in one direction: the modules beside `lib.rs` form no cycle.
//!
//! Read from the text: what follows `crate::` in code, tests left out.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Crates whose modules form no cycle.
const CRATES: &[&str] = &[
    "congestion",
    "http",
    "media",
    "net",
    "policies",
    "qlog",
    "quic",
    "select",
    "tecc",
    "wire",
];

type Imports = BTreeMap<String, BTreeSet<String>>;

fn is_test(path: &Path) -> bool {
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    name == "tests" || name.ends_with("_tests")
}

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if is_test(&path) {
            continue;
        }
        if path.is_dir() {
            files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// The code of a file, without comments and without its test module.
fn code(text: &str) -> String {
    let text = text.split("#[cfg(test)]\nmod tests {").next();
    let lines = text.unwrap_or_default().lines();
    let lines = lines.map(|line| line.split("//").next().unwrap_or_default());
    lines.collect::<Vec<_>>().join("\n")
}

/// The first names of the paths that begin with `crate::`.
fn imports(code: &str) -> BTreeSet<String> {
    let word = |text: &str| -> String {
        text.trim_start()
            .chars()
            .take_while(|c| c.is_alphanumeric() || *c == '_')
            .collect()
    };
    let mut names = BTreeSet::new();
    for rest in code.split("crate::").skip(1) {
        let Some(group) = rest.strip_prefix('{') else {
            names.insert(word(rest));
            continue;
        };
        // The names at the first level of `{a::{b, c}, d}`.
        let (mut depth, mut start) = (0, 0);
        for (at, c) in group.char_indices() {
            match c {
                '{' => depth += 1,
                ',' | '}' if depth == 0 => {
                    names.insert(word(&group[start..at]));
                    start = at + 1;
                    if c == '}' {
                        break;
                    }
                }
                '}' => depth -= 1,
                _ => {}
            }
        }
    }
    names
}

/// What each module beside `lib.rs` imports of the others.
fn modules(source: &Path) -> Imports {
    let mut found = Vec::new();
    files(source, &mut found);
    let module = |path: &Path| {
        let first = path.strip_prefix(source).ok()?.components().next()?;
        let name = first.as_os_str().to_string_lossy().into_owned();
        Some(name.trim_end_matches(".rs").to_owned())
    };
    let names: BTreeSet<String> = found.iter().filter_map(|path| module(path)).collect();
    let mut all = Imports::new();
    for path in &found {
        let Some(own) = module(path).filter(|own| own != "lib") else {
            continue;
        };
        let text = fs::read_to_string(path).expect("text");
        let others = imports(&code(&text));
        let others = others
            .into_iter()
            .filter(|other| names.contains(other) && *other != own);
        all.entry(own.clone()).or_default().extend(others);
    }
    all
}

/// The modules that import each other, directly or not: what is left once those that import nothing of the rest
/// are taken away, and those that nothing of the rest imports.
fn cycle(mut imports: Imports) -> BTreeSet<String> {
    loop {
        let left: BTreeSet<String> = imports.keys().cloned().collect();
        let imported: BTreeSet<String> = imports.values().flatten().cloned().collect();
        imports.retain(|name, others| {
            others.retain(|other| left.contains(other));
            !others.is_empty() && imported.contains(name)
        });
        if imports.len() == left.len() {
            return left;
        }
    }
}

#[test]
fn modules_form_no_cycle() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for name in CRATES {
        let imports = modules(&crates.join(name).join("src"));
        assert!(!imports.is_empty(), "{name}");
        assert_eq!(cycle(imports), BTreeSet::new(), "{name}");
    }
}

#[test]
fn a_cycle_is_found() {
    let of = |pairs: &[(&str, &str)]| {
        let mut all = Imports::new();
        for (from, to) in pairs {
            all.entry((*from).to_owned())
                .or_default()
                .insert((*to).to_owned());
            all.entry((*to).to_owned()).or_default();
        }
        all
    };
    assert_eq!(
        cycle(of(&[("a", "b"), ("b", "c"), ("a", "c")])),
        BTreeSet::new()
    );
    let found = cycle(of(&[("a", "b"), ("b", "c"), ("c", "b"), ("c", "d")]));
    assert_eq!(found.into_iter().collect::<Vec<_>>(), ["b", "c"]);
    let names = imports("use crate::{a::{x, y}, b, c::Z};\nlet _ = crate::d::f();");
    assert_eq!(names.into_iter().collect::<Vec<_>>(), ["a", "b", "c", "d"]);
}
