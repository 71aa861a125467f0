//! Copies of stream data that the re-injector asked for: which of them a packet carries, by target and
//! rank.

use swiftwater_units::PathId;

use crate::frame_writer::FrameWriter;
use crate::policy::{PathChoice, Rank, Reinjection, Rejection, RejectionReason};
use crate::policy_host::WaitingCopy;
use crate::streams::Streams;

use super::Transmission;
use super::fill::MIN_STREAM_ROOM;

/// A point in the order of a packet's stream data.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Position {
    /// Retransmissions follow.
    First,
    /// Retransmissions are written, new data follow.
    BeforeNewData,
    /// New data are written, as far as they fit.
    AfterNewData,
}

impl Position {
    /// True if a copy of `rank` has its place here.
    fn admits(self, rank: Rank, streams: &Streams, path: PathId) -> bool {
        let yields_to_streams = || match rank {
            Rank::WithPriority(priority) => streams
                .next_urgency(path)
                .is_some_and(|urgency| urgency < priority.urgency),
            _ => streams.can_send_on(path),
        };
        match (self, rank) {
            (Self::First | Self::BeforeNewData, Rank::First)
            | (Self::BeforeNewData, Rank::BeforeNewData) => true,
            (Self::BeforeNewData | Self::AfterNewData, Rank::WithPriority(_))
            | (Self::AfterNewData, Rank::AfterNewData) => !yields_to_streams(),
            (Self::First | Self::BeforeNewData | Self::AfterNewData, _) => false,
        }
    }
}

/// What became of a copy.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Attempt {
    /// It is in the packet.
    Written,
    /// Its first bytes are; the rest needs another packet.
    Split { rest: Reinjection },
    /// Nothing of the range is in flight any more.
    RangeGone,
}

impl Transmission<'_> {
    /// Writes the copies that have their place at `position` and may leave on this path.
    pub(super) fn fill_copies(&mut self, writer: &mut FrameWriter<'_, '_>, position: Position) {
        let mut rejections = Vec::new();
        let end = self.policies.copies.next_turn();
        while writer.remaining() >= MIN_STREAM_ROOM
            && let Some(found) = self.next_copy(position)
            && found.turn < end
        {
            let copy = found.copy;
            let range = copy.offset..copy.offset + u64::from(copy.len);
            // Lost again meanwhile: what leaves first is the retransmission, which didn't fit here.
            if self.streams.awaits_repair(copy.stream, range.clone()) {
                self.policies.copies.defer(&found);
                continue;
            }
            // Asked for because another path carried the data: beside its origin a copy brings nothing.
            let path = self.path.id;
            if copy.target != PathChoice::Any
                && (self.streams).is_retransmitted_on(copy.stream, &range, path)
            {
                self.policies.copies.remove(&found);
                rejections.push(Rejection::new(copy, RejectionReason::Retransmitted));
                continue;
            }
            // Two copies in one packet would share its fate; half a copy here and half in the next
            // would need both.
            let shares = writer.has_stream_bytes()
                && (writer.has_any_of(copy.stream, &range)
                    || writer.remaining() < copy.len as usize + MIN_STREAM_ROOM);
            if shares {
                break;
            }
            match self.write_copy(writer, &copy) {
                Attempt::Written => self.policies.copies.remove(&found),
                Attempt::Split { rest } => {
                    self.policies.copies.shorten(&found, rest);
                    break;
                }
                Attempt::RangeGone => {
                    self.policies.copies.remove(&found);
                    rejections.push(Rejection::new(copy, RejectionReason::RangeGone));
                }
            }
        }
        if !rejections.is_empty() {
            self.policies.reinjector.on_rejected(self.now, &rejections);
        }
    }

    /// The oldest copy that has its place at `position` and may leave on this path.
    fn next_copy(&self, position: Position) -> Option<WaitingCopy> {
        let (path, streams) = (self.path.id, &*self.streams);
        let admits = |rank| position.admits(rank, streams, path);
        self.policies.copies.next(path, admits)
    }

    fn write_copy(&mut self, writer: &mut FrameWriter<'_, '_>, copy: &Reinjection) -> Attempt {
        let range = copy.offset..copy.offset + u64::from(copy.len);
        let before = writer.remaining();
        let done = self.streams.fill_range(writer, copy.stream, range) as u32;
        if done < copy.len {
            let rest = Reinjection {
                offset: copy.offset + u64::from(done),
                len: copy.len - done,
                ..*copy
            };
            Attempt::Split { rest }
        } else if writer.remaining() == before {
            Attempt::RangeGone
        } else {
            Attempt::Written
        }
    }
}
