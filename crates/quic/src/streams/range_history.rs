//! The history of one stream range that is sent more than once: its copies, and which of them are in
//! flight.

use swiftwater_units::{Instant, PacketNumber, PathId};

use crate::frame_writer::Fate;
use crate::observe::Purpose;
use crate::policy::Priority;
use crate::policy::RepairCause;

/// The packet that carried a frame.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Carrier {
    pub(crate) path: PathId,
    pub(crate) number: PacketNumber,
    pub(crate) sent_at: Instant,
}

/// The fate of a packet that carried stream data.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CarrierFate {
    pub(crate) now: Instant,
    pub(crate) carrier: Carrier,
    pub(crate) fate: Fate,
    /// A range is retransmitted only when no copy of it is in flight; else the loss of each copy brings
    /// a retransmission.
    pub(crate) live_copies_defer_retransmission: bool,
}

impl CarrierFate {
    pub(super) fn cause(&self) -> RepairCause {
        match self.fate {
            Fate::Probed => RepairCause::Probe,
            Fate::Lost | Fate::Acked => RepairCause::Loss,
        }
    }
}

/// One copy after the first transmission.
#[derive(Clone, Copy, Debug)]
pub(super) struct CopySent {
    pub(super) path: PathId,
    pub(super) number: PacketNumber,
    pub(super) sent_at: Instant,
    pub(super) replica: bool,
    /// Retransmissions so far, this one included.
    pub(super) round: u32,
    /// Its packet is in flight.
    pub(super) is_live: bool,
}

/// How a range was sent again.
#[derive(Clone, Copy, Debug)]
pub(super) struct RangeUse {
    pub(super) purpose: Purpose,
    pub(super) priority: Priority,
    pub(super) deadline: Option<Instant>,
}

/// What happened to one range.
#[derive(Clone, Debug)]
pub(super) struct RangeHistory {
    pub(super) len: u32,
    /// The packet of the first transmission is in flight.
    pub(super) original_is_live: bool,
    pub(super) first_sent_at: Option<Instant>,
    /// `None` while the range is not known to be lost.
    pub(super) lost_at: Option<Instant>,
    pub(super) first_retransmitted_at: Option<Instant>,
    /// It waits to be retransmitted, for this reason.
    pub(super) pending: Option<RepairCause>,
    pub(super) retransmissions: u32,
    pub(super) replicas: u32,
    /// In the order in which they were sent.
    pub(super) copies: Vec<CopySent>,
}

impl RangeHistory {
    pub(super) fn new(len: u32) -> Self {
        Self {
            len,
            original_is_live: true,
            first_sent_at: None,
            lost_at: None,
            first_retransmitted_at: None,
            pending: None,
            retransmissions: 0,
            replicas: 0,
            copies: Vec::new(),
        }
    }

    /// The packet of one copy was declared lost. A copy that isn't known is the first transmission.
    pub(super) fn on_copy_lost(&mut self, carrier: &Carrier) {
        let is_it = |copy: &&mut CopySent| copy.is_in(carrier);
        match self.copies.iter_mut().find(is_it) {
            Some(copy) => copy.is_live = false,
            None => self.original_is_live = false,
        }
    }

    /// True if a retransmission is in flight on `path`.
    pub(super) fn is_retransmitted_on(&self, path: PathId) -> bool {
        let is_it = |copy: &CopySent| copy.is_live && !copy.replica && copy.path == path;
        self.copies.iter().any(is_it)
    }

    /// True if a copy is in flight.
    pub(super) fn has_live_copy(&self) -> bool {
        self.original_is_live || self.copies.iter().any(|copy| copy.is_live)
    }
}

impl CopySent {
    pub(super) fn is_in(&self, carrier: &Carrier) -> bool {
        (self.path, self.number) == (carrier.path, carrier.number)
    }
}
