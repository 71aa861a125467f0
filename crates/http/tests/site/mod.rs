//! A directory to serve, and requests for its files.

#![allow(dead_code, reason = "each test file uses a part")]

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use http::{Method, Request, Response};
use http_body_util::{BodyExt, Empty};
use swiftwater_http::web::files::{FileBody, FileOptions, FileService};
use tempfile::TempDir;
use tower::ServiceExt;

/// The content of `letters.txt`.
pub(crate) const LETTERS: &[u8] = b"abcdefghijklmnopqrstuvwxyz";

/// When all files changed last, as HTTP says it.
pub(crate) const MODIFIED: &str = "Sun, 13 Sep 2020 12:26:40 GMT";

/// The second before.
pub(crate) const BEFORE: &str = "Sun, 13 Sep 2020 12:26:39 GMT";

/// The second after.
pub(crate) const AFTER: &str = "Sun, 13 Sep 2020 12:26:41 GMT";

/// When all files changed last: with a fraction of a second that HTTP dates can't carry.
pub(crate) fn modified() -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(1_600_000_000_500)
}

/// A directory with the files that most tests need.
pub(crate) fn site() -> TempDir {
    let root = TempDir::new().unwrap();
    fs::create_dir(root.path().join("dir")).unwrap();
    fs::create_dir(root.path().join("with index")).unwrap();
    let files: [(&str, &[u8]); 6] = [
        ("letters.txt", LETTERS),
        ("empty.bin", b""),
        (".secret", b"hidden"),
        ("with index/index.html", b"<p>index</p>"),
        ("dir/inner.css", b"p{}"),
        ("caf\u{e9} 100%.txt", b"coffee"),
    ];
    for (name, content) in files {
        write(&root.path().join(name), content);
    }
    root
}

/// Writes a file that changed at [`modified`].
pub(crate) fn write(path: &Path, content: &[u8]) {
    let mut file = File::create(path).unwrap();
    file.write_all(content).unwrap();
    file.set_modified(modified()).unwrap();
}

/// The service of `root`.
pub(crate) fn service(root: &TempDir, options: FileOptions) -> FileService {
    FileService::new(root.path(), options).unwrap()
}

/// One request.
pub(crate) async fn ask(
    service: &FileService,
    method: Method,
    path: &str,
    headers: &[(&str, &str)],
) -> Response<FileBody> {
    let mut request = Request::builder().method(method).uri(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request = request.body(Empty::<Bytes>::new()).unwrap();
    service.clone().oneshot(request).await.unwrap()
}

/// A GET request to a fresh [`site`] with default options.
pub(crate) async fn get(path: &str, headers: &[(&str, &str)]) -> Response<FileBody> {
    let root = site();
    let service = service(&root, FileOptions::default());
    ask(&service, Method::GET, path, headers).await
}

/// The whole content of an answer.
pub(crate) async fn content(response: Response<FileBody>) -> Bytes {
    response.into_body().collect().await.unwrap().to_bytes()
}

/// The value of a field that must be there.
pub(crate) fn header<'a>(response: &'a Response<FileBody>, name: &http::HeaderName) -> &'a str {
    response.headers()[name].to_str().unwrap()
}
