//! Records the commit of the sources, which the program states in its results.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The commit, for builds outside a repository.
const COMMIT: &str = "SWIFTWATER_COMMIT";

/// Digits of a commit.
const DIGITS: &str = "--short=12";

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed={COMMIT}");
    let given = env::var(COMMIT).ok().filter(|commit| is_plain(commit));
    let commit = given.or_else(of_repository);
    let commit = commit.as_deref().unwrap_or("unknown");
    println!("cargo:rustc-env=SWIFTWATER_BUILD_COMMIT={commit}");
}

fn is_plain(commit: &str) -> bool {
    !commit.is_empty()
        && commit
            .chars()
            .all(|letter| letter.is_ascii_alphanumeric() || letter == '-')
}

/// The commit that is checked out, with `-dirty` if what the program is built from differs from it; `None` if the
/// workspace is no repository of its own.
fn of_repository() -> Option<String> {
    let crates = Path::new(&env::var_os("CARGO_MANIFEST_DIR")?)
        .parent()?
        .to_owned();
    let root = fs::canonicalize(crates.parent()?).ok()?;
    let top = git(&root, &["rev-parse", "--show-toplevel"])?;
    if fs::canonicalize(top).ok()? != root {
        return None;
    }
    let sources = sources(&root);
    // Another commit is checked out, or a source changes.
    for name in ["HEAD", "logs/HEAD"] {
        let path = root.join(git(&root, &["rev-parse", "--git-path", name])?);
        if path.exists() {
            println!("cargo:rerun-if-changed={}", path.display());
        }
    }
    for source in &sources {
        println!("cargo:rerun-if-changed={}", source.display());
    }
    let commit = git(&root, &["rev-parse", DIGITS, "HEAD"])?;
    let mut status = vec!["status", "--porcelain", "--"];
    status.extend(sources.iter().filter_map(|path| path.to_str()));
    let dirty = if git(&root, &status)?.is_empty() {
        ""
    } else {
        "-dirty"
    };
    Some(format!("{commit}{dirty}"))
}

/// What the program is built from.
fn sources(root: &Path) -> Vec<PathBuf> {
    let mut sources = vec![
        root.join("Cargo.toml"),
        root.join("Cargo.lock"),
        root.join("assets"),
        root.join("scenarios"),
    ];
    let crates = fs::read_dir(root.join("crates")).into_iter().flatten();
    let mut folders: Vec<PathBuf> = crates.flatten().map(|entry| entry.path()).collect();
    folders.sort();
    for folder in folders {
        sources.push(folder.join("src"));
        sources.push(folder.join("Cargo.toml"));
    }
    sources.retain(|path| path.exists());
    sources
}

/// What git prints, trimmed; `None` if it fails or isn't installed.
fn git(root: &Path, args: &[&str]) -> Option<String> {
    let output = Command::new("git").current_dir(root).args(args).output();
    let output = output.ok().filter(|output| output.status.success())?;
    let text = String::from_utf8(output.stdout).ok()?;
    Some(text.trim().to_owned())
}
