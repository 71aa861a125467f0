//! The players of `swiftwater_media::streaming`, as a viewer drives them.

use std::time::Duration;

use swiftwater_media::streaming::predictor::{PathBytes, ServerReport};
use swiftwater_media::streaming::{ChunkedPlayer, ShortVideoPlayer};
use swiftwater_quic::policy::{ChunkExpectation, PlayerSignal};
use swiftwater_units::Instant;

/// A request of a player.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    /// Its number.
    pub(super) id: u64,
    pub(super) bytes: u64,
    /// Bytes at the start of the response that belong to a first frame.
    pub(super) first_frame: u64,
    /// Time in which it is expected.
    pub(super) expected: Option<Duration>,
}

impl Wanted {
    pub(super) fn expectation(&self) -> Option<ChunkExpectation> {
        Some(ChunkExpectation {
            chunk: self.id,
            expected_time: self.expected?,
        })
    }
}

/// One of the players.
#[derive(Debug)]
pub(in crate::world) enum Player {
    /// Of chunks at adaptive bitrates.
    Chunked(Box<ChunkedPlayer>),
    /// Of a feed of short videos.
    Short(Box<ShortVideoPlayer>),
}

impl Player {
    pub(super) fn poll_request(&mut self, now: Instant) -> Option<Wanted> {
        match self {
            Self::Chunked(player) => player.poll_request(now).map(|request| Wanted {
                id: request.index,
                bytes: request.bytes,
                first_frame: 0,
                expected: request.expected,
            }),
            Self::Short(player) => player.poll_request(now).map(|request| Wanted {
                id: request.id,
                bytes: request.range.end - request.range.start,
                first_frame: request.first_frame.map_or(0, |part| part.end - part.start),
                expected: None,
            }),
        }
    }

    /// The next request to cancel.
    pub(super) fn poll_cancel(&mut self) -> Option<u64> {
        match self {
            Self::Chunked(player) => player.poll_abandoned(),
            Self::Short(player) => player.poll_cancel(),
        }
    }

    /// The next `bytes` of a response arrived.
    pub(super) fn on_data(&mut self, now: Instant, id: u64, bytes: u64) {
        match self {
            Self::Chunked(player) => player.on_progress(now, bytes),
            Self::Short(player) => player.on_data(now, id, bytes),
        }
    }

    /// A response is complete, of which these bytes came on each path.
    pub(super) fn on_complete(&mut self, now: Instant, id: u64, paths: &[PathBytes]) {
        match self {
            Self::Chunked(player) => {
                for each in paths {
                    player.on_data(now, each.path, each.bytes);
                }
                player.on_complete(now);
            }
            Self::Short(player) => player.on_complete(now, id),
        }
    }

    /// The server reported about its paths.
    pub(super) fn on_server_report(&mut self, report: &ServerReport) {
        if let Self::Chunked(player) = self {
            player.on_server_report(report);
        }
    }

    pub(super) fn on_timer(&mut self, now: Instant) {
        match self {
            Self::Chunked(player) => player.on_timer(now),
            Self::Short(player) => player.on_timer(now),
        }
    }

    pub(super) fn next_timer(&self) -> Option<Instant> {
        match self {
            Self::Chunked(player) => player.next_timer(),
            Self::Short(player) => player.next_timer(),
        }
    }

    pub(super) fn is_finished(&self) -> bool {
        match self {
            Self::Chunked(player) => player.is_finished(),
            Self::Short(player) => player.is_finished(),
        }
    }

    /// Play time that is buffered, by the last update.
    pub(super) fn buffered(&self) -> Duration {
        match self {
            Self::Chunked(player) => player.buffered(),
            Self::Short(player) => player.buffered(),
        }
    }

    pub(super) fn signal(&self) -> Option<PlayerSignal> {
        match self {
            Self::Chunked(player) => Some(player.signal()),
            Self::Short(player) => player.signal(),
        }
    }
}
