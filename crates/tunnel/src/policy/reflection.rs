//! The limit on what is sent to a target that has not answered: else a proxy hides who floods it.

/// What may be sent to a target before its first datagram.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ReflectionLimit {
    /// Datagrams; default 10.
    pub datagrams: u32,
    /// Bytes of UDP payload; default 15,000.
    pub bytes: u64,
}

impl Default for ReflectionLimit {
    fn default() -> Self {
        Self {
            datagrams: 10,
            bytes: 15_000,
        }
    }
}

/// What was sent to one target.
#[derive(Clone, Copy, Debug)]
pub struct Reflection {
    limit: ReflectionLimit,
    datagrams: u32,
    bytes: u64,
    has_answered: bool,
}

impl Reflection {
    /// Nothing was sent so far.
    pub fn new(limit: ReflectionLimit) -> Self {
        Self {
            limit,
            datagrams: 0,
            bytes: 0,
            has_answered: false,
        }
    }

    /// The target has sent a datagram: it wants the traffic.
    pub fn on_answer(&mut self) {
        self.has_answered = true;
    }

    /// True if a datagram of `len` bytes may be sent, which is then counted.
    pub fn admit(&mut self, len: usize) -> bool {
        if self.has_answered {
            return true;
        }
        let bytes = self.bytes + len as u64;
        let admitted = self.datagrams < self.limit.datagrams && bytes <= self.limit.bytes;
        if admitted {
            self.datagrams += 1;
            self.bytes = bytes;
        }
        admitted
    }
}
