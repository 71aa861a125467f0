//! The latency spin bit (RFC 9000, section 17.4): a square wave whose period is the round-trip time, for
//! observers on the path.

use swiftwater_units::Side;
use swiftwater_wire::ConnectionId;

use super::Address;

/// Bits that must all be 0 for a connection ID not to spin: one in 16 doesn't (section 17.4).
const QUIET_BITS: usize = 4;

/// The spin bit of a path.
#[derive(Debug)]
pub(crate) struct Spin {
    side: Side,
    /// Whether the configuration enables it.
    wanted: bool,
    /// For which destination and addresses the rest holds. Another one starts anew, so that the wave
    /// links no two of them.
    here: Option<(ConnectionId, Address)>,
    spins: bool,
    value: bool,
}

impl Spin {
    pub(crate) fn new(side: Side, wanted: bool) -> Self {
        Self {
            side,
            wanted,
            here: None,
            spins: false,
            value: false,
        }
    }

    /// The bit of the next packet, to `dst` at `address`. Where it doesn't spin it is random for each connection ID;
    /// `draw` makes random bits.
    pub(crate) fn bit(
        &mut self,
        dst: ConnectionId,
        address: Address,
        mut draw: impl FnMut() -> bool,
    ) -> bool {
        let here = Some((dst, address));
        if self.here != here {
            self.here = here;
            self.spins = self.wanted && (0..QUIET_BITS).any(|_| draw());
            self.value = !self.spins && draw();
        }
        self.value
    }

    /// A packet with the largest number so far arrived with this bit: a server reflects it, a client
    /// inverts it.
    pub(crate) fn on_newest(&mut self, bit: bool) {
        if self.spins {
            self.value = bit ^ self.side.is_client();
        }
    }
}
