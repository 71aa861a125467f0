//! Files of a directory as a tower service: GET and HEAD, conditional requests, ranges, index pages,
//! copies in a content coding (RFC 9110, sections 8.8, 12.5.3, 13 and 14).
//!
//! `tower_http::services::ServeDir` covers a part of this: it has no entity tags, hence no `If-Match`,
//! `If-None-Match` and `If-Range`, answers requests for several ranges with 416, and follows symbolic
//! links out of its root. What a server must not be without is here; the pieces that exist
//! (`httpdate`, `mime_guess`, `percent-encoding`) come from their crates.
//!
//! - `path`: from the target of a request to a path below the root; no file system.
//! - `locate`: from that path to an open file; blocks, and so runs on the blocking threads.
//! - `validators`, `ranges`, `encodings`: what request headers mean; no I/O.
//! - `respond`, `listing`: status, headers and body of the answer.
//! - `body`: content in chunks.

mod body;
mod encodings;
mod error;
mod listing;
mod locate;
mod options;
mod path;
mod ranges;
mod respond;
mod validators;

use std::convert::Infallible;
use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::SystemTime;

use http::{Method, Request, Response, request};
use tokio::task::spawn_blocking;
use tower::Service;

pub use body::{FileBody, FileBodyError};
pub use error::FileError;
pub use options::{FileOptions, RootError};
pub use path::{PathError, SitePath};
pub use ranges::{MAX_RANGES, Selection, select};
pub use validators::{Validators, Verdict};

use locate::{Located, Site};

/// Serves the files of a directory. Cheap to clone; knows nothing of HTTP versions.
///
/// Bodies of requests are dropped unread. Failures become answers: the service itself never fails.
#[derive(Debug, Clone)]
pub struct FileService {
    site: Arc<Site>,
}

impl FileService {
    /// Serves what lies below `root`, which must be a directory. Symbolic links on the way to the
    /// root are resolved once, now.
    pub fn new(root: impl AsRef<Path>, options: FileOptions) -> Result<Self, RootError> {
        let path = root.as_ref();
        let unreachable = |error| RootError::Unreachable {
            path: path.to_owned(),
            error,
        };
        let root = path.canonicalize().map_err(unreachable)?;
        if !root.metadata().map_err(unreachable)?.is_dir() {
            return Err(RootError::NotADirectory {
                path: path.to_owned(),
            });
        }
        Ok(Self {
            site: Arc::new(Site { root, options }),
        })
    }

    async fn answer(self, request: request::Parts) -> Response<FileBody> {
        match self.find(&request).await {
            Ok((path, located)) => self.present(&request, &path, located),
            Err(error) => {
                if let FileError::Io(error) = &error {
                    tracing::warn!(%error, path = request.uri.path(), "a file could not be read");
                }
                respond::error(&error, &request.method)
            }
        }
    }

    async fn find(&self, request: &request::Parts) -> Result<(SitePath, Located), FileError> {
        if request.method != Method::GET && request.method != Method::HEAD {
            return Err(FileError::Method);
        }
        let path = SitePath::parse(request.uri.path(), self.site.options.hidden)?;
        let codings = if self.site.options.precompressed {
            encodings::accepted(&request.headers)
        } else {
            Vec::new()
        };
        let site = Arc::clone(&self.site);
        spawn_blocking(move || {
            let located = site.locate(&path, &codings)?;
            Ok((path, located))
        })
        .await
        .map_err(|error| FileError::Io(std::io::Error::other(error)))?
    }

    fn present(
        &self,
        request: &request::Parts,
        path: &SitePath,
        located: Located,
    ) -> Response<FileBody> {
        match located {
            Located::File(found) => {
                respond::file(request, found, &self.site.options, SystemTime::now())
            }
            Located::Redirect => {
                let mut location = path.directory_uri();
                if let Some(query) = request.uri.query() {
                    location.push('?');
                    location.push_str(query);
                }
                respond::redirect(&location, &request.method)
            }
            Located::Listing(entries) => {
                let html = listing::render(&path.directory_uri(), &entries);
                respond::page(html, &request.method)
            }
        }
    }
}

impl<B> Service<Request<B>> for FileService {
    type Response = Response<FileBody>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let (parts, _) = request.into_parts();
        let answer = self.clone().answer(parts);
        Box::pin(async move { Ok(answer.await) })
    }
}
