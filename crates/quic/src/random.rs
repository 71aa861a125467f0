//! Random numbers of a connection: a generator for what it decides, and bits for what only the wire
//! shows.

use std::convert::Infallible;

use rand_chacha::ChaCha20Rng;
use rand_core::{Rng, SeedableRng, TryRng};

use crate::idle_memory::IdleMemory;

/// The random numbers of a connection.
#[derive(Debug)]
pub(crate) struct Random {
    pub(crate) generator: Generator,
    bits: RandomBits,
}

impl Random {
    /// Continues `generator`, which must be on its first stream.
    pub(crate) fn new(generator: ChaCha20Rng) -> Self {
        Self {
            generator: Generator::new(generator),
            bits: RandomBits::default(),
        }
    }

    /// A bit for what the wire shows and no decision depends on.
    pub(crate) fn bit(&mut self) -> bool {
        self.bits.draw(&self.generator)
    }

    /// Eight unpredictable bytes, as challenges need.
    pub(crate) fn challenge_data(&mut self) -> [u8; 8] {
        let mut data = [0; 8];
        self.generator.fill_bytes(&mut data);
        data
    }
}

impl IdleMemory for Random {
    fn release_idle_memory(&mut self) {
        let Self { generator, bits: _ } = self;
        generator.release_idle_memory();
    }
}

/// The generator of a connection. While the connection is idle it keeps only its position, and
/// continues from there when the next number is drawn.
#[derive(Debug)]
pub(crate) struct Generator {
    seed: [u8; 32],
    /// Words drawn until the state was released; 2^64 are never reached.
    drawn: u64,
    state: Option<Box<ChaCha20Rng>>,
}

impl Generator {
    /// Goes on where `generator` stands, which must be on its first stream.
    pub(crate) fn new(generator: ChaCha20Rng) -> Self {
        Self {
            seed: generator.get_seed(),
            drawn: generator.get_word_pos() as u64,
            state: Some(Box::new(generator)),
        }
    }

    fn state(&mut self) -> &mut ChaCha20Rng {
        self.state.get_or_insert_with(|| {
            let mut generator = ChaCha20Rng::from_seed(self.seed);
            generator.set_word_pos(self.drawn.into());
            Box::new(generator)
        })
    }

    /// Another sequence of numbers, which drawing from this one doesn't change, from its `word` on.
    fn beside(&self, stream: u64, word: u128) -> ChaCha20Rng {
        let mut other = ChaCha20Rng::from_seed(self.seed);
        other.set_stream(stream);
        other.set_word_pos(word);
        other
    }
}

impl IdleMemory for Generator {
    fn release_idle_memory(&mut self) {
        let Self {
            seed: _,
            drawn,
            state,
        } = self;
        if let Some(generator) = state.take() {
            *drawn = generator.get_word_pos() as u64;
        }
    }
}

impl TryRng for Generator {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        self.state().try_next_u32()
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        self.state().try_next_u64()
    }

    fn try_fill_bytes(&mut self, out: &mut [u8]) -> Result<(), Infallible> {
        self.state().try_fill_bytes(out)
    }
}

/// Unpredictable bits for what the wire shows and no decision depends on. They come from a stream of
/// their own, so that a connection decides the same with them and without.
#[derive(Debug, Default)]
struct RandomBits {
    bits: u64,
    refills: u32,
    left: u8,
}

impl RandomBits {
    /// The next one, from a stream beside that of `generator`.
    fn draw(&mut self, generator: &Generator) -> bool {
        if self.left == 0 {
            let word = u128::from(self.refills) * WORDS_OF_BITS;
            self.bits = generator.beside(BITS_STREAM, word).next_u64();
            self.left = u64::BITS as u8;
            self.refills += 1;
        }
        self.left -= 1;
        let bit = self.bits & 1 == 1;
        self.bits >>= 1;
        bit
    }
}

/// The stream of a connection's generator that [`RandomBits`] come from.
const BITS_STREAM: u64 = 1;
/// Words of it that make 64 bits.
const WORDS_OF_BITS: u128 = 2;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_idle_generator_skips_and_repeats_nothing() {
        let mut plain = ChaCha20Rng::from_seed([7; 32]);
        plain.next_u32();
        let mut idle = Generator::new(plain.clone());
        for round in 0..200 {
            let mut bytes = [[0; 21]; 2];
            plain.fill_bytes(&mut bytes[0][..round % 22]);
            idle.fill_bytes(&mut bytes[1][..round % 22]);
            assert_eq!(bytes[0], bytes[1]);
            if round % 3 == 0 {
                idle.release_idle_memory();
            }
            assert_eq!(plain.next_u32(), idle.next_u32());
            if round % 7 == 0 {
                idle.release_idle_memory();
            }
            assert_eq!(plain.next_u64(), idle.next_u64());
        }
    }
}
