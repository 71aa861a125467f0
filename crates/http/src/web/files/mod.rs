//! Files of a directory as a tower service: GET and HEAD, conditional requests, ranges, index pages,
//! copies in a content coding (RFC 9110, sections 8.8, 12.5.3, 13 and 14).
//!
//! `tower_http::services::ServeDir` covers a part of this: it has no entity tags, hence no `If-Match`,
//! `If-None-Match` and `If-Range`, answers requests for several ranges with 416, and follows symbolic
//! links out of its root. The required features are implemented here; existing parts (`httpdate`,
//! `mime_guess`, `percent-encoding`) come from their crates.
//!
//! - `path`: from the target of a request to a path below the root; no file system.
//! - `locate`, `tree`: from that path to an open file: in place if the kernel has all of it in memory, else on the
//!   blocking threads.
//! - `cache`, `version`: contents of small files in memory, and the check that they are of the present file.
//! - `lookup`: one request's way from its path to its response.
//! - `validators`, `ranges`, `encodings`: evaluation of request headers; no I/O.
//! - `representation`: the fields that all responses with a file have in common.
//! - `respond`, `listing`: status, headers and body of the response.
//! - `body`: content in chunks.

mod body;
mod cache;
pub(super) mod encodings;
mod error;
mod listing;
mod locate;
mod lookup;
mod options;
mod path;
mod ranges;
mod representation;
mod respond;
mod tree;
mod validators;
mod version;

use std::convert::Infallible;
use std::future::Future;
use std::net::Ipv6Addr;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Instant, SystemTime};

use bytes::Bytes;
use futures_util::future::{Either, Ready, ready};
use http::{Method, Request, Response, request};
use tokio::task::spawn_blocking;
use tower::Service;

pub use body::{FileBody, FileBodyError};
pub use cache::FileCache;
pub use error::FileError;
pub use options::{FileOptions, RootError};
pub use path::{PathError, SitePath};
pub use ranges::{MAX_RANGES, Selection, select};
pub use validators::{Validators, Verdict};

use body::Source;
use listing::{ListingCache, ListingOptions};
use locate::Site;
use lookup::{Lookup, Step};
use tree::Tree;

use super::connection_info::ConnectionInfo;
use super::shared_limit::SharedPermit;

/// Serves the files of a directory. Cheap to clone; independent of the HTTP version.
///
/// Bodies of requests are dropped unread. Failures become responses: the service itself never
/// fails.
///
/// A file is opened before its headers are sent, because they depend on it, and stays open until its
/// content is sent, so that all content is of one file; small ones are read and closed at once. What the system has in
/// memory (Linux 5.12 or newer) is opened and read in place, everything else on blocking threads. With
/// [`FileOptions::cache`] small files that were requested before are not opened at all ([`FileCache`]).
/// [`FileOptions::open_files`] bounds how many are open.
#[derive(Debug, Clone)]
pub struct FileService {
    site: Arc<Site>,
    listings: Arc<ListingCache>,
}

impl FileService {
    /// Serves the files below `root`, which must be a directory. Symbolic links on the way to the
    /// root are resolved once, now. The page of a single-page application must exist.
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
        let tree = Tree::new(root, options.follow_symlinks);
        let cache = options.cache.as_ref().map(FileCache::site);
        let site = Site {
            tree,
            options,
            cache,
        };
        if let Some(page) = &site.options.spa_fallback
            && let Err(error) = site.open(page, &[])
        {
            return Err(RootError::Fallback {
                page: page.clone(),
                path: path.to_owned(),
                error,
            });
        }
        Ok(Self {
            site: Arc::new(site),
            listings: Arc::default(),
        })
    }

    /// The response with what is in the cache under the decoded path `path`.
    fn answer_from_cache(
        &self,
        request: &request::Parts,
        path: &str,
        now: Instant,
    ) -> Option<Response<FileBody>> {
        let cache = self.site.cache.as_ref()?;
        if request.method != Method::GET && request.method != Method::HEAD {
            return None;
        }
        let codings = self.site.codings(&request.headers);
        let cached = cache.get(path, encodings::number_of(&codings), now)?;
        Some(respond::cached(request, &cached, SystemTime::now()))
    }

    async fn answer(self, request: request::Parts, begin: Instant) -> Response<FileBody> {
        let method = request.method.clone();
        match self.try_answer(request, begin).await {
            Ok(response) => response,
            Err(error) => respond::error(&error, &method),
        }
    }

    async fn try_answer(
        self,
        request: request::Parts,
        begin: Instant,
    ) -> Result<Response<FileBody>, FileError> {
        if request.method != Method::GET && request.method != Method::HEAD {
            return Err(FileError::Method);
        }
        let method = request.method.clone();
        let path = SitePath::parse(request.uri.path(), self.site.options.hidden)?;
        if self.site.cache.is_some() {
            let decoded = path.decoded();
            if decoded != request.uri.path()
                && let Some(response) = self.answer_from_cache(&request, &decoded, begin)
            {
                return Ok(response);
            }
        }
        let permit = self.permit(&request)?;
        let site = Arc::clone(&self.site);
        let lookup = Lookup {
            request,
            path,
            begin,
            permit,
        };
        if let Some(found) = site.locate_cached(&lookup.path) {
            return Ok(lookup.respond(&site, found, &[], Source::read_cached));
        }
        match off_thread(move || lookup.run(&site)).await? {
            Step::Answered(response) => Ok(response),
            Step::List(path) => Ok(respond::page(self.listing(path).await?, &method)),
        }
    }

    /// A permit for an open file for the client of `request`.
    fn permit(&self, request: &request::Parts) -> Result<Option<SharedPermit>, FileError> {
        let Some(limit) = &self.site.options.open_files else {
            return Ok(None);
        };
        let client = request.extensions.get::<ConnectionInfo>();
        let client = client.map_or(Ipv6Addr::UNSPECIFIED.into(), |info| info.peer.ip());
        let permit = limit.try_acquire(client, 1);
        permit.map(Some).map_err(|_| FileError::Busy)
    }

    /// The listing of a directory, generated at most once a second.
    async fn listing(&self, path: SitePath) -> Result<Bytes, FileError> {
        let directory = path.to_relative();
        if let Some(page) = self.listings.get(&directory) {
            return Ok(page);
        }
        let _turn = self.listings.turn.lock().await;
        if let Some(page) = self.listings.get(&directory) {
            return Ok(page);
        }
        let site = Arc::clone(&self.site);
        let relative = directory.clone();
        let page = off_thread(move || {
            let options = ListingOptions {
                hidden: site.options.hidden,
                most: site.options.listing_entries,
            };
            listing::make(&site.tree, &relative, &path.directory_uri(), options)
        })
        .await?;
        self.listings.keep(directory, page.clone());
        Ok(page)
    }
}

/// Accesses the file system on a blocking thread.
async fn off_thread<T: Send + 'static>(
    ask: impl FnOnce() -> Result<T, FileError> + Send + 'static,
) -> Result<T, FileError> {
    spawn_blocking(ask)
        .await
        .map_err(|error| FileError::Io(std::io::Error::other(error)))?
}

/// Response of the service, which never fails.
type Answer = Result<Response<FileBody>, Infallible>;

impl<B> Service<Request<B>> for FileService {
    type Response = Response<FileBody>;
    type Error = Infallible;
    type Future = Either<Ready<Answer>, Pin<Box<dyn Future<Output = Answer> + Send>>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let (parts, _) = request.into_parts();
        let begin = Instant::now();
        // Entries have decoded paths, so that this finds one only if decoding changes nothing.
        let path = parts.uri.path();
        if !path.contains('%')
            && let Some(response) = self.answer_from_cache(&parts, path, begin)
        {
            return Either::Left(ready(Ok(response)));
        }
        let answer = self.clone().answer(parts, begin);
        Either::Right(Box::pin(async move { Ok(answer.await) }))
    }
}
