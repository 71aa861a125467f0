//! Restores lost packets from parity: linear equations over the missing packets.

use std::collections::BTreeMap;

use super::code::{DELAY_FRAMES, Parity, Symbol};
use super::field::{Elements, inverse, multiply};

/// Number of frames stored before the newest: parity covers the previous [`DELAY_FRAMES`], and a
/// retransmitted packet may arrive somewhat later.
const KEPT_FRAMES: u64 = 4 * DELAY_FRAMES;
/// Most equations stored; beyond it, the oldest are dropped.
const MAX_EQUATIONS: usize = 256;

/// State of a packet: its bytes, or (without payload) only its presence.
type Known = Option<Vec<u8>>;

/// The decoder of the code.
#[derive(Debug, Default)]
pub struct StreamDecoder {
    newest: u64,
    known: BTreeMap<Symbol, Known>,
    equations: Vec<Equation>,
}

/// A parity packet with unknown packets.
#[derive(Clone, Debug)]
struct Equation {
    frame: u64,
    terms: Vec<(Symbol, u16)>,
    /// Its content and length; `None` in sessions without payload.
    content: Option<(Elements, usize)>,
}

impl StreamDecoder {
    /// A decoder without packets.
    pub fn new() -> Self {
        Self::default()
    }

    /// A packet of a frame was received; `content` is `None` in sessions without payload. Returns
    /// the packets restored by it, with their contents padded with zeros.
    pub fn on_source(&mut self, symbol: Symbol, content: Known) -> Vec<(Symbol, Known)> {
        if self.advance(symbol.frame) && self.known.insert(symbol, content).is_none() {
            self.solve()
        } else {
            Vec::new()
        }
    }

    /// A parity packet was received; see [`StreamDecoder::on_source`].
    pub fn on_parity(&mut self, parity: &Parity, content: Known) -> Vec<(Symbol, Known)> {
        if !self.advance(parity.window.frame) {
            return Vec::new();
        }
        let content = content.map(|bytes| {
            let len = bytes.len() - bytes.len() % 2;
            (Elements::new(&bytes, len), len)
        });
        if self.equations.len() == MAX_EQUATIONS {
            self.equations.remove(0);
        }
        self.equations.push(Equation {
            frame: parity.window.frame,
            terms: parity.terms().collect(),
            content,
        });
        self.solve()
    }

    /// False if the frame is too old to be useful.
    fn advance(&mut self, frame: u64) -> bool {
        if frame > self.newest {
            self.newest = frame;
            let oldest = self.oldest();
            let first = Symbol {
                frame: oldest,
                packet: 0,
            };
            self.known = self.known.split_off(&first);
            self.equations
                .retain(|equation| equation.frame >= oldest + DELAY_FRAMES);
        }
        frame >= self.oldest()
    }

    fn oldest(&self) -> u64 {
        self.newest.saturating_sub(KEPT_FRAMES)
    }

    /// Gauss-Jordan elimination over the unknown packets; determined ones become known.
    fn solve(&mut self) -> Vec<(Symbol, Known)> {
        let known = &self.known;
        for equation in &mut self.equations {
            equation.substitute(known);
        }
        self.equations.retain(|equation| !equation.terms.is_empty());
        // An equation with more unknown packets than there are equations may still determine some
        // of them together with others, which requires elimination.
        let mut rows = self.equations.clone();
        reduce(&mut rows);
        let mut restored = Vec::new();
        for row in rows {
            if let [(symbol, coefficient)] = row.terms[..] {
                let content = row.content.map(|(mut content, len)| {
                    content.scale(inverse(coefficient));
                    content.bytes(len)
                });
                self.known.insert(symbol, content.clone());
                restored.push((symbol, content));
            }
        }
        if !restored.is_empty() {
            let known = &self.known;
            for equation in &mut self.equations {
                equation.substitute(known);
            }
            self.equations.retain(|equation| !equation.terms.is_empty());
        }
        restored
    }
}

impl Equation {
    /// Moves known packets to the constant side.
    fn substitute(&mut self, known: &BTreeMap<Symbol, Known>) {
        let content = &mut self.content;
        self.terms.retain(|(symbol, coefficient)| {
            let Some(value) = known.get(symbol) else {
                return true;
            };
            if let (Some((content, len)), Some(bytes)) = (content.as_mut(), value) {
                content.add_scaled(*coefficient, &Elements::new(bytes, *len));
            }
            false
        });
    }

    fn coefficient(&self, symbol: Symbol) -> Option<u16> {
        let at = self.terms.binary_search_by_key(&symbol, |term| term.0);
        at.ok().map(|at| self.terms[at].1)
    }

    fn scale(&mut self, factor: u16) {
        for term in &mut self.terms {
            term.1 = multiply(term.1, factor);
        }
        if let Some((content, _)) = &mut self.content {
            content.scale(factor);
        }
    }

    /// Adds `factor` times another equation.
    fn add_scaled(&mut self, factor: u16, other: &Self) {
        let mut terms: BTreeMap<Symbol, u16> = self.terms.iter().copied().collect();
        for &(symbol, coefficient) in &other.terms {
            *terms.entry(symbol).or_insert(0) ^= multiply(coefficient, factor);
        }
        self.terms = terms.into_iter().filter(|term| term.1 != 0).collect();
        if let (Some((content, len)), Some((more, more_len))) = (&mut self.content, &other.content)
        {
            if more_len > len {
                *content = Elements::new(&content.bytes(*len), *more_len);
                *len = *more_len;
            }
            let more = Elements::new(&more.bytes(*more_len), *len);
            content.add_scaled(factor, &more);
        }
    }
}

/// Brings equations to reduced row echelon form.
fn reduce(rows: &mut [Equation]) {
    for pivot in 0..rows.len() {
        // The leading term of this row after all earlier pivots were removed from it.
        let Some(&(symbol, coefficient)) = rows[pivot].terms.first() else {
            continue;
        };
        rows[pivot].scale(inverse(coefficient));
        let row = rows[pivot].clone();
        for (other, equation) in rows.iter_mut().enumerate() {
            if other != pivot
                && let Some(factor) = equation.coefficient(symbol)
            {
                equation.add_scaled(factor, &row);
            }
        }
    }
}
