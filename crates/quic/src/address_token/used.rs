//! Which address validation tokens have been used: none is accepted twice (RFC 9000, section 8.1.4).
//!
//! Two Bloom filters of fixed size follow each other as generations. Tokens are recorded in the
//! current one and looked up in both. Once the current one is full, or older than tokens live, it
//! becomes the previous one, and the one before it is discarded. All tokens of a discarded generation
//! were issued before its last use; tokens that old count as used from then on. So a used token is
//! never accepted again, however many there are, and the price of too little memory is that unused
//! old tokens validate nothing.

use std::hash::{DefaultHasher, Hasher};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use std::{fmt, mem};

use swiftwater_units::{ByteCount, Instant};

use crate::crypto::EndpointKey;

/// Bits of a generation for each token that it holds.
const BITS_PER_TOKEN: u64 = 24;

/// Bits that each token sets; ln 2 times [`BITS_PER_TOKEN`] would be optimal.
const HASHES: u64 = 16;

/// The record of the address validation tokens, of `NEW_TOKEN` and Retry, that clients have used.
///
/// A second use of a token validates no address: the client is served as if it had sent none. Endpoints
/// that share an address and a key share the record; clones of one
/// [`EndpointConfig`](crate::EndpointConfig) do.
///
/// Its memory is fixed, and taken when the first token is used. In 3 bytes for each token it holds two
/// generations, [`UsedTokens::generation_capacity`] tokens each. A token that was never used is taken for
/// a used one with a probability of [`UsedTokens::FALSE_POSITIVE_RATE`] at most: its client is then subject
/// to the anti-amplification limit, or gets a Retry where that is required. After two generations have been filled, unused tokens that
/// were issued before the older of them ended count as used too.
pub struct UsedTokens {
    memory: ByteCount,
    generations: Mutex<Generations>,
}

impl UsedTokens {
    /// The memory of [`EndpointConfig::new`](crate::EndpointConfig::new): 2 MiB, which is 349,525 tokens in
    /// each generation.
    pub const DEFAULT_MEMORY: ByteCount = ByteCount::new(2 << 20);

    /// Least memory: 64 KiB, which is 10,922 tokens in each generation.
    pub const MIN_MEMORY: ByteCount = ByteCount::new(64 << 10);

    /// Most memory: 4 GiB.
    pub const MAX_MEMORY: ByteCount = ByteCount::new(4 << 30);

    /// The probability that a token that was never used is taken for a used one, at most: 2 in 100,000, when
    /// both generations are full. (1 - e^(-16/24))^16 is 1 in 100,000 for each.
    pub const FALSE_POSITIVE_RATE: f64 = 2.0e-5;

    /// An empty record of `memory`; values out of range ([`UsedTokens::MIN_MEMORY`],
    /// [`UsedTokens::MAX_MEMORY`]) count as the nearest in it.
    pub fn new(memory: ByteCount) -> Self {
        let memory = memory.clamp(Self::MIN_MEMORY, Self::MAX_MEMORY);
        Self {
            memory,
            generations: Mutex::default(),
        }
    }

    /// Memory for both generations, once a token has been used.
    pub const fn memory(&self) -> ByteCount {
        self.memory
    }

    /// Tokens that one generation holds.
    pub const fn generation_capacity(&self) -> u64 {
        self.generation_bits() / BITS_PER_TOKEN
    }

    const fn generation_bits(&self) -> u64 {
        self.memory.get() / 2 / WORD_BYTES * WORD_BYTES * 8
    }

    /// True if a token that was issued at `issued` has been used, or may have been.
    pub(super) fn contains(&self, issued: Instant, token: TokenHash) -> bool {
        self.lock().contains(issued, token)
    }

    /// Records the use of a token that was issued at `issued`; false if it has been used before, or may
    /// have been. `lifetime`: how long tokens are valid.
    pub(super) fn insert(
        &self,
        now: Instant,
        lifetime: Duration,
        issued: Instant,
        token: TokenHash,
    ) -> bool {
        let mut generations = self.lock();
        if generations.contains(issued, token) {
            return false;
        }
        let current = &generations.current;
        let full = current.tokens >= self.generation_capacity();
        if full || current.is_older_than(lifetime, now) {
            generations.rotate();
        }
        let current = &mut generations.current;
        if current.words.is_empty() {
            current.words = vec![0; (self.generation_bits() / 64) as usize].into();
        }
        current.insert(now, token);
        true
    }

    fn lock(&self) -> MutexGuard<'_, Generations> {
        // Nothing in here panics while the lock is held.
        self.generations
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for UsedTokens {
    /// A record of [`UsedTokens::DEFAULT_MEMORY`].
    fn default() -> Self {
        Self::new(Self::DEFAULT_MEMORY)
    }
}

impl fmt::Debug for UsedTokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UsedTokens")
            .field("memory", &self.memory)
            .finish_non_exhaustive()
    }
}

/// Bytes of a word of a Bloom filter.
const WORD_BYTES: u64 = 8;

#[derive(Default)]
struct Generations {
    current: Generation,
    previous: Generation,
    /// Last use of a token in a generation that was discarded.
    forgotten_until: Option<Instant>,
}

impl Generations {
    fn contains(&self, issued: Instant, token: TokenHash) -> bool {
        self.forgotten_until.is_some_and(|until| issued <= until)
            || self.current.contains(token)
            || self.previous.contains(token)
    }

    /// Discards the previous generation and begins a new one.
    fn rotate(&mut self) {
        if let Some((_, last)) = self.previous.used_between {
            let until = self.forgotten_until.get_or_insert(last);
            *until = last.max(*until);
        }
        mem::swap(&mut self.current, &mut self.previous);
        self.current.clear();
    }
}

/// A Bloom filter of tokens.
#[derive(Default)]
struct Generation {
    /// Empty until the first token is recorded.
    words: Box<[u64]>,
    /// Tokens that were recorded.
    tokens: u64,
    /// First and last use of these.
    used_between: Option<(Instant, Instant)>,
}

impl Generation {
    fn contains(&self, token: TokenHash) -> bool {
        let is_set = |(word, mask): (usize, u64)| self.words[word] & mask != 0;
        !self.words.is_empty() && token.bits(self.words.len()).all(is_set)
    }

    fn insert(&mut self, now: Instant, token: TokenHash) {
        for (word, mask) in token.bits(self.words.len()) {
            self.words[word] |= mask;
        }
        self.tokens += 1;
        let (first, last) = self.used_between.get_or_insert((now, now));
        *first = now.min(*first);
        *last = now.max(*last);
    }

    /// True if a token was recorded at least `age` ago.
    fn is_older_than(&self, age: Duration, now: Instant) -> bool {
        self.used_between
            .is_some_and(|(first, _)| now.saturating_since(first) >= age)
    }

    fn clear(&mut self) {
        self.words.fill(0);
        self.tokens = 0;
        self.used_between = None;
    }
}

/// The hash by which a Bloom filter identifies a token.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct TokenHash([u64; 2]);

impl TokenHash {
    #[cfg(test)]
    pub(super) const fn new(halves: [u64; 2]) -> Self {
        Self(halves)
    }

    /// Index and mask of the bits of the token in a filter of `words` words (double hashing, Kirsch and
    /// Mitzenmacher, 2006).
    fn bits(self, words: usize) -> impl Iterator<Item = (usize, u64)> {
        let Self([start, step]) = self;
        let total = words as u128 * 64;
        (0..HASHES).map(move |n| {
            let point = start.wrapping_add(n.wrapping_mul(step | 1));
            let bit = ((u128::from(point) * total) >> 64) as usize;
            (bit / 64, 1 << (bit % 64))
        })
    }
}

/// Hashes tokens with a key, so that a client cannot collect tokens that share bits with those of others.
#[derive(Clone)]
pub(super) struct TokenHasher {
    keys: [[u8; 16]; 2],
}

impl TokenHasher {
    /// A hasher for the tokens of an endpoint's key.
    pub(super) fn new(key: &dyn EndpointKey) -> Self {
        /// The last byte sets these inputs apart from those of connection IDs, which have at most 20 there.
        const LABEL: [u8; 16] = *b"used tokens \0\0\0\xff";
        let mut keys = [[0; 16]; 2];
        for (n, part) in keys.as_flattened_mut().chunks_exact_mut(4).enumerate() {
            let mut input = LABEL;
            input[14] = n as u8;
            part.copy_from_slice(&key.mask(&input));
        }
        Self { keys }
    }

    /// The hash of a token.
    pub(super) fn hash(&self, token: &[u8]) -> TokenHash {
        TokenHash(self.keys.map(|key| {
            let mut hasher = DefaultHasher::new();
            hasher.write(&key);
            hasher.write(token);
            hasher.finish()
        }))
    }
}

impl fmt::Debug for TokenHasher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenHasher").finish_non_exhaustive()
    }
}
