//! BOLA: adaptation to the buffer alone.

use super::{Adaptation, Situation};

/// BOLA-BASIC (Spiteri, Urgaonkar and Sitaraman, INFOCOM 2016): the level that maximises
/// `(V (v + γp) - Q) / S`, with the utility `v = ln(S / S_lowest)`, the nominal chunk size `S` and the
/// buffer `Q` in chunks.
///
/// `V = (Q_max - 1) / (v_top + γp)`, so that the buffer stays below its maximum `Q_max`. Where the
/// paper's algorithm downloads nothing because all values are negative, this takes the highest level:
/// the player pauses at the maximum anyway. The prediction isn't used, except that the first chunk
/// has the lowest level.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bola {
    gamma_p: f64,
}

impl Bola {
    /// With the weight `gamma_p` of a full buffer against utility, limited to 0.1 to 100; NaN is 5.
    pub fn new(gamma_p: f64) -> Self {
        let gamma_p = if gamma_p.is_nan() { 5.0 } else { gamma_p };
        Self {
            gamma_p: gamma_p.clamp(0.1, 100.0),
        }
    }
}

impl Default for Bola {
    /// The paper's γp = 5.
    fn default() -> Self {
        Self::new(5.0)
    }
}

impl Adaptation for Bola {
    fn choose(&mut self, situation: &Situation<'_>) -> usize {
        let Some(chunk) = situation.upcoming.first().map(|chunk| chunk.duration) else {
            return 0;
        };
        if situation.previous.is_none() || chunk.is_zero() {
            return 0;
        }
        let ladder = situation.ladder;
        let rate = |level| ladder.rate(level).as_bps() as f64;
        // Sizes in units of the smallest one.
        let size = |level| rate(level) / rate(0);
        let utility = |level| libm::log(size(level));
        let chunks = |time: std::time::Duration| time.as_secs_f64() / chunk.as_secs_f64();
        let room = (chunks(situation.maximum) - 1.0).max(0.0);
        let control = room / (utility(ladder.top()) + self.gamma_p);
        let buffered = chunks(situation.buffered);
        let mut best = (0, f64::NEG_INFINITY);
        for level in 0..ladder.levels() {
            let gain = control * (utility(level) + self.gamma_p) - buffered;
            let value = gain / size(level);
            if value > best.1 {
                best = (level, value);
            }
        }
        if best.1 < 0.0 { ladder.top() } else { best.0 }
    }
}
