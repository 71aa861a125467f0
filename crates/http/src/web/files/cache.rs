//! Contents of small files in memory, with the fields of their responses. Takes the time as an argument; no I/O.

use std::fmt;
use std::hash::Hash;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use quick_cache::sync::{Cache, DefaultLifecycle};
use quick_cache::{DefaultHashBuilder, Equivalent, OptionsBuilder, Weighter};

use super::body::READ_AT_ONCE;
use super::encodings::Coding;
use super::representation::Representation;
use super::version::Version;

/// Bytes that an entry takes besides path and content: fields, keys, the cache's own.
const OVERHEAD: u64 = 2048;

/// Parts of a cache with locks of their own; each takes an equal part of the memory.
const SHARDS: usize = 16;

/// Contents of small files (up to 16 KiB), for all services whose [`FileOptions`](super::FileOptions) have a clone of
/// it. It holds no file open.
///
/// - A content that was found to be that of the file is served without a look at the file for [`validity`]; then the
///   file is opened again as without a cache, with all checks of its path, and read if it is another file, or its
///   size or one of its times differs. So a change, replacement or removal is seen after [`validity`] at the latest.
/// - Content and fields are of one version of the file: it is kept only if the version was the same before and after
///   it was read, and if its last change was at least 3 s ago, so that a further one shows in its times. The clocks
///   of network file systems must agree with the server's to that degree.
/// - Missing files, redirects, listings and fallback pages are not kept.
/// - Memory is bounded; what was not requested again is dropped first (S3-FIFO).
///
/// [`validity`]: FileCache::DEFAULT_VALIDITY
#[derive(Clone)]
pub struct FileCache {
    shared: Arc<Shared>,
}

struct Shared {
    entries: Cache<Key, Arc<CachedFile>, Weight>,
    validity: Duration,
    /// Times are counted from here.
    epoch: Instant,
    /// Number of the next site.
    next_site: AtomicU64,
}

impl FileCache {
    /// Memory of a server's cache unless it is configured, bytes.
    pub const DEFAULT_BYTES: u64 = 64 << 20;

    /// How long content is served without a look at its file, unless it is configured.
    pub const DEFAULT_VALIDITY: Duration = Duration::from_secs(1);

    /// A cache of at most `bytes` of memory, by estimate, whose contents are `validity` old at most.
    pub fn new(bytes: u64, validity: Duration) -> Self {
        let largest = READ_AT_ONCE + OVERHEAD;
        let entries = usize::try_from(bytes / (largest / 2)).unwrap_or(usize::MAX);
        let mut options = OptionsBuilder::new();
        options
            .weight_capacity(bytes)
            .estimated_items_capacity(entries.clamp(16, 1 << 20))
            .shards(SHARDS);
        let entries = match options.build() {
            Ok(options) => Cache::with_options(
                options,
                Weight,
                DefaultHashBuilder::default(),
                DefaultLifecycle::default(),
            ),
            // Both values are set above.
            Err(_) => Cache::with_weighter(16, bytes, Weight),
        };
        Self {
            shared: Arc::new(Shared {
                entries,
                validity,
                epoch: Instant::now(),
                next_site: AtomicU64::new(0),
            }),
        }
    }

    /// Files in memory.
    pub fn files(&self) -> usize {
        self.shared.entries.len()
    }

    /// Memory in use, bytes, by estimate.
    pub fn bytes(&self) -> u64 {
        self.shared.entries.weight()
    }

    /// The part of a further site.
    pub(super) fn site(&self) -> SiteCache {
        SiteCache {
            site: self.shared.next_site.fetch_add(1, Ordering::Relaxed),
            shared: Arc::clone(&self.shared),
        }
    }
}

impl fmt::Debug for FileCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileCache")
            .field("files", &self.files())
            .field("bytes", &self.bytes())
            .field("validity", &self.shared.validity)
            .finish()
    }
}

/// What a file is known by: its version, and the coding if it is a copy.
pub(super) type Identity = (Version, Option<Coding>);

/// A content in memory.
#[derive(Debug)]
pub(super) struct CachedFile {
    identity: Identity,
    pub(super) representation: Representation,
    pub(super) content: Bytes,
    /// When it was last found to be that of the file: nanoseconds since the cache's epoch.
    validated: AtomicU64,
}

impl CachedFile {
    /// `content` of the file `identity`.
    pub(super) fn new(identity: Identity, representation: Representation, content: Bytes) -> Self {
        Self {
            identity,
            representation,
            content,
            validated: AtomicU64::new(0),
        }
    }
}

/// The entries of one site.
pub(super) struct SiteCache {
    shared: Arc<Shared>,
    site: u64,
}

impl SiteCache {
    /// What is known for the decoded `path` and a client that accepts `codings` (a number for them), if it was
    /// validated recently.
    pub(super) fn get(&self, path: &str, codings: u8, now: Instant) -> Option<Arc<CachedFile>> {
        let cached = self.shared.entries.get(&self.wanted(path, codings))?;
        let validated = Duration::from_nanos(cached.validated.load(Ordering::Relaxed));
        let age = self.time(now).saturating_sub(validated);
        (age < self.shared.validity).then_some(cached)
    }

    /// What is known, if that is the file `identity`, which was opened after `now`: from now on it is valid again.
    pub(super) fn revalidate(
        &self,
        path: &str,
        codings: u8,
        identity: Identity,
        now: Instant,
    ) -> Option<Arc<CachedFile>> {
        let cached = self.shared.entries.get(&self.wanted(path, codings))?;
        if cached.identity != identity {
            return None;
        }
        self.mark(&cached, now);
        Some(cached)
    }

    /// Keeps `cached`, whose file was opened after `now`.
    pub(super) fn insert(&self, path: &str, codings: u8, cached: Arc<CachedFile>, now: Instant) {
        self.mark(&cached, now);
        let key = Key {
            site: self.site,
            codings,
            path: path.into(),
        };
        self.shared.entries.insert(key, cached);
    }

    fn mark(&self, cached: &CachedFile, now: Instant) {
        let time = u64::try_from(self.time(now).as_nanos()).unwrap_or(u64::MAX);
        cached.validated.fetch_max(time, Ordering::Relaxed);
    }

    fn time(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.shared.epoch)
    }

    fn wanted<'a>(&self, path: &'a str, codings: u8) -> Wanted<'a> {
        Wanted {
            site: self.site,
            codings,
            path,
        }
    }
}

impl fmt::Debug for SiteCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SiteCache")
            .field("site", &self.site)
            .finish_non_exhaustive()
    }
}

/// The name of an entry.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Key {
    site: u64,
    codings: u8,
    path: Box<str>,
}

/// A [`Key`] that borrows its path.
#[derive(Hash)]
struct Wanted<'a> {
    site: u64,
    codings: u8,
    path: &'a str,
}

impl Equivalent<Key> for Wanted<'_> {
    fn equivalent(&self, key: &Key) -> bool {
        self.site == key.site && self.codings == key.codings && self.path == &*key.path
    }
}

/// The memory of an entry, bytes.
#[derive(Clone)]
struct Weight;

impl Weighter<Key, Arc<CachedFile>> for Weight {
    fn weight(&self, key: &Key, cached: &Arc<CachedFile>) -> u64 {
        key.path.len() as u64 + cached.content.len() as u64 + OVERHEAD
    }
}
