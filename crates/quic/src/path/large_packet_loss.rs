//! How often large packets of a path are lost by chance: what distinguishes losses in a row from a black hole.

/// Packets after which what was counted is halved, so that the share follows the path.
const MEMORY: u16 = 512;

/// A run of losses less likely than this is not by chance, as a power of ten: 1e-6 for the run that begins with any given packet.
const LEAST_LIKELY: f64 = -6.0;

/// The most losses in a row that are waited for, however lossy the path is.
const MOST: u8 = 12;

/// Fates of packets that are larger than every path must carry, those in question left out.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LargePacketLoss {
    acked: u16,
    lost: u16,
}

impl LargePacketLoss {
    /// So many were acknowledged.
    pub(crate) fn on_acked(&mut self, count: u16) {
        self.acked = self.acked.saturating_add(count);
        self.fade();
    }

    /// So many were lost, and later ones arrived.
    pub(crate) fn on_lost(&mut self, count: u16) {
        self.lost = self.lost.saturating_add(count);
        self.fade();
    }

    fn fade(&mut self) {
        if self.acked.saturating_add(self.lost) > MEMORY {
            self.acked /= 2;
            self.lost /= 2;
        }
    }

    /// Rounds in a row in which all large packets are lost that are not by chance; `least` on paths that lose few.
    pub(crate) fn unlikely_rounds(self, least: u8) -> u8 {
        let all = f64::from(self.acked) + f64::from(self.lost);
        if self.lost == 0 || all == 0.0 {
            return least;
        }
        let share = f64::from(self.lost) / all;
        let rounds = (LEAST_LIKELY / share.log10()).ceil();
        // Not a number, or infinite, if all were lost: then as many as there may be.
        let rounds = if rounds.is_finite() {
            rounds
        } else {
            f64::from(MOST)
        };
        (rounds.clamp(0.0, f64::from(MOST)) as u8).max(least)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_more_are_lost_the_more_rounds() {
        let rounds = |acked, lost| {
            let mut loss = LargePacketLoss::default();
            loss.on_acked(acked);
            loss.on_lost(lost);
            loss.unlikely_rounds(3)
        };
        assert_eq!(rounds(0, 0), 3);
        assert_eq!(rounds(400, 0), 3);
        assert_eq!(rounds(396, 4), 3);
        assert_eq!(rounds(360, 40), 6);
        assert_eq!(rounds(280, 120), 12);
        assert_eq!(rounds(0, 40), 12);
    }

    #[test]
    fn the_share_follows_the_path() {
        let mut loss = LargePacketLoss::default();
        for _ in 0..1000 {
            loss.on_acked(9);
            loss.on_lost(1);
        }
        assert_eq!(loss.unlikely_rounds(3), 6);
        for _ in 0..10 {
            loss.on_acked(400);
        }
        assert_eq!(loss.unlikely_rounds(3), 3);
    }
}
