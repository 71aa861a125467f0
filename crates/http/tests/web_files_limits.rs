//! What a directory's service does not do: leave its directory, hold more files open than it may, list
//! and compress without end.

use std::fs;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use http::header::{
    ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, ETAG, RETRY_AFTER, VARY,
};
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Empty};
use swiftwater_http::web::compression::{Compress, MAX_SIZE};
use swiftwater_http::web::connection_info::{ConnectionInfo, Transport};
use swiftwater_http::web::files::{FileBody, FileOptions, FileService, RootError};
use swiftwater_http::web::shared_limit::SharedLimit;
use tempfile::TempDir;
use tower::{Layer, ServiceExt};

use crate::site::{ask, content, header, service, site};

/// A GET request of the client at `peer`.
fn request_from(peer: &str, path: &str) -> Request<Empty<Bytes>> {
    let mut request = Request::get(path).body(Empty::new()).unwrap();
    request.extensions_mut().insert(ConnectionInfo {
        peer: SocketAddr::new(peer.parse().unwrap(), 1),
        local: "127.0.0.1:443".parse().unwrap(),
        protocol: Transport::Quic,
        alpn: None,
        server_name: None,
        client_chain: None,
    });
    request
}

async fn get_from(service: &FileService, peer: &str, path: &str) -> Response<FileBody> {
    let request = request_from(peer, path);
    service.clone().oneshot(request).await.unwrap()
}

/// A process with write access below the directory exchanges files with links out of it while they are
/// served.
#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_swapped_with_a_link_out_is_not_served() {
    use std::os::unix::fs::symlink;
    let home = TempDir::new().unwrap();
    let root = home.path().join("site");
    let outside = home.path().join("outside");
    fs::create_dir_all(root.join("dir")).unwrap();
    fs::create_dir_all(&outside).unwrap();
    fs::write(outside.join("file"), "secret").unwrap();
    fs::write(root.join("dir/file"), "public").unwrap();
    fs::write(root.join("file"), "public").unwrap();
    let options = FileOptions {
        listing: true,
        ..FileOptions::default()
    };
    let service = FileService::new(&root, options).unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let ended = Arc::clone(&stop);
    let swapping = std::thread::spawn(move || {
        let (file, link) = (root.join("a"), root.join("b"));
        let (dir, dir_link) = (root.join("dir"), root.join("c"));
        while !ended.load(Ordering::Relaxed) {
            // A file is replaced by a link, by name, and put back.
            symlink(outside.join("file"), &link).unwrap();
            fs::rename(&link, root.join("file")).unwrap();
            fs::write(&file, "public").unwrap();
            fs::rename(&file, root.join("file")).unwrap();
            // So is a directory on the way.
            symlink(&outside, &dir_link).unwrap();
            fs::rename(&dir, root.join("d")).unwrap();
            fs::rename(&dir_link, &dir).unwrap();
            fs::remove_file(&dir).unwrap();
            fs::rename(root.join("d"), &dir).unwrap();
        }
    });
    let mut served = 0;
    let mut refused = 0;
    for index in 0..6_000 {
        let path = if index % 2 == 0 { "/file" } else { "/dir/file" };
        let response = ask(&service, Method::GET, path, &[]).await;
        if response.status() == StatusCode::OK {
            // A file that is replaced while it is read breaks the message off.
            if let Ok(content) = response.into_body().collect().await {
                assert_eq!(content.to_bytes(), "public", "{path}");
                served += 1;
            }
        } else {
            refused += 1;
        }
    }
    stop.store(true, Ordering::Relaxed);
    swapping.join().unwrap();
    assert!(
        served > 0 && refused > 0,
        "{served} served, {refused} refused"
    );
}

#[cfg(unix)]
#[tokio::test]
async fn links_within_the_directory_work_however_they_are_written() {
    use std::os::unix::fs::symlink;
    let root = site();
    let path = root.path().canonicalize().unwrap();
    let name = path.file_name().unwrap().to_owned();
    symlink(path.join("letters.txt"), path.join("absolute")).unwrap();
    symlink("../letters.txt", path.join("dir/upwards")).unwrap();
    symlink(path.join("dir"), path.join("directory")).unwrap();
    let through_parent = std::path::Path::new("..").join(name).join("letters.txt");
    symlink(through_parent, path.join("parent")).unwrap();
    symlink("/etc/hostname", path.join("out")).unwrap();
    symlink("..", path.join("up")).unwrap();
    symlink("circle", path.join("circle")).unwrap();
    let service = service(&root, FileOptions::default());
    for (path, status) in [
        ("/absolute", StatusCode::OK),
        ("/dir/upwards", StatusCode::OK),
        ("/directory/inner.css", StatusCode::OK),
        ("/parent", StatusCode::OK),
        ("/out", StatusCode::FORBIDDEN),
        ("/up/", StatusCode::FORBIDDEN),
        ("/circle", StatusCode::NOT_FOUND),
    ] {
        let response = ask(&service, Method::GET, path, &[]).await;
        assert_eq!(response.status(), status, "{path}");
    }
}

/// Opening a FIFO blocks until it has a writer; a socket can't be opened at all.
#[cfg(unix)]
#[tokio::test]
async fn what_is_no_file_is_not_found() {
    let root = site();
    let fifo = root.path().join("fifo");
    let made = std::process::Command::new("mkfifo").arg(&fifo).status();
    assert!(made.unwrap().success());
    let _socket = std::os::unix::net::UnixListener::bind(root.path().join("socket")).unwrap();
    let service = service(&root, FileOptions::default());
    for path in ["/fifo", "/socket"] {
        let response = ask(&service, Method::GET, path, &[]).await;
        assert_eq!(response.status(), StatusCode::NOT_FOUND, "{path}");
    }
}

/// A directory that may be entered but not read still has files.
#[cfg(unix)]
#[tokio::test]
async fn directories_need_not_be_readable() {
    use std::os::unix::fs::PermissionsExt;
    let root = site();
    let directory = root.path().join("with index");
    fs::set_permissions(&directory, fs::Permissions::from_mode(0o111)).unwrap();
    let service = service(&root, FileOptions::default());
    let response = ask(&service, Method::GET, "/with%20index/", &[]).await;
    assert_eq!(content(response).await, "<p>index</p>");
    fs::set_permissions(&directory, fs::Permissions::from_mode(0o755)).unwrap();
}

#[tokio::test]
async fn open_files_are_limited_and_shared() {
    let root = TempDir::new().unwrap();
    fs::write(root.path().join("large"), vec![7; 1 << 20]).unwrap();
    fs::write(root.path().join("small"), "small").unwrap();
    let limit = SharedLimit::new(8);
    let options = FileOptions {
        open_files: Some(limit.clone()),
        ..FileOptions::default()
    };
    let service = FileService::new(root.path(), options).unwrap();
    let mut held = Vec::new();
    let refused = loop {
        let response = get_from(&service, "192.0.2.1", "/large").await;
        if response.status() != StatusCode::OK {
            break response;
        }
        held.push(response);
    };
    // One client has its share, others have the rest.
    assert_eq!(held.len(), 4);
    assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(header(&refused, &RETRY_AFTER), "1");
    let other = get_from(&service, "198.51.100.1", "/large").await;
    assert_eq!(other.status(), StatusCode::OK);
    assert_eq!(limit.held(), 5);
    // What is small enough is read at once and holds nothing, and so does what has no content.
    let small = get_from(&service, "203.0.113.1", "/small").await;
    let missing = get_from(&service, "203.0.113.1", "/missing").await;
    assert_eq!(
        (small.status(), missing.status()),
        (StatusCode::OK, StatusCode::NOT_FOUND)
    );
    assert_eq!(limit.held(), 5);
    assert_eq!(content(small).await, "small");
    // Permits are returned at the end of a response, whatever its outcome.
    assert_eq!(content(other).await.len(), 1 << 20);
    drop(held);
    assert_eq!(limit.held(), 0);
}

#[tokio::test]
async fn listings_are_kept_for_a_moment_and_end_somewhere() {
    let root = TempDir::new().unwrap();
    for index in 0..30 {
        fs::write(root.path().join(format!("file-{index:02}")), vec![0; 1500]).unwrap();
    }
    let options = FileOptions {
        listing: true,
        listing_entries: 20,
        ..FileOptions::default()
    };
    let service = FileService::new(root.path(), options).unwrap();
    let page = async || {
        let page = content(ask(&service, Method::GET, "/", &[]).await).await;
        String::from_utf8(page.to_vec()).unwrap()
    };
    let first = page().await;
    assert_eq!(first.matches("href=\"./file-").count(), 20);
    assert!(
        first.contains("There are more than the 20 shown here."),
        "{first}"
    );
    assert!(first.contains("1.5 kB"), "{first}");
    for index in 5..30 {
        fs::remove_file(root.path().join(format!("file-{index:02}"))).unwrap();
    }
    // Bounded by what the machine may need, far above what pages live.
    for _ in 0..1200 {
        let now = page().await;
        if now != first {
            assert_eq!(now.matches("href=\"./file-").count(), 5);
            assert!(!now.contains("There are more"));
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    panic!("the page never changes");
}

#[tokio::test]
async fn the_page_of_an_application_must_be_there() {
    let root = site();
    let options = FileOptions {
        spa_fallback: Some("nosuch.html".into()),
        ..FileOptions::default()
    };
    let error = FileService::new(root.path(), options).unwrap_err();
    assert!(matches!(error, RootError::Fallback { .. }));
    assert!(error.to_string().contains("nosuch.html"), "{error}");
}

#[tokio::test]
async fn streaming_has_its_types() {
    let root = site();
    for (name, expected) in [
        ("live.m3u8", "application/vnd.apple.mpegurl"),
        ("segment.ts", "video/mp2t"),
        ("segment.m4s", "video/iso.segment"),
        ("SEGMENT.M4S", "video/iso.segment"),
        ("manifest.mpd", "application/dash+xml"),
        ("video.mp4", "video/mp4"),
        ("module.mjs", "text/javascript; charset=utf-8"),
        ("code.wasm", "application/wasm"),
    ] {
        fs::write(root.path().join(name), "x").unwrap();
        let service = service(&root, FileOptions::default());
        let response = ask(&service, Method::GET, &format!("/{name}"), &[]).await;
        assert_eq!(header(&response, &CONTENT_TYPE), expected, "{name}");
    }
}

/// A file of `length` bytes of text.
fn text(root: &TempDir, name: &str, length: u64) {
    let file = fs::File::create(root.path().join(name)).unwrap();
    file.set_len(length).unwrap();
}

#[tokio::test]
async fn compression_is_limited_in_size_and_in_number() {
    let root = TempDir::new().unwrap();
    text(&root, "page.txt", 1 << 20);
    text(&root, "largest.txt", MAX_SIZE);
    text(&root, "larger.txt", MAX_SIZE + 1);
    let files = FileService::new(root.path(), FileOptions::default()).unwrap();
    // Room for four pages.
    let budget = SharedLimit::new(64);
    let roomy = Compress::default().layer(files.clone());
    let tight = Compress::default().budget(budget.clone()).layer(files);
    let packed = |mut request: Request<Empty<Bytes>>| {
        let accept = "gzip".parse().unwrap();
        request.headers_mut().insert(ACCEPT_ENCODING, accept);
        request
    };
    for (path, coding) in [("/largest.txt", Some("gzip")), ("/larger.txt", None)] {
        let request = packed(request_from("192.0.2.1", path));
        let response = roomy.clone().oneshot(request).await.unwrap();
        let named = response.headers().get(CONTENT_ENCODING);
        assert_eq!(named.map(|name| name.to_str().unwrap()), coding, "{path}");
    }
    let mut held = Vec::new();
    let mut count = async |peer: &str| {
        let request = packed(request_from(peer, "/page.txt"));
        let response = tight.clone().oneshot(request).await.unwrap();
        assert_eq!(response.headers()[VARY], "accept-encoding");
        let is_packed = response.headers().contains_key(CONTENT_ENCODING);
        held.push(response);
        is_packed
    };
    assert!(count("192.0.2.1").await && count("192.0.2.1").await);
    // Beyond its share a client gets the text as it is; others don't notice.
    assert!(!count("192.0.2.1").await);
    assert!(count("198.51.100.1").await);
    assert_eq!(budget.held(), 48);
    for response in held {
        let length = response
            .into_body()
            .collect()
            .await
            .unwrap()
            .to_bytes()
            .len();
        assert!(length == 1 << 20 || length < 1 << 16);
    }
    assert_eq!(budget.held(), 0);
}

/// HEAD gives the same fields as GET, as far as known without compressing.
#[tokio::test]
async fn the_head_of_what_would_be_compressed() {
    let root = TempDir::new().unwrap();
    text(&root, "page.txt", 100_000);
    let files = FileService::new(root.path(), FileOptions::default()).unwrap();
    let service = Compress::default().layer(files);
    let ask = async |method: Method, accept: &str| {
        let request = Request::builder()
            .method(method)
            .uri("/page.txt")
            .header(ACCEPT_ENCODING, accept)
            .body(Empty::<Bytes>::new())
            .unwrap();
        service.clone().oneshot(request).await.unwrap()
    };
    for (accept, length) in [("gzip", None), ("identity", Some("100000"))] {
        let get = ask(Method::GET, accept).await;
        let head = ask(Method::HEAD, accept).await;
        for name in [VARY, CONTENT_LENGTH, ETAG] {
            assert_eq!(
                get.headers().get(&name),
                head.headers().get(&name),
                "{accept} {name}"
            );
        }
        let told = head.headers().get(CONTENT_LENGTH);
        assert_eq!(told.map(|value| value.to_str().unwrap()), length);
        assert_eq!(head.headers()[VARY], "accept-encoding");
        assert!(
            head.into_body()
                .collect()
                .await
                .unwrap()
                .to_bytes()
                .is_empty()
        );
    }
}
