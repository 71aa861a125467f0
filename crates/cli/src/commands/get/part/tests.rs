use tempfile::TempDir;

use super::*;

const URL: &str = "https://h:443/x";

fn record() -> Record {
    Record {
        url: URL.to_owned(),
        validator: "\"a\"".to_owned(),
        length: Some(10),
    }
}

fn listed(directory: &TempDir) -> Vec<String> {
    let entries = fs::read_dir(directory.path()).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> = names.collect();
    names.sort();
    names
}

#[test]
fn what_was_begun_is_continued() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("x");
    let mut part = Part::open(&path, URL, false, false).unwrap();
    assert_eq!(part.standing(), None);
    part.begin(Some(record())).unwrap();
    part.write_all(b"hello").unwrap();
    drop(part);
    assert_eq!(listed(&directory), [".x.part", ".x.part.json"]);

    let mut part = Part::open(&path, URL, false, true).unwrap();
    assert_eq!(part.standing(), Some((5, &record())));
    part.write_all(b"world").unwrap();
    part.complete().unwrap();
    assert_eq!(listed(&directory), ["x"]);
    assert_eq!(fs::read(&path).unwrap(), b"helloworld");
}

#[test]
fn another_address_or_no_record_begin_afresh() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("x");
    let mut part = Part::open(&path, URL, false, false).unwrap();
    part.begin(Some(record())).unwrap();
    part.write_all(b"hello").unwrap();
    drop(part);
    for (url, resume) in [("https://h:443/y", true), (URL, false)] {
        let part = Part::open(&path, url, false, resume).unwrap();
        assert_eq!(part.standing(), None);
        // Nothing was changed: the server may not even be reachable.
        drop(part);
        assert_eq!(listed(&directory), [".x.part", ".x.part.json"]);
    }
    fs::write(directory.path().join(".x.part.json"), "{").unwrap();
    let mut part = Part::open(&path, URL, false, true).unwrap();
    assert_eq!(part.standing(), None);
    part.begin(None).unwrap();
    part.write_all(b"new").unwrap();
    part.complete().unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"new");
    assert_eq!(listed(&directory), ["x"]);
}

#[test]
fn what_has_no_version_or_no_content_leaves_nothing() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("x");
    drop(Part::open(&path, URL, false, false).unwrap());
    assert!(listed(&directory).is_empty());
    let mut part = Part::open(&path, URL, false, false).unwrap();
    part.begin(Some(record())).unwrap();
    drop(part);
    assert!(listed(&directory).is_empty());
    let mut part = Part::open(&path, URL, false, false).unwrap();
    part.begin(None).unwrap();
    part.write_all(b"hello").unwrap();
    drop(part);
    assert!(listed(&directory).is_empty());
}

#[test]
fn one_process_at_a_time_writes() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("x");
    let part = Part::open(&path, URL, false, false).unwrap();
    let failure = Part::open(&path, URL, false, true).unwrap_err();
    assert_eq!(failure.exit, Exit::LocalFile);
    assert!(failure.message().contains("another download"), "{failure}");
    part.complete().unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"");
}

#[test]
fn existing_files_stay() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("x");
    fs::write(&path, "old").unwrap();
    assert!(Part::open(&path, URL, false, true).is_err());
    let mut part = Part::open(&path, URL, true, false).unwrap();
    part.begin(None).unwrap();
    part.write_all(b"new").unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"old");
    part.complete().unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"new");

    // A file that appears meanwhile is kept, and so are the fetched bytes.
    let path = directory.path().join("y");
    let mut part = Part::open(&path, URL, false, false).unwrap();
    part.begin(Some(record())).unwrap();
    part.write_all(b"ours").unwrap();
    fs::write(&path, "theirs").unwrap();
    assert!(part.complete().is_err());
    assert_eq!(fs::read(&path).unwrap(), b"theirs");
    assert_eq!(listed(&directory), [".y.part", ".y.part.json", "x", "y"]);
}

#[cfg(unix)]
#[test]
fn links_are_not_followed() {
    let directory = TempDir::new().unwrap();
    let victim = directory.path().join("victim");
    fs::write(&victim, "precious").unwrap();
    std::os::unix::fs::symlink(&victim, directory.path().join(".x.part")).unwrap();
    let failure = Part::open(&directory.path().join("x"), URL, true, true).unwrap_err();
    assert_eq!(failure.exit, Exit::LocalFile);
    assert_eq!(fs::read(&victim).unwrap(), b"precious");
}

#[test]
fn long_names_work_and_stay_apart() {
    let directory = TempDir::new().unwrap();
    let long = |end: &str| directory.path().join("ü".repeat(120) + end);
    let mut one = Part::open(&long("one"), URL, false, false).unwrap();
    let two = Part::open(&long("two"), URL, false, false).unwrap();
    one.begin(Some(record())).unwrap();
    one.write_all(b"1").unwrap();
    one.complete().unwrap();
    two.complete().unwrap();
    assert_eq!(listed(&directory).len(), 2);
}
