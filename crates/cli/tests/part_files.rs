//! Files that have their final name only when they are complete.

use std::fs;

use crate::support::names;
use swiftwater_cli::exit::{Exit, Failure};
use swiftwater_cli::part_file::{PartFile, PartFileError};
use tempfile::TempDir;

#[test]
fn the_name_appears_with_the_last_byte() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("video.mp4");
    let mut part = PartFile::create(&path, false).unwrap();
    part.write_all(b"hello ").unwrap();
    part.write_all(b"world").unwrap();
    assert!(!path.exists());
    assert_eq!(part.part_path().parent(), path.parent(), "same file system");
    let [name] = &names(directory.path())[..] else {
        panic!("one file")
    };
    assert!(name.starts_with(".video.mp4.part-"), "{name}");
    assert_eq!(part.complete().unwrap(), path);
    assert_eq!(names(directory.path()), ["video.mp4"]);
    assert_eq!(fs::read(&path).unwrap(), b"hello world");
}

#[test]
fn giving_up_leaves_nothing() {
    let directory = TempDir::new().unwrap();
    let mut part = PartFile::create(&directory.path().join("x"), false).unwrap();
    part.write_all(b"partial").unwrap();
    drop(part);
    assert!(names(directory.path()).is_empty());
}

#[test]
fn a_killed_process_leaves_no_final_name() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("x");
    let mut part = PartFile::create(&path, false).unwrap();
    part.write_all(b"partial").unwrap();
    // Nothing runs any more, as after a kill.
    std::mem::forget(part);
    assert!(!path.exists());
    // The next try is not disturbed.
    let mut again = PartFile::create(&path, false).unwrap();
    again.write_all(b"whole").unwrap();
    again.complete().unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"whole");
}

#[test]
fn existing_files_are_kept() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("x");
    fs::write(&path, "old").unwrap();
    let error = PartFile::create(&path, false).unwrap_err();
    assert!(matches!(error, PartFileError::Exists(_)));
    let failure = Failure::from(error);
    assert_eq!(failure.exit, Exit::LocalFile);
    assert!(failure.message().contains("--force"));
    assert_eq!(fs::read_to_string(&path).unwrap(), "old");
}

#[test]
fn a_file_that_appears_meanwhile_is_kept() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("x");
    let mut part = PartFile::create(&path, false).unwrap();
    part.write_all(b"ours").unwrap();
    fs::write(&path, "theirs").unwrap();
    assert!(matches!(
        part.complete().unwrap_err(),
        PartFileError::Exists(_)
    ));
    assert_eq!(fs::read_to_string(&path).unwrap(), "theirs");
    assert_eq!(names(directory.path()), ["x"]);
}

#[test]
fn overwriting_keeps_the_old_file_until_the_new_one_is_complete() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("x");
    fs::write(&path, "old").unwrap();
    let mut part = PartFile::create(&path, true).unwrap();
    part.write_all(b"new").unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "old");
    part.complete().unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "new");
}

#[test]
fn a_missing_directory_is_named() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("missing").join("x");
    let failure = Failure::from(PartFile::create(&path, false).unwrap_err());
    assert_eq!(failure.exit, Exit::LocalFile);
    assert!(failure.message().contains("missing"), "{failure}");
}

#[test]
fn the_longest_names_work() {
    let directory = TempDir::new().unwrap();
    for name in ["x".repeat(255), "ü".repeat(127)] {
        let path = directory.path().join(name);
        PartFile::create(&path, false).unwrap().complete().unwrap();
        assert!(path.exists());
    }
}

#[cfg(unix)]
#[test]
fn files_are_as_readable_as_any_other() {
    use std::os::unix::fs::PermissionsExt;
    let directory = TempDir::new().unwrap();
    let (ours, usual) = (
        directory.path().join("ours"),
        directory.path().join("usual"),
    );
    PartFile::create(&ours, false).unwrap().complete().unwrap();
    fs::write(&usual, "").unwrap();
    let mode = |path| fs::metadata(path).unwrap().permissions().mode();
    assert_eq!(mode(&ours), mode(&usual));
}

/// Every write to the device fails as it does on a full disk. Only Linux has it everywhere; elsewhere
/// filling a disk would need permission to mount one.
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_called_that() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("video.mp4");
    let mut part = PartFile::create_with(&path, false, |part| {
        std::os::unix::fs::symlink("/dev/full", part)?;
        fs::File::options().write(true).open(part)
    })
    .unwrap();
    assert_eq!(names(directory.path()).len(), 1);
    let error = part.write_all(b"more than nothing").unwrap_err();
    assert!(
        matches!(&error, PartFileError::DiskFull(full) if *full == path),
        "{error:?}"
    );
    let failure = Failure::from(error);
    assert_eq!(failure.exit, Exit::LocalFile);
    assert_eq!(
        failure.message(),
        format!("disk full: cannot write {}", path.display())
    );
    drop(part);
    assert!(names(directory.path()).is_empty(), "nothing is left behind");
}
