//! The packet log: the events of every datagram on every link, and a digest of it.

use swiftwater_link::{DropReason, Ecn};
use swiftwater_units::Instant;

use crate::fabric::LinkId;

/// Detail of a [`PacketLog`].
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct LogDetail {
    /// Store every entry, not only the digest.
    pub entries: bool,
    /// Include the bytes of the datagrams in the digest. Meaningful with the null cipher only: TLS
    /// makes fresh random keys.
    pub content: bool,
}

/// Event of a datagram.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum LogFate {
    /// It entered the link and will arrive, unless a queue discipline that decides at dequeue
    /// drops it later.
    Accepted,
    /// The link dropped it.
    Dropped(DropReason),
    /// A tap dropped it.
    Tapped,
    /// It reached the end of the link.
    Arrived,
}

impl LogFate {
    fn code(self) -> u64 {
        match self {
            Self::Accepted => 0,
            Self::Dropped(DropReason::Queue) => 1,
            Self::Dropped(DropReason::Random) => 2,
            Self::Dropped(DropReason::Mtu) => 3,
            Self::Tapped => 4,
            Self::Arrived => 5,
            Self::Dropped(DropReason::Aqm) => 6,
        }
    }
}

/// One line of the log.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct LogEntry {
    /// Time.
    pub at: Instant,
    /// Link.
    pub link: LinkId,
    /// UDP payload, bytes.
    pub size: u32,
    /// ECN field.
    pub ecn: Ecn,
    /// Event.
    pub fate: LogFate,
}

/// All datagram events, as a digest and optionally as entries.
#[derive(Clone, Debug)]
pub struct PacketLog {
    detail: LogDetail,
    entries: Vec<LogEntry>,
    count: u64,
    digest: u64,
}

impl PacketLog {
    pub(crate) fn new(detail: LogDetail) -> Self {
        Self {
            detail,
            entries: Vec::new(),
            count: 0,
            digest: 0x5377_6966_7477_6174,
        }
    }

    /// The entries so far; empty unless [`LogDetail::entries`] was requested.
    pub fn entries(&self) -> &[LogEntry] {
        &self.entries
    }

    /// Number of entries, stored or not.
    pub fn len(&self) -> u64 {
        self.count
    }

    /// True if there are no entries.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// A number that is equal for two runs with the same events, and almost certainly different
    /// otherwise. Not collision-resistant.
    pub fn digest(&self) -> u64 {
        self.digest
    }

    pub(crate) fn add(&mut self, entry: LogEntry) {
        self.count += 1;
        self.mix(entry.at.as_nanos());
        let link = u64::from(entry.link.0) << 32;
        self.mix(link | u64::from(entry.size));
        self.mix(u64::from(entry.ecn.bits()) << 8 | entry.fate.code());
        if self.detail.entries {
            self.entries.push(entry);
        }
    }

    /// Adds the bytes of a datagram, if they are included.
    pub(crate) fn add_content(&mut self, data: &[u8]) {
        if !self.detail.content {
            return;
        }
        let mut words = data.chunks_exact(8);
        for word in &mut words {
            self.mix(word.iter().fold(0, |sum, &byte| sum << 8 | u64::from(byte)));
        }
        let rest = words.remainder();
        self.mix(rest.iter().fold(1, |sum, &byte| sum << 8 | u64::from(byte)));
    }

    /// One step of a multiply-and-fold hash; every step depends on all before it.
    fn mix(&mut self, word: u64) {
        let product = u128::from(self.digest ^ word) * 0x9e37_79b9_7f4a_7c15;
        let folded = (product >> 64) as u64 ^ product as u64;
        self.digest = folded
            .rotate_left(23)
            .wrapping_add(word ^ 0xd6e8_feb8_6659_fd93);
    }
}
