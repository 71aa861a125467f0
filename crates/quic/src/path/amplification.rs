//! The three-times limit towards addresses that are not validated (RFC 9000, section 8).

/// How much may be sent to an address.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Amplification {
    validated: bool,
    received: u64,
    sent: u64,
}

impl Amplification {
    /// Sent bytes per received byte.
    const FACTOR: u64 = 3;

    pub(crate) fn unvalidated() -> Self {
        Self {
            validated: false,
            received: 0,
            sent: 0,
        }
    }

    pub(crate) fn validated() -> Self {
        Self {
            validated: true,
            ..Self::unvalidated()
        }
    }

    /// The limit of an address from which `received` bytes came; none if it is known to be the peer's.
    pub(crate) fn of_candidate(is_validated: bool, received: usize) -> Self {
        if is_validated {
            return Self::validated();
        }
        let mut limit = Self::unvalidated();
        limit.on_received(received);
        limit
    }

    pub(crate) fn is_validated(&self) -> bool {
        self.validated
    }

    pub(crate) fn set_validated(&mut self) {
        self.validated = true;
    }

    /// Every datagram from the address counts, decryptable or not, once the connection is known.
    pub(crate) fn on_received(&mut self, bytes: usize) {
        self.received += bytes as u64;
    }

    pub(crate) fn on_sent(&mut self, bytes: usize) {
        self.sent += bytes as u64;
    }

    /// Bytes that may be sent now.
    pub(crate) fn budget(&self) -> u64 {
        if self.validated {
            u64::MAX
        } else {
            (self.received * Self::FACTOR).saturating_sub(self.sent)
        }
    }
}
