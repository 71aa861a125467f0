//! Every file with tests is a module of its crate's test program, or a program of its own.

use std::fs;
use std::path::{Path, PathBuf};

fn crates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Names of the test files and test folders of a crate, without those of the program itself.
fn topics(tests: &Path) -> Vec<String> {
    let mut names = Vec::new();
    for entry in fs::read_dir(tests).expect("a folder of tests") {
        let path = entry.expect("an entry").path();
        let name = path.file_stem().expect("a name").to_string_lossy();
        if path.extension().is_some_and(|e| e == "rs") && name != "main" {
            names.push(name.into_owned());
        }
    }
    names
}

/// Whether the file of this name is a module of the program; a module of another file has its name with `#[path]`.
fn is_module(program: &str, topic: &str) -> bool {
    let declaration = format!("mod {topic};");
    let mut previous = "";
    for line in program.lines() {
        if line == declaration && !previous.starts_with("#[path") {
            return true;
        }
        previous = line;
    }
    false
}

#[test]
fn no_test_file_is_left_out() {
    let mut left_out = Vec::new();
    let mut programs = 0;
    for entry in fs::read_dir(crates()).expect("crates/ is readable") {
        let folder = entry.expect("an entry").path();
        let Ok(program) = fs::read_to_string(folder.join("tests/main.rs")) else {
            continue;
        };
        programs += 1;
        let manifest = fs::read_to_string(folder.join("Cargo.toml")).expect("a manifest");
        for topic in topics(&folder.join("tests")) {
            let module = is_module(&program, &topic);
            let own = manifest.contains(&format!("path = \"tests/{topic}.rs\""));
            if module == own {
                left_out.push(format!("{}: {topic}", folder.display()));
            }
        }
    }
    assert!(programs > 10, "{programs} test programs");
    assert!(
        left_out.is_empty(),
        "neither a module of tests/main.rs nor a program of its own, or both: {left_out:?}"
    );
}

/// Files below `folder` with tests of their module.
fn with_unit_tests(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder of sources") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            with_unit_tests(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs") {
            let text = fs::read_to_string(&path).expect("a source file");
            if text.contains("cfg(test)") || text.contains("#[test]") {
                found.push(path);
            }
        }
    }
}

#[test]
fn a_library_without_a_test_program_has_no_unit_tests() {
    let mut without = 0;
    let mut never_run = Vec::new();
    for entry in fs::read_dir(crates()).expect("crates/ is readable") {
        let folder = entry.expect("an entry").path();
        let Ok(manifest) = fs::read_to_string(folder.join("Cargo.toml")) else {
            continue;
        };
        if manifest.contains("[lib]\ntest = false\n") {
            without += 1;
            with_unit_tests(&folder.join("src"), &mut never_run);
        }
    }
    assert!(without > 5, "{without} libraries");
    assert!(never_run.is_empty(), "tests that never run: {never_run:?}");
}
