//! A batch: datagrams of equal size that leave on the path one after the other.

use swiftwater_units::ByteCount;

use crate::crypto::EncryptionLevel;
use crate::handshake::KeysUnavailable;
use crate::policy_host::Scheduled;
use crate::transmit::{EcnCodepoint, Transmit};

use super::Transmission;
use super::choose::Choice;
use super::packet::MIN_NUMBER_LEN;
use crate::buffers::Workspace;

/// What was done for the next datagram already, before it is chosen.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Prepared {
    /// Copies of handshake packets were queued.
    pub(crate) handshake_copied: bool,
    /// The re-injector was asked for copies.
    pub(crate) reinjector_asked: bool,
}

/// Datagrams of equal size, the last one perhaps shorter.
#[derive(Debug)]
pub(crate) struct Batch<'b> {
    buf: &'b mut [u8],
    max_segments: usize,
    max_bytes: ByteCount,
    /// Data may go, not only acknowledgements.
    data_may_go: bool,
    ecn: Option<EcnCodepoint>,
    /// Datagrams written.
    segments: usize,
    /// Bytes written.
    size: usize,
    /// Bytes of the first datagram.
    segment: usize,
    pub(crate) prepared: Prepared,
}

impl<'b> Batch<'b> {
    /// At most `max_segments` datagrams in `buf`, and as many bytes as `scheduled` says, marked `ecn`.
    pub(crate) fn new(
        buf: &'b mut [u8],
        max_segments: usize,
        scheduled: &Scheduled,
        ecn: Option<EcnCodepoint>,
    ) -> Self {
        Self {
            buf,
            max_segments: max_segments.max(1),
            max_bytes: scheduled.max_bytes,
            data_may_go: scheduled.wait_until.is_none(),
            ecn,
            segments: 0,
            size: 0,
            segment: 0,
            prepared: Prepared::default(),
        }
    }
}

/// Why a batch goes no further.
#[derive(Debug)]
pub(crate) enum BatchEnd {
    /// It is complete.
    Complete,
    /// Copies of handshake packets may be due, which are to be queued before the next datagram.
    /// `has_room`: the window permits them.
    HandshakeCopies { has_room: bool },
    /// Nothing waits though the window has room: the re-injector is to be asked before the next datagram.
    SpareRoom,
}

impl Transmission<'_> {
    /// Writes the next datagrams of a batch.
    ///
    /// # Errors
    ///
    /// There are no keys to protect a packet with. What the batch has already may be sent.
    pub(crate) fn extend_batch(
        &mut self,
        batch: &mut Batch<'_>,
        workspace: &mut Workspace,
    ) -> Result<BatchEnd, KeysUnavailable> {
        while batch.segments < batch.max_segments {
            let limit = match batch.segments {
                0 => self.datagram_limit(),
                _ => batch.segment,
            };
            let Some(out) = batch.buf.get_mut(batch.size..batch.size + limit) else {
                break;
            };
            let plan = match self.choose_packets(limit, batch.data_may_go, batch.prepared) {
                Choice::Plan(plan) => plan,
                Choice::HandshakeCopies { has_room } => {
                    return Ok(BatchEnd::HandshakeCopies { has_room });
                }
                Choice::SpareRoom => return Ok(BatchEnd::SpareRoom),
            };
            if plan.is_empty() {
                break;
            }
            let len = self.build_datagram(&plan, out, workspace)?;
            if len == 0 {
                break;
            }
            batch.prepared = Prepared::default();
            batch.size += len;
            if batch.segments == 0 {
                batch.segment = len;
            }
            batch.segments += 1;
            self.policies.on_datagram_sent(self.now, self.path.id, len);
            // All of a batch have the same size and the same mark, and the scheduler is asked again once its
            // permission is used up.
            let may_follow = len == limit || (batch.segments == 1 && self.next_fits(len));
            let next = ByteCount::new((batch.size + batch.segment) as u64);
            if !may_follow || next > batch.max_bytes || self.path.network.ecn.mark() != batch.ecn {
                break;
            }
        }
        Ok(BatchEnd::Complete)
    }

    /// Whether the application's next DATAGRAM frame fits into a packet of `size` bytes, less than a full one. Those of
    /// one sender often have one size that fills no packet, in tunnels above all: they leave together all the same.
    /// An estimate: what does not fit after all leaves with the next batch.
    fn next_fits(&self, size: usize) -> bool {
        let next = self.datagrams.next_frame_size(self.path.id);
        next.is_some_and(|frame| {
            let header = 1 + self.path.cids.remote.current().len() + MIN_NUMBER_LEN;
            let tag_len = self.handshake.keys().tag_len(EncryptionLevel::OneRtt);
            header + frame + tag_len <= size
        })
    }

    /// Where the datagrams of a batch go; `None` if it has none.
    pub(crate) fn transmit(&self, batch: &Batch<'_>) -> Option<Transmit> {
        if batch.size == 0 {
            return None;
        }
        let address = &self.path.network.address;
        Some(Transmit {
            segment_size: (batch.segments > 1).then_some(batch.segment),
            ..Transmit::single(self.path.id, address, batch.ecn, batch.size)
        })
    }
}
