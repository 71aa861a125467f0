//! What was requested of a video's file, and what has arrived.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use swiftwater_units::Instant;

use super::video::ShortVideo;

/// A range of the file that was requested once.
#[derive(Clone, Debug)]
struct Piece {
    range: Range<u64>,
    received: u64,
    /// The request under way: its number, when it was sent.
    request: Option<(u64, Instant)>,
}

impl Piece {
    fn left(&self) -> u64 {
        self.range.end - self.range.start - self.received
    }
}

/// A file that is fetched by range requests in order, several at a time. Bytes of one request arrive
/// in order.
#[derive(Clone, Debug)]
pub(super) struct Download {
    pub(super) video: Arc<ShortVideo>,
    pieces: Vec<Piece>,
    /// End of what was requested.
    requested: u64,
}

impl Download {
    pub(super) const fn new(video: Arc<ShortVideo>) -> Self {
        Self {
            video,
            pieces: Vec::new(),
            requested: 0,
        }
    }

    /// Bytes that were requested, from the start.
    pub(super) const fn requested(&self) -> u64 {
        self.requested
    }

    /// Bytes that have arrived without a gap, from the start.
    pub(super) fn contiguous(&self) -> u64 {
        let gap = self.pieces.iter().find(|piece| piece.left() > 0);
        gap.map_or(self.requested, |piece| piece.range.start + piece.received)
    }

    /// Bytes that have arrived.
    pub(super) fn received(&self) -> u64 {
        self.pieces.iter().map(|piece| piece.received).sum()
    }

    /// Whether a part that was requested has to be requested again.
    pub(super) fn has_failed_part(&self) -> bool {
        self.pieces
            .iter()
            .any(|piece| piece.request.is_none() && piece.left() > 0)
    }

    /// Whether everything was requested.
    pub(super) fn is_requested(&self) -> bool {
        self.requested >= self.video.bytes()
    }

    /// The range of the next request, which has the number `id`: what failed, else the next `most`
    /// bytes; `None` if all was requested.
    pub(super) fn request(&mut self, id: u64, now: Instant, most: u64) -> Option<Range<u64>> {
        let mut pieces = self.pieces.iter_mut();
        if let Some(piece) = pieces.find(|piece| piece.request.is_none() && piece.left() > 0) {
            piece.request = Some((id, now));
            return Some(piece.range.start + piece.received..piece.range.end);
        }
        if self.is_requested() {
            return None;
        }
        let end = self.requested.saturating_add(most).min(self.video.bytes());
        let range = self.requested..end;
        self.requested = end;
        self.pieces.push(Piece {
            range: range.clone(),
            received: 0,
            request: Some((id, now)),
        });
        Some(range)
    }

    /// The next `bytes` of a request arrived. Returns whether the request belongs to this file. More
    /// than was requested is ignored.
    pub(super) fn on_data(&mut self, id: u64, bytes: u64) -> bool {
        let piece = self.piece(id);
        if let Some(piece) = piece {
            piece.received += bytes.min(piece.left());
            return true;
        }
        false
    }

    /// The request is over. Returns its duration, and whether all of it has arrived; `None` if the
    /// request doesn't belong to this file.
    pub(super) fn on_over(&mut self, id: u64, now: Instant) -> Option<(Duration, bool)> {
        let piece = self.piece(id)?;
        let (_, sent) = piece.request.take()?;
        Some((now.saturating_since(sent), piece.left() == 0))
    }

    /// The requests under way.
    pub(super) fn under_way(&self) -> impl Iterator<Item = u64> {
        let requests = self.pieces.iter().filter_map(|piece| piece.request);
        requests.map(|(id, _)| id)
    }

    fn piece(&mut self, id: u64) -> Option<&mut Piece> {
        let is = |piece: &&mut Piece| piece.request.is_some_and(|(own, _)| own == id);
        self.pieces.iter_mut().find(is)
    }
}
