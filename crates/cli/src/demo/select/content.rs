//! What is requested: objects of a website, and the clicks of somebody who browses it.

use std::time::Duration;

use bytes::Bytes;

use crate::demo::random_numbers::RandomNumbers;
use crate::digest::sha256;

/// Objects of the website.
const OBJECTS: usize = 64;

/// Sizes of objects, bytes: log-normal, within bounds.
const MEDIAN: f64 = 9_000.0;
const SIGMA: f64 = 0.8;
const BOUNDS: (f64, f64) = (2_000.0, 50_000.0);

/// Requests of a click, sent at once.
const PER_CLICK: usize = 6;

/// Time between two clicks, seconds: uniform.
const BETWEEN: (f64, f64) = (0.7, 1.7);

/// An object of the website.
#[derive(Clone, Debug)]
pub struct Object {
    /// Its path on the server.
    pub path: String,
    /// Its content.
    pub content: Bytes,
    /// The hash of its content.
    pub sha256: [u8; 32],
}

/// A click of the user.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Click {
    /// Since the start of the session.
    pub at: Duration,
    /// The objects that are requested.
    pub objects: Vec<usize>,
}

/// A website, and how it is browsed.
#[derive(Clone, Debug)]
pub struct Browsing {
    /// The objects.
    pub objects: Vec<Object>,
    /// The clicks, in the order of time.
    pub clicks: Vec<Click>,
}

impl Browsing {
    /// A session of this length.
    pub fn generate(session: Duration, seed: u64) -> Self {
        let mut draws = RandomNumbers::new(seed);
        let objects = (0..OBJECTS).map(|nth| {
            let size = draws.log_normal(MEDIAN, SIGMA).clamp(BOUNDS.0, BOUNDS.1);
            let content = RandomNumbers::new(draws.number()).bytes(size as usize);
            Object {
                path: format!("/object/{nth}"),
                sha256: sha256(&content),
                content: content.into(),
            }
        });
        let objects = objects.collect();
        let mut clicks = Vec::new();
        let mut at = Duration::ZERO;
        while at < session {
            let wanted = (0..PER_CLICK).map(|_| (draws.number() % OBJECTS as u64) as usize);
            let objects = wanted.collect();
            clicks.push(Click { at, objects });
            let pause = BETWEEN.0 + (BETWEEN.1 - BETWEEN.0) * draws.unit();
            at += Duration::from_secs_f64(pause);
        }
        Self { objects, clicks }
    }

    /// The content at `path`.
    pub fn content(&self, path: &str) -> Option<Bytes> {
        let nth: usize = path.strip_prefix("/object/")?.parse().ok()?;
        self.objects.get(nth).map(|object| object.content.clone())
    }

    /// Requests of the whole session.
    pub fn requests(&self) -> usize {
        self.clicks.iter().map(|click| click.objects.len()).sum()
    }
}
