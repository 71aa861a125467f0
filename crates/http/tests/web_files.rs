//! The file service through its public interface: what is found, what is refused, coded copies,
//! content in chunks. Conditions and ranges: `web_conditions.rs`.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Component, Path};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::header::{
    ACCEPT_ENCODING, ACCEPT_RANGES, ALLOW, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, ETAG,
    LAST_MODIFIED, LOCATION, VARY,
};
use http::{Method, Response, StatusCode};
use http_body::Body as _;
use http_body_util::BodyExt;
use proptest::prelude::*;
use swiftwater_http::web::files::{
    FileBody, FileOptions, FileService, PathError, RootError, SitePath,
};
use swiftwater_http::web::request_path::RequestPathError;
use tempfile::TempDir;

use crate::site::{LETTERS, MODIFIED, ask, content, get, header, modified, service, site, write};

#[tokio::test]
async fn a_file_comes_whole_and_described() {
    let response = get("/letters.txt", &[]).await;
    assert_eq!(response.status(), StatusCode::OK);
    assert_eq!(header(&response, &CONTENT_LENGTH), "26");
    assert_eq!(
        header(&response, &CONTENT_TYPE),
        "text/plain; charset=utf-8"
    );
    assert_eq!(header(&response, &ACCEPT_RANGES), "bytes");
    assert_eq!(header(&response, &LAST_MODIFIED), MODIFIED);
    assert!(header(&response, &ETAG).starts_with('"'));
    assert_eq!(content(response).await, LETTERS);
}

#[tokio::test]
async fn head_says_what_get_would() {
    let root = site();
    let service = service(&root, FileOptions::default());
    let get = ask(&service, Method::GET, "/letters.txt", &[]).await;
    let head = ask(&service, Method::HEAD, "/letters.txt", &[]).await;
    assert_eq!(head.status(), StatusCode::OK);
    assert_eq!(head.headers(), get.headers());
    assert!(head.body().is_end_stream());
    let missing = ask(&service, Method::HEAD, "/missing", &[]).await;
    assert_eq!(missing.status(), StatusCode::NOT_FOUND);
    assert!(missing.body().is_end_stream());
}

#[tokio::test]
async fn other_methods_are_answered_with_what_is_allowed() {
    let root = site();
    let service = service(&root, FileOptions::default());
    for method in [Method::POST, Method::PUT, Method::DELETE, Method::OPTIONS] {
        let response = ask(&service, method, "/letters.txt", &[]).await;
        assert_eq!(response.status(), StatusCode::METHOD_NOT_ALLOWED);
        assert_eq!(header(&response, &ALLOW), "GET, HEAD");
    }
}

#[tokio::test]
async fn paths_are_decoded_once() {
    let response = get("/caf%C3%A9%20100%25.txt", &[]).await;
    assert_eq!(content(response).await, "coffee");
    assert_eq!(get("/letters%2etxt", &[]).await.status(), StatusCode::OK);
    assert_eq!(
        get("/letters%252etxt", &[]).await.status(),
        StatusCode::NOT_FOUND
    );
}

#[tokio::test]
async fn nothing_leads_out_of_the_root() {
    let root = site();
    fs::create_dir(root.path().join("site")).unwrap();
    write(&root.path().join("site/a"), b"a");
    let service = FileService::new(root.path().join("site"), FileOptions::default()).unwrap();
    for path in [
        "/../letters.txt",
        "/%2e%2e/letters.txt",
        "/a/../../letters.txt",
        "/..%2fletters.txt",
        "/a%00",
        "/%ff",
        "/x%2f..%2fa",
    ] {
        let response = ask(&service, Method::GET, path, &[]).await;
        assert_eq!(response.status(), StatusCode::BAD_REQUEST, "{path}");
    }
    let response = ask(&service, Method::GET, "//./a", &[]).await;
    assert_eq!(content(response).await, "a");
}

#[cfg(unix)]
#[tokio::test]
async fn links_out_of_the_root_need_the_switch() {
    let root = site();
    let outside = TempDir::new().unwrap();
    write(&outside.path().join("file"), b"outside");
    let link = |to: &Path, name: &str| {
        std::os::unix::fs::symlink(to, root.path().join(name)).unwrap();
    };
    link(&outside.path().join("file"), "file");
    link(outside.path(), "out");
    link(Path::new("letters.txt"), "inside");
    link(Path::new("nowhere"), "dangling");
    let strict = service(&root, FileOptions::default());
    let open = service(
        &root,
        FileOptions {
            follow_symlinks: true,
            ..FileOptions::default()
        },
    );
    for path in ["/file", "/out/file", "/out/"] {
        let response = ask(&strict, Method::GET, path, &[]).await;
        assert_eq!(response.status(), StatusCode::FORBIDDEN, "{path}");
    }
    for path in ["/file", "/out/file"] {
        let response = ask(&open, Method::GET, path, &[]).await;
        assert_eq!(content(response).await, "outside", "{path}");
    }
    let response = ask(&strict, Method::GET, "/inside", &[]).await;
    assert_eq!(content(response).await, LETTERS);
    let response = ask(&strict, Method::GET, "/dangling", &[]).await;
    assert_eq!(response.status(), StatusCode::NOT_FOUND);
}

#[cfg(unix)]
#[tokio::test]
async fn what_is_no_file_has_no_content() {
    let root = site();
    let _socket = std::os::unix::net::UnixListener::bind(root.path().join("socket")).unwrap();
    let service = service(&root, FileOptions::default());
    let response = ask(&service, Method::GET, "/socket", &[]).await;
    assert_eq!(response.status(), StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn hidden_files_look_missing() {
    let root = site();
    fs::create_dir_all(root.path().join(".well-known")).unwrap();
    fs::create_dir_all(root.path().join("dir/.git")).unwrap();
    write(&root.path().join(".well-known/token"), b"token");
    write(&root.path().join("dir/.git/config"), b"config");
    let strict = service(&root, FileOptions::default());
    let hidden = content(ask(&strict, Method::GET, "/.secret", &[]).await).await;
    let missing = content(ask(&strict, Method::GET, "/secret", &[]).await).await;
    assert_eq!(hidden, missing);
    for path in [
        "/.secret",
        "/%2esecret",
        "/dir/.git/config",
        "/dir/.well-known/",
    ] {
        let response = ask(&strict, Method::GET, path, &[]).await;
        assert_eq!(response.status(), StatusCode::NOT_FOUND, "{path}");
    }
    let response = ask(&strict, Method::GET, "/.well-known/token", &[]).await;
    assert_eq!(content(response).await, "token");
    let open = service(
        &root,
        FileOptions {
            hidden: true,
            ..FileOptions::default()
        },
    );
    let response = ask(&open, Method::GET, "/.secret", &[]).await;
    assert_eq!(content(response).await, "hidden");
}

#[tokio::test]
async fn directories_have_an_index_or_nothing() {
    let response = get("/with%20index/", &[]).await;
    assert_eq!(header(&response, &CONTENT_TYPE), "text/html; charset=utf-8");
    assert_eq!(content(response).await, "<p>index</p>");
    assert_eq!(get("/dir/", &[]).await.status(), StatusCode::FORBIDDEN);
    for path in ["/letters.txt/", "/letters.txt/x"] {
        assert_eq!(get(path, &[]).await.status(), StatusCode::NOT_FOUND);
    }
}

#[tokio::test]
async fn directories_are_asked_for_with_a_slash() {
    for (path, location) in [
        ("/with%20index", "/with%20index/"),
        ("/dir?a=b&c", "/dir/?a=b&c"),
        // Two slashes at the front would name another host.
        ("//dir", "/dir/"),
    ] {
        let response = get(path, &[]).await;
        assert_eq!(response.status(), StatusCode::MOVED_PERMANENTLY, "{path}");
        assert_eq!(header(&response, &LOCATION), location);
    }
}

#[tokio::test]
async fn listings_escape_what_they_show() {
    let root = site();
    write(&root.path().join("dir/<b>&\"'.txt"), b"");
    let options = FileOptions {
        listing: true,
        ..FileOptions::default()
    };
    let service = service(&root, options);
    let page = content(ask(&service, Method::GET, "/dir/", &[]).await).await;
    let page = std::str::from_utf8(&page).unwrap();
    assert!(page.contains("href=\"./%3Cb%3E%26%22%27.txt\">&lt;b&gt;&amp;&quot;&#39;.txt</a>"));
    assert!(page.contains("href=\"../\""));
    let top = content(ask(&service, Method::GET, "/", &[]).await).await;
    let top = std::str::from_utf8(&top).unwrap();
    assert!(!top.contains(".secret") && !top.contains("../"));
    assert!(top.find("dir/").unwrap() < top.find("empty.bin").unwrap());
}

#[tokio::test]
async fn an_application_answers_for_its_views_only() {
    let root = site();
    write(&root.path().join("app.html"), b"app");
    let service = service(
        &root,
        FileOptions {
            spa_fallback: Some("app.html".into()),
            ..FileOptions::default()
        },
    );
    let view = ask(&service, Method::GET, "/users/7", &[]).await;
    assert_eq!(view.status(), StatusCode::OK);
    assert_eq!(content(view).await, "app");
    let script = ask(&service, Method::GET, "/missing.js", &[]).await;
    assert_eq!(script.status(), StatusCode::NOT_FOUND);
    let file = ask(&service, Method::GET, "/letters.txt", &[]).await;
    assert_eq!(content(file).await, LETTERS);
}

#[tokio::test]
async fn the_root_must_be_a_directory() {
    let root = site();
    let options = FileOptions::default;
    assert!(matches!(
        FileService::new(root.path().join("letters.txt"), options()),
        Err(RootError::NotADirectory { .. })
    ));
    assert!(matches!(
        FileService::new(root.path().join("missing"), options()),
        Err(RootError::Unreachable { .. })
    ));
}

fn set_modified(path: &Path, time: SystemTime) {
    let file = File::options().write(true).open(path).unwrap();
    file.set_modified(time).unwrap();
}

#[tokio::test]
async fn entity_tags_distinguish_states() {
    let root = site();
    let service = service(&root, FileOptions::default());
    let path = root.path().join("letters.txt");
    let tag = async || {
        let response = ask(&service, Method::GET, "/letters.txt", &[]).await;
        header(&response, &ETAG).to_owned()
    };
    let first = tag().await;
    assert_eq!(tag().await, first);
    write(&path, b"other size");
    let second = tag().await;
    set_modified(&path, modified() + Duration::from_millis(1));
    let third = tag().await;
    assert!(first != second && second != third && first != third);
}

#[tokio::test]
async fn a_time_in_the_future_is_not_sent() {
    let root = site();
    let year = Duration::from_secs(365 * 24 * 3600);
    set_modified(&root.path().join("letters.txt"), SystemTime::now() + year);
    let service = service(&root, FileOptions::default());
    let response = ask(&service, Method::GET, "/letters.txt", &[]).await;
    let told = httpdate::parse_http_date(header(&response, &LAST_MODIFIED)).unwrap();
    assert!(told <= SystemTime::now());
}

#[tokio::test]
async fn coded_copies_go_to_those_who_take_them() {
    let root = site();
    write(&root.path().join("letters.txt.gz"), b"gzipped");
    write(&root.path().join("letters.txt.br"), b"brotlied");
    let older = root.path().join("dir/inner.css.gz");
    write(&older, b"older");
    set_modified(&older, modified() - Duration::from_secs(1));
    let options = FileOptions {
        precompressed: true,
        ..FileOptions::default()
    };
    let service = service(&root, options);
    let plain = "abcdefghijklmnopqrstuvwxyz";
    for (path, accept, coding, expected) in [
        ("/letters.txt", "gzip, br", Some("br"), "brotlied"),
        ("/letters.txt", "gzip, br;q=0.5", Some("gzip"), "gzipped"),
        ("/letters.txt", "gzip;q=0, *", Some("br"), "brotlied"),
        ("/letters.txt", "x-gzip", Some("gzip"), "gzipped"),
        ("/letters.txt", "zstd", None, plain),
        ("/letters.txt", "gzip;q=0", None, plain),
        ("/letters.txt", "gzip;q=2", None, plain),
        ("/letters.txt", "", None, plain),
        ("/dir/inner.css", "gzip", None, "p{}"),
    ] {
        let accept = [(ACCEPT_ENCODING.as_str(), accept)];
        let response = ask(&service, Method::GET, path, &accept).await;
        let named = response.headers().get(CONTENT_ENCODING);
        assert_eq!(named.map(|v| v.to_str().unwrap()), coding, "{accept:?}");
        assert_eq!(header(&response, &VARY), "accept-encoding");
        assert!(header(&response, &CONTENT_TYPE).starts_with("text/"));
        assert_eq!(content(response).await, expected);
    }
    let tag_of = async |accept: &str| {
        let accept = [(ACCEPT_ENCODING.as_str(), accept)];
        let response = ask(&service, Method::GET, "/letters.txt", &accept).await;
        header(&response, &ETAG).to_owned()
    };
    assert_ne!(tag_of("br").await, tag_of("gzip").await);
}

#[tokio::test]
async fn large_files_come_in_bounded_chunks() {
    let root = site();
    let large: Vec<u8> = (0..1_000_003_u32).map(|n| (n % 251) as u8).collect();
    write(&root.path().join("large"), &large);
    let options = FileOptions {
        chunk: 10_000,
        ..FileOptions::default()
    };
    let service = service(&root, options);
    let mut body = ask(&service, Method::GET, "/large", &[]).await.into_body();
    let mut received = Vec::new();
    while let Some(frame) = body.frame().await {
        let chunk = frame.unwrap().into_data().unwrap();
        assert!(chunk.len() <= 10_000);
        received.extend_from_slice(&chunk);
        let left = (large.len() - received.len()) as u64;
        assert_eq!(body.size_hint().exact(), Some(left));
    }
    assert!(received == large);
}

/// Reads the first chunk of a file of 300 kB, changes the file, and reads on.
async fn after_change(change: impl FnOnce(&Path)) -> Result<Bytes, String> {
    let root = site();
    let path = root.path().join("large");
    write(&path, &vec![7; 300_000]);
    let service = service(&root, FileOptions::default());
    let response: Response<FileBody> = ask(&service, Method::GET, "/large", &[]).await;
    let mut body = response.into_body();
    body.frame().await.unwrap().unwrap();
    change(&path);
    body.collect()
        .await
        .map(http_body_util::Collected::to_bytes)
        .map_err(|error| error.to_string())
}

#[tokio::test]
async fn a_file_that_changes_breaks_its_body() {
    let shorter = after_change(|path| {
        let file = File::options().write(true).open(path).unwrap();
        file.set_len(1000).unwrap();
    });
    assert!(shorter.await.unwrap_err().contains("truncated"));
    let rewritten = after_change(|path| {
        let mut file = File::options().write(true).open(path).unwrap();
        file.write_all(&vec![8; 300_000]).unwrap();
    });
    assert!(rewritten.await.unwrap_err().contains("changed"));
}

#[tokio::test]
async fn a_file_that_grows_or_is_replaced_is_served_as_it_was() {
    let appended = after_change(|path| {
        let mut file = File::options().append(true).open(path).unwrap();
        file.write_all(b"more").unwrap();
    });
    assert_eq!(appended.await.unwrap().len(), 300_000 - 64 * 1024);
    let replaced = after_change(|path| {
        let next = path.with_extension("new");
        write(&next, b"new");
        fs::rename(next, path).unwrap();
    });
    assert!(replaced.await.unwrap().iter().all(|byte| *byte == 7));
}

proptest! {
    /// For any request path: an accepted path stays below the root, segment by segment, and
    /// survives encoding into a URI and decoding.
    #[test]
    fn accepted_paths_stay_below_the_root(
        path in "(/|%2f|%5c|\\.|%2e|[a-c]|%00|%c3|%a9|%|\\\\| ){0,24}",
        hidden in any::<bool>(),
    ) {
        let path = format!("/{path}");
        match SitePath::parse(&path, hidden) {
            Ok(parsed) => {
                let relative = parsed.to_relative();
                prop_assert!(relative.components().all(|part| matches!(part, Component::Normal(_))));
                prop_assert!(!relative.to_str().unwrap().contains('\0'));
                let uri = parsed.directory_uri();
                prop_assert!(uri.parse::<http::Uri>().unwrap().authority().is_none());
                let again = SitePath::parse(&uri, hidden).unwrap();
                prop_assert_eq!(again.to_relative(), relative);
                prop_assert!(again.is_directory());
            }
            Err(PathError::Hidden) => prop_assert!(!hidden),
            Err(error) => prop_assert!(
                error != PathError::Meaningless(RequestPathError::NotAbsolute)
            ),
        }
    }
}
