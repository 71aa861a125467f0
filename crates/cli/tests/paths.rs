//! Which file a request path means, and that nothing outside the directory can be reached.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use swiftwater_cli::site::{Site, SiteError};
use tempfile::TempDir;

/// `site/` with files, `secret` beside it.
fn set() -> (TempDir, Site) {
    let directory = TempDir::new().unwrap();
    let root = directory.path().join("site");
    fs::create_dir_all(root.join("sub").join("deep")).unwrap();
    fs::write(root.join("a.txt"), "a").unwrap();
    fs::write(root.join("with space"), "s").unwrap();
    fs::write(root.join("sub").join("b.txt"), "b").unwrap();
    fs::write(directory.path().join("secret"), "secret").unwrap();
    let site = Site::new(&root).unwrap();
    (directory, site)
}

fn content(path: &Path) -> String {
    fs::read_to_string(path).unwrap()
}

#[test]
fn files_below_the_directory_are_found() {
    let (_directory, site) = set();
    for (request, expected) in [
        ("/a.txt", "a"),
        ("//a.txt", "a"),
        ("/sub/b.txt", "b"),
        ("/sub//b.txt", "b"),
        ("/with%20space", "s"),
        ("/a%2Etxt", "a"),
        ("/a.txt?version=3", "a"),
    ] {
        assert_eq!(
            content(&site.resolve(request).unwrap()),
            expected,
            "{request}"
        );
    }
}

#[test]
fn what_is_no_file_is_not_found() {
    let (_directory, site) = set();
    for request in [
        "/",
        "/sub",
        "/sub/",
        "/missing",
        "/sub/missing/b.txt",
        "/a.txt/b",
    ] {
        assert_eq!(site.resolve(request), Err(SiteError::NotFound), "{request}");
    }
}

#[test]
fn ways_out_are_refused_however_they_are_written() {
    let (directory, site) = set();
    let absolute = directory.path().join("secret");
    for request in [
        "/../secret",
        "/sub/../../secret",
        "/sub/../a.txt",
        "/%2e%2e/secret",
        "/%2E%2e/secret",
        "/..%2fsecret",
        "/sub%2f..%2f..%2fsecret",
        "/..\\secret",
        "/..%5csecret",
        "/%2fetc%2fpasswd",
        &format!("/{}", absolute.to_str().unwrap().replace('/', "%2f")),
    ] {
        assert_eq!(site.resolve(request), Err(SiteError::Outside), "{request}");
    }
    // An absolute path after the slash is relative to the directory.
    let doubled = format!("/{}", absolute.display());
    assert_eq!(site.resolve(&doubled), Err(SiteError::NotFound));
}

#[test]
fn malformed_paths_are_refused() {
    let (_directory, site) = set();
    for request in [
        "",
        "a.txt",
        "/%",
        "/%4",
        "/%zz",
        "/a%00.txt",
        "/%ff",
        "/./a.txt",
    ] {
        assert_eq!(
            site.resolve(request),
            Err(SiteError::Malformed),
            "{request}"
        );
    }
}

#[cfg(unix)]
#[test]
fn links_are_followed_only_inside() {
    use std::os::unix::fs::symlink;
    let (directory, site) = set();
    let root = directory.path().join("site");
    symlink("sub/b.txt", root.join("inside")).unwrap();
    symlink("../secret", root.join("escape")).unwrap();
    symlink(directory.path(), root.join("parent")).unwrap();
    symlink("nowhere", root.join("dangling")).unwrap();
    assert_eq!(content(&site.resolve("/inside").unwrap()), "b");
    assert_eq!(site.resolve("/escape"), Err(SiteError::Outside));
    assert_eq!(site.resolve("/parent/secret"), Err(SiteError::Outside));
    assert_eq!(site.resolve("/dangling"), Err(SiteError::NotFound));
}

#[cfg(unix)]
#[test]
fn a_neighbour_with_the_same_prefix_is_outside() {
    use std::os::unix::fs::symlink;
    let (directory, site) = set();
    let neighbour = directory.path().join("site-private");
    fs::create_dir(&neighbour).unwrap();
    fs::write(neighbour.join("x"), "x").unwrap();
    symlink(&neighbour, directory.path().join("site").join("n")).unwrap();
    assert_eq!(site.resolve("/n/x"), Err(SiteError::Outside));
}

#[cfg(unix)]
#[test]
fn sockets_and_devices_are_not_files() {
    let (directory, site) = set();
    let path = directory.path().join("site").join("socket");
    let _socket = std::os::unix::net::UnixListener::bind(path).unwrap();
    assert_eq!(site.resolve("/socket"), Err(SiteError::NotFound));
}

#[test]
fn only_a_directory_can_be_served() {
    let (directory, _site) = set();
    assert!(Site::new(&directory.path().join("missing")).is_err());
    assert!(Site::new(&directory.path().join("secret")).is_err());
}

proptest! {
    /// Whatever is asked for, an answer lies below the directory.
    #[test]
    fn nothing_outside_is_ever_found(request in "(/|\\.|%2e|%2f|%5c|\\\\|a|b|sub|secret|site|%00|~|:){0,12}") {
        let (_directory, site) = set();
        if let Ok(path) = site.resolve(&format!("/{request}")) {
            let path: PathBuf = path.canonicalize().unwrap();
            prop_assert!(path.starts_with(site.root()));
        }
    }

    #[test]
    fn no_request_panics(request in ".{0,60}") {
        let site = Site::new(Path::new(env!("CARGO_MANIFEST_DIR"))).unwrap();
        let _ = site.resolve(&request);
    }
}
