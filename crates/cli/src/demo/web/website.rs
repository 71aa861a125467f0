//! The load: a generated page with all its objects, and the API calls that its script makes
//! meanwhile.
//!
//! The page is one of about 2 MB in 100 objects. Its HTML references styles, scripts and most images;
//! styles reference fonts; scripts reference further scripts, and those the images further down. Objects
//! that a browser needs before it can show the page are critical.

use std::time::Duration;

use bytes::Bytes;

use crate::demo::random_numbers::RandomNumbers;

/// Mean time between calls of the API, seconds.
const CALL_GAP: f64 = 0.010;

/// Sizes of answers of the API, bytes.
const CALL_SIZES: (f64, f64) = (1_000.0, 4_000.0);

/// Priorities as sent by browsers (RFC 9218): blocking objects first, images last and incremental.
mod urgency {
    pub(super) const DOCUMENT: &str = "u=0";
    pub(super) const SCRIPT: &str = "u=1";
    pub(super) const IMAGE: &str = "u=3, i";
}

/// The priority of calls of the API.
pub const CALL_PRIORITY: &str = urgency::SCRIPT;

/// A part of the page.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Object {
    /// Its path on the server.
    pub path: String,
    /// Its content.
    pub content: Bytes,
    /// The `priority` field of its request (RFC 9218).
    pub priority: &'static str,
    /// Whether the page can't be shown without it.
    pub critical: bool,
    /// The object that references it; `None` for the page's HTML.
    pub named_by: Option<usize>,
}

/// A call of the API.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Call {
    /// When it is made, after the page's HTML was received.
    pub at: Duration,
    /// Its path on the server.
    pub path: String,
    /// Its content.
    pub content: Bytes,
}

/// A page and its API calls.
#[derive(Clone, Debug)]
pub struct Website {
    /// The objects, the HTML first.
    pub objects: Vec<Object>,
    /// The calls, in order of time.
    pub calls: Vec<Call>,
}

/// Size parameters.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Extent {
    /// Small images.
    pub images: usize,
    /// Sizes of the larger images, bytes.
    pub large: [usize; 2],
    /// Calls of the API.
    pub calls: usize,
}

impl Extent {
    /// A page of about 2 MB.
    pub const FULL: Self = Self {
        images: 84,
        large: [320_000, 180_000],
        calls: 40,
    };

    /// A smaller page for `--quick`.
    pub const QUICK: Self = Self {
        images: 24,
        large: [80_000, 40_000],
        calls: 10,
    };
}

impl Website {
    /// The website generated from this seed.
    pub fn generate(extent: Extent, seed: u64) -> Self {
        let mut maker = Maker::new(seed);
        let html = maker.object("index.html", 28_000, urgency::DOCUMENT, true, None);
        let styles = [18_000, 32_000, 12_000]
            .map(|size| maker.object("style.css", size, urgency::DOCUMENT, true, Some(html)));
        let programs = [90_000, 45_000, 30_000, 22_000, 15_000]
            .map(|size| maker.object("program.js", size, urgency::SCRIPT, true, Some(html)));
        for size in [24_000, 26_000] {
            maker.object("font.woff2", size, urgency::SCRIPT, true, Some(styles[0]));
        }
        let further = [40_000, 18_000, 12_000]
            .map(|size| maker.object("part.js", size, urgency::SCRIPT, true, Some(programs[0])));
        for size in extent.large {
            maker.object("large.jpg", size, urgency::IMAGE, false, Some(html));
        }
        for nth in 0..extent.images {
            let size = maker.draws.log_normal(11_000.0, 0.8).clamp(800.0, 60_000.0);
            let named_by = if nth % 2 == 0 { html } else { further[0] };
            maker.object(
                "small.jpg",
                size as usize,
                urgency::IMAGE,
                false,
                Some(named_by),
            );
        }
        maker.calls(extent.calls);
        maker.website
    }

    /// The content at `path`.
    pub fn content(&self, path: &str) -> Option<Bytes> {
        let objects = self
            .objects
            .iter()
            .map(|object| (&object.path, &object.content));
        let calls = self.calls.iter().map(|call| (&call.path, &call.content));
        let mut all = objects.chain(calls);
        all.find(|(known, _)| *known == path)
            .map(|(_, content)| content.clone())
    }

    /// The objects referenced by object `nth`.
    pub fn named_by(&self, nth: usize) -> impl Iterator<Item = usize> {
        let objects = self.objects.iter().enumerate();
        objects.filter_map(move |(child, object)| (object.named_by == Some(nth)).then_some(child))
    }

    /// Bytes of all objects.
    pub fn page_bytes(&self) -> u64 {
        let sizes = self
            .objects
            .iter()
            .map(|object| object.content.len() as u64);
        sizes.sum()
    }
}

/// A website under construction.
struct Maker {
    draws: RandomNumbers,
    website: Website,
}

impl Maker {
    fn new(seed: u64) -> Self {
        Self {
            draws: RandomNumbers::new(seed),
            website: Website {
                objects: Vec::new(),
                calls: Vec::new(),
            },
        }
    }

    fn content(&mut self, size: usize) -> Bytes {
        // Separate seeds: contents must not depend on the sizes of others.
        RandomNumbers::new(self.draws.number()).bytes(size).into()
    }

    fn object(
        &mut self,
        name: &str,
        size: usize,
        priority: &'static str,
        critical: bool,
        named_by: Option<usize>,
    ) -> usize {
        let nth = self.website.objects.len();
        let content = self.content(size);
        self.website.objects.push(Object {
            path: format!("/{nth}/{name}"),
            content,
            priority,
            critical,
            named_by,
        });
        nth
    }

    fn calls(&mut self, count: usize) {
        let mut at = 0.0;
        for nth in 0..count {
            at += self.draws.exponential(CALL_GAP);
            let (least, most) = CALL_SIZES;
            let size = least + (most - least) * self.draws.unit();
            let content = self.content(size as usize);
            self.website.calls.push(Call {
                at: Duration::from_secs_f64(at),
                path: format!("/api/{nth}"),
                content,
            });
        }
    }
}
