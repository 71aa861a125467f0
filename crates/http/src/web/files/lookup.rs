//! A request whose file has to be looked up in the file system, and the response to it.

use std::sync::Arc;
use std::time::{Instant, SystemTime};

use http::{Response, request};

use super::body::{FileBody, READ_AT_ONCE, ReadBytes, Source};
use super::cache::CachedFile;
use super::encodings::{self, Coding};
use super::error::FileError;
use super::locate::{Located, OpenFile, Site};
use super::path::SitePath;
use super::representation::Representation;
use super::respond;
use crate::web::shared_limit::SharedPermit;

/// A request for a file, which was GET or HEAD.
#[derive(Debug)]
pub(super) struct Lookup {
    pub(super) request: request::Parts,
    pub(super) path: SitePath,
    /// When it arrived: what is found is not older.
    pub(super) begin: Instant,
    /// For the file that is opened.
    pub(super) permit: Option<SharedPermit>,
}

/// Remaining steps after the file system was accessed.
#[derive(Debug)]
pub(super) enum Step {
    Answered(Response<FileBody>),
    /// A directory listing is needed.
    List(SitePath),
}

impl Lookup {
    /// Resolves the path and answers the request. Blocks.
    pub(super) fn run(self, site: &Site) -> Result<Step, FileError> {
        let codings = site.codings(&self.request.headers);
        let located = site.locate(&self.path, &codings).inspect_err(|error| {
            if let FileError::Io(error) = error {
                let path = self.request.uri.path();
                tracing::warn!(%error, path, "a file could not be read");
            }
        })?;
        Ok(Step::Answered(match located {
            Located::File(found) => self.respond(site, found, &codings, Source::read_waiting),
            Located::Redirect => {
                let mut location = self.path.directory_uri();
                if let Some(query) = self.request.uri.query() {
                    location.push('?');
                    location.push_str(query);
                }
                respond::redirect(&location, &self.request.method)
            }
            Located::Listing => return Ok(Step::List(self.path)),
        }))
    }

    /// The response with `found`, which was chosen for `codings`. Content that is small is read with `read`, and kept
    /// in the cache.
    pub(super) fn respond(
        self,
        site: &Site,
        mut found: OpenFile,
        codings: &[Coding],
        read: ReadBytes,
    ) -> Response<FileBody> {
        found.permit = self.permit;
        found.pieces = self.request.extensions.get().cloned();
        let now = SystemTime::now();
        let known = site.cache.as_ref().filter(|_| {
            found.length <= READ_AT_ONCE
                && found.version.is_settled(now)
                && site.is_named_by(&found.name, &self.path)
        });
        let Some(cache) = known else {
            let representation = Representation::of(&found, &site.options, now);
            let source = Source::of(found, &site.options);
            let whole = || FileBody::of(source);
            let mut response = respond::file(&self.request, &representation, whole, now);
            response.body_mut().read_if_small(read);
            return response;
        };
        let path = self.path.decoded();
        let codings = encodings::number_of(codings);
        let (version, coding) = (found.version, found.coding);
        if let Some(cached) = cache.revalidate(&path, codings, (version, coding), self.begin) {
            return respond::cached(&self.request, &cached, now);
        }
        let representation = Representation::of(&found, &site.options, now);
        let source = Source::of(found, &site.options);
        if let Some(content) = source.read_version(version, read) {
            let cached = CachedFile::new((version, coding), representation, content);
            let cached = Arc::new(cached);
            cache.insert(&path, codings, Arc::clone(&cached), self.begin);
            return respond::cached(&self.request, &cached, now);
        }
        let whole = || FileBody::of(source);
        respond::file(&self.request, &representation, whole, now)
    }
}
