//! The file cache: what it serves without a look at the file, when it notices changes, what it holds.
//!
//! It keeps files that changed some seconds ago, so that each test first waits until it does.

use std::fs;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::header::{
    ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LENGTH, ETAG, IF_MATCH, IF_NONE_MATCH, RANGE,
};
use http::{HeaderMap, Method, StatusCode};
use http_body_util::BodyExt;
use swiftwater_http::web::files::{FileCache, FileOptions, FileService};
use swiftwater_http::web::shared_limit::SharedLimit;
use tempfile::TempDir;

use crate::site::{LETTERS, ask, content, header, service, site, write};

/// Longer than any test.
const FOREVER: Duration = Duration::from_secs(3600);

/// Every request looks at the file.
const NO_TIME: Duration = Duration::ZERO;

fn options(cache: &FileCache) -> FileOptions {
    FileOptions {
        cache: Some(cache.clone()),
        ..FileOptions::default()
    }
}

/// Requests `paths` until the cache holds `files` files.
async fn fill(service: &FileService, cache: &FileCache, paths: &[&str], files: usize) {
    let begin = Instant::now();
    while cache.files() < files {
        assert!(begin.elapsed() < Duration::from_secs(60), "nothing is kept");
        for path in paths {
            content(ask(service, Method::GET, path, &[]).await).await;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

async fn text(service: &FileService, path: &str) -> (StatusCode, Bytes) {
    let response = ask(service, Method::GET, path, &[]).await;
    (response.status(), content(response).await)
}

#[tokio::test]
async fn what_is_kept_is_answered_as_from_the_file() {
    let root = site();
    let cache = FileCache::new(1 << 20, FOREVER);
    let (with, without) = (
        service(&root, options(&cache)),
        service(&root, FileOptions::default()),
    );
    let paths = [
        "/letters.txt",
        "/empty.bin",
        "/with%20index/",
        "/caf%C3%A9%20100%25.txt",
    ];
    fill(&with, &cache, &paths, paths.len()).await;
    let etag = ask(&without, Method::GET, paths[0], &[]).await;
    let etag = header(&etag, &ETAG).to_owned();
    let fields: [&[(&str, &str)]; 8] = [
        &[],
        &[(IF_NONE_MATCH.as_str(), &etag)],
        &[(IF_NONE_MATCH.as_str(), "\"other\"")],
        &[(IF_MATCH.as_str(), "\"other\"")],
        &[(RANGE.as_str(), "bytes=2-4")],
        &[(RANGE.as_str(), "bytes=0-0,25-25")],
        &[(RANGE.as_str(), "bytes=90-")],
        &[("if-modified-since", "Sun, 13 Sep 2020 12:26:40 GMT")],
    ];
    for path in paths {
        for method in [Method::GET, Method::HEAD] {
            for fields in fields {
                let one = ask(&with, method.clone(), path, fields).await;
                let other = ask(&without, method.clone(), path, fields).await;
                assert_eq!(one.status(), other.status(), "{path} {fields:?}");
                assert_eq!(one.headers(), other.headers(), "{path} {fields:?}");
                assert_eq!(content(one).await, content(other).await);
            }
        }
    }
    // Nothing of it came from the file.
    fs::remove_file(root.path().join("letters.txt")).unwrap();
    assert_eq!(text(&with, paths[0]).await.1, LETTERS);
    assert_eq!(text(&without, paths[0]).await.0, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn every_kind_of_change_is_seen_when_the_time_is_over() {
    let root = site();
    let path = root.path().join("letters.txt");
    let cache = FileCache::new(1 << 20, NO_TIME);
    let service = service(&root, options(&cache));
    fill(&service, &cache, &["/letters.txt"], 1).await;
    let first = ask(&service, Method::GET, "/letters.txt", &[]).await;
    let first = header(&first, &ETAG).to_owned();

    // In place, with size and time as before.
    write(&path, b"zyxwvutsrqponmlkjihgfedcba");
    assert_eq!(
        text(&service, "/letters.txt").await.1,
        "zyxwvutsrqponmlkjihgfedcba"
    );
    // Truncated in place.
    fs::OpenOptions::new()
        .write(true)
        .open(&path)
        .unwrap()
        .set_len(3)
        .unwrap();
    let short = ask(&service, Method::GET, "/letters.txt", &[]).await;
    assert_eq!(header(&short, &CONTENT_LENGTH), "3");
    assert_ne!(header(&short, &ETAG), first);
    assert_eq!(content(short).await, "zyx");
    // Another file of its name.
    write(&root.path().join("new"), LETTERS);
    fs::rename(root.path().join("new"), &path).unwrap();
    assert_eq!(text(&service, "/letters.txt").await.1, LETTERS);
    // None.
    fs::remove_file(&path).unwrap();
    let (status, _) = text(&service, "/letters.txt").await;
    assert_eq!(status, StatusCode::NOT_FOUND);
    // A directory.
    fs::create_dir(&path).unwrap();
    let (status, _) = text(&service, "/letters.txt").await;
    assert_eq!(status, StatusCode::MOVED_PERMANENTLY);
}

#[cfg(unix)]
#[tokio::test]
async fn a_link_out_of_the_root_in_place_of_a_kept_file_is_refused() {
    use std::os::unix::fs::symlink;
    let root = site();
    let outside = TempDir::new().unwrap();
    write(&outside.path().join("secret"), LETTERS);
    let cache = FileCache::new(1 << 20, NO_TIME);
    let service = service(&root, options(&cache));
    fill(&service, &cache, &["/letters.txt", "/dir/inner.css"], 2).await;
    fs::remove_file(root.path().join("letters.txt")).unwrap();
    symlink(
        outside.path().join("secret"),
        root.path().join("letters.txt"),
    )
    .unwrap();
    let (status, _) = text(&service, "/letters.txt").await;
    assert_eq!(status, StatusCode::FORBIDDEN);
    // A directory on the way.
    fs::rename(root.path().join("dir"), outside.path().join("dir")).unwrap();
    symlink(outside.path().join("dir"), root.path().join("dir")).unwrap();
    let (status, _) = text(&service, "/dir/inner.css").await;
    assert_eq!(status, StatusCode::FORBIDDEN);
}

/// A change right after a file was read might not show in its times.
#[tokio::test]
async fn files_that_changed_just_now_are_not_kept() {
    let root = site();
    let cache = FileCache::new(1 << 20, FOREVER);
    let service = service(&root, options(&cache));
    let file = root.path().join("busy.txt");
    let begin = Instant::now();
    let mut round = 0;
    while begin.elapsed() < Duration::from_secs(5) {
        let now = format!("round {round:06}");
        fs::write(&file, &now).unwrap();
        assert_eq!(text(&service, "/busy.txt").await.1, now);
        round += 1;
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(cache.files(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_response_mixes_two_versions() {
    let root = TempDir::new().unwrap();
    let file = root.path().join("file");
    fs::write(&file, "a".repeat(1000)).unwrap();
    let cache = FileCache::new(1 << 20, Duration::from_millis(1));
    let service = service(&root, options(&cache));
    fill(&service, &cache, &["/file"], 1).await;
    let stop = Arc::new(AtomicBool::new(false));
    let (ended, path) = (Arc::clone(&stop), root.path().to_owned());
    let replacing = std::thread::spawn(move || {
        for round in 0_usize.. {
            if ended.load(Ordering::Relaxed) {
                break;
            }
            let letter = char::from(b'a' + (round % 26) as u8);
            let text = letter.to_string().repeat(500 + round % 4000);
            fs::write(path.join("next"), text).unwrap();
            fs::rename(path.join("next"), path.join("file")).unwrap();
        }
    });
    for _ in 0..3000 {
        let response = ask(&service, Method::GET, "/file", &[]).await;
        assert_eq!(response.status(), StatusCode::OK);
        let length: usize = header(&response, &CONTENT_LENGTH).parse().unwrap();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        assert_eq!(body.len(), length);
        assert!(body.iter().all(|byte| *byte == body[0]));
    }
    stop.store(true, Ordering::Relaxed);
    replacing.join().unwrap();
}

#[tokio::test]
async fn memory_is_bounded_and_large_files_are_not_kept() {
    const MOST: u64 = 256 << 10;
    let root = TempDir::new().unwrap();
    for number in 0..100 {
        write(&root.path().join(format!("f{number}")), &[7; 8000]);
    }
    write(&root.path().join("large"), &vec![7; 17_000]);
    let cache = FileCache::new(MOST, FOREVER);
    let service = service(&root, options(&cache));
    fill(&service, &cache, &["/f0", "/large"], 1).await;
    for number in 0..100 {
        for _ in 0..3 {
            text(&service, &format!("/f{number}")).await;
        }
        assert!(cache.bytes() <= MOST, "{} bytes", cache.bytes());
    }
    assert!(cache.files() > 5, "{} files", cache.files());
    fs::remove_file(root.path().join("large")).unwrap();
    let (status, _) = text(&service, "/large").await;
    assert_eq!(status, StatusCode::NOT_FOUND);
}

/// Every path leads to the fallback, and every spelling of a path to its file.
#[tokio::test]
async fn requests_cannot_multiply_a_file_in_the_cache() {
    let root = site();
    let cache = FileCache::new(1 << 20, FOREVER);
    let with_fallback = FileOptions {
        spa_fallback: Some("letters.txt".into()),
        ..options(&cache)
    };
    let service = service(&root, with_fallback);
    fill(&service, &cache, &["/letters.txt"], 1).await;
    let spellings = ["/%6cetters.txt", "//letters.txt", "/./letters.txt"];
    for path in spellings.into_iter().chain(["/view", "/other/view"]) {
        assert_eq!(text(&service, path).await.1, LETTERS, "{path}");
    }
    assert_eq!(text(&service, "/none.txt").await.0, StatusCode::NOT_FOUND);
    assert_eq!(cache.files(), 1);
    // A file that appears is seen at once.
    write(&root.path().join("view"), b"view");
    assert_eq!(text(&service, "/view").await.1, "view");
}

#[tokio::test]
async fn copies_are_kept_for_those_who_accept_them() {
    let root = site();
    write(&root.path().join("letters.txt.gz"), b"gzip");
    let cache = FileCache::new(1 << 20, NO_TIME);
    let copies = FileOptions {
        precompressed: true,
        ..options(&cache)
    };
    let service = service(&root, copies);
    fill(&service, &cache, &["/letters.txt"], 1).await;
    let gzip = [(ACCEPT_ENCODING.as_str(), "gzip")];
    let both = [(ACCEPT_ENCODING.as_str(), "br, gzip")];
    for _ in 0..2 {
        let copy = ask(&service, Method::GET, "/letters.txt", &gzip).await;
        assert_eq!(header(&copy, &CONTENT_ENCODING), "gzip");
        assert_eq!(content(copy).await, "gzip");
        let copy = ask(&service, Method::GET, "/letters.txt", &both).await;
        assert_eq!(content(copy).await, "gzip");
        assert_eq!(text(&service, "/letters.txt").await.1, LETTERS);
    }
    assert_eq!(cache.files(), 3);
    // A better copy that appears is seen.
    write(&root.path().join("letters.txt.br"), b"brotli");
    let copy = ask(&service, Method::GET, "/letters.txt", &both).await;
    assert_eq!(content(copy).await, "brotli");
}

#[tokio::test]
async fn kept_files_need_no_open_file() {
    let root = site();
    let cache = FileCache::new(1 << 20, FOREVER);
    let limit = SharedLimit::new(8);
    let limited = FileOptions {
        open_files: Some(limit.clone()),
        ..options(&cache)
    };
    let service = service(&root, limited);
    fill(&service, &cache, &["/letters.txt"], 1).await;
    assert_eq!(limit.held(), 0);
    let client: SocketAddr = "[2001:db8::1]:1".parse().unwrap();
    let mut taken = Vec::new();
    while let Ok(permit) = limit.try_acquire("::".parse().unwrap(), 1) {
        taken.push(permit);
    }
    while let Ok(permit) = limit.try_acquire(client.ip(), 1) {
        taken.push(permit);
    }
    let (status, _) = text(&service, "/dir/inner.css").await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(text(&service, "/letters.txt").await.1, LETTERS);
}

#[tokio::test]
async fn sites_with_one_cache_have_their_own_files() {
    let (one, other) = (site(), site());
    write(&other.path().join("letters.txt"), b"other");
    let cache = FileCache::new(1 << 20, FOREVER);
    let first = service(&one, options(&cache));
    let second = service(&other, options(&cache));
    fill(&first, &cache, &["/letters.txt"], 1).await;
    fill(&second, &cache, &["/letters.txt"], 2).await;
    assert_eq!(text(&first, "/letters.txt").await.1, LETTERS);
    assert_eq!(text(&second, "/letters.txt").await.1, "other");
    let response = ask(&first, Method::POST, "/letters.txt", &[]).await;
    assert_eq!(response.status(), StatusCode::METHOD_NOT_ALLOWED);
    assert_ne!(response.headers(), &HeaderMap::new());
}
