//! Playback results of a viewer, computed by the models of `swiftwater_media::player` from the
//! records of both ends.

use std::time::Duration;

use swiftwater_media::Frame;
use swiftwater_media::player::{DeadlineMeter, FrameDisplay, Freezes, LivePlayer};
use swiftwater_units::Instant;

use super::{VideoServer, VideoViewer};
use crate::scenario::{VideoMode, VideoSpec};
use crate::world::measures::{Missed, VideoViewing};

/// Results of the viewer of `server` from `begin` to `end`.
pub(in crate::world) fn viewing(
    spec: &VideoSpec,
    server: &VideoServer,
    viewer: &VideoViewer,
    (begin, end): (Instant, Instant),
) -> VideoViewing {
    let end = viewer.until(end);
    let Some(epoch) = server.epoch() else {
        return VideoViewing::default();
    };
    let (startup, before, after) = match spec.mode {
        VideoMode::Stream => live(spec, viewer, epoch, (begin, end)),
        VideoMode::Frames => conversation(viewer, (begin, end)),
    };
    let is_measured = |frame: &Frame| {
        let at = epoch + frame.at;
        at >= begin && at <= end
    };
    let arrivals = viewer.arrivals().iter();
    let measured = arrivals.filter(|(_, frame)| is_measured(frame));
    VideoViewing {
        startup,
        freezes: after.freezes.count.saturating_sub(before.freezes.count),
        frozen: after.freezes.total.saturating_sub(before.freezes.total),
        watched: after.watched.saturating_sub(before.watched),
        missed: spec
            .deadline
            .map(|deadline| missed(server, viewer, epoch, deadline, (begin, end))),
        delays: measured
            .map(|(at, frame)| at.saturating_since(epoch + frame.at))
            .collect(),
        abandoned: server.abandoned(),
    }
}

/// Freezes up to a time.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    freezes: Freezes,
    watched: Duration,
}

/// A player with a buffer: its results by `begin`, and by `end`.
fn live(
    spec: &VideoSpec,
    viewer: &VideoViewer,
    epoch: Instant,
    (begin, end): (Instant, Instant),
) -> (Option<Duration>, Seen, Seen) {
    let mut player = LivePlayer::new(spec.player, viewer.start(), epoch);
    let seen = |player: &LivePlayer, now| {
        let report = player.report(now);
        Seen {
            freezes: report.freezes,
            watched: report.watched,
        }
    };
    let mut before = None;
    for (at, frame) in viewer.arrivals() {
        if *at >= begin {
            before.get_or_insert_with(|| seen(&player, begin));
        }
        player.on_frame(*at, frame);
    }
    if let Some(ended) = viewer.ended() {
        if ended >= begin {
            before.get_or_insert_with(|| seen(&player, begin));
        }
        player.on_end(ended);
    }
    let before = before.unwrap_or_else(|| seen(&player, begin));
    (player.report(end).start_time, before, seen(&player, end))
}

/// A display without a buffer: its results by `begin`, and by `end`.
fn conversation(
    viewer: &VideoViewer,
    (begin, end): (Instant, Instant),
) -> (Option<Duration>, Seen, Seen) {
    let mut display = FrameDisplay::new();
    let seen = |display: &FrameDisplay, now| {
        let report = display.report(now);
        Seen {
            freezes: report.freezes,
            watched: report.judged,
        }
    };
    let (mut before, mut first) = (None, None);
    for (at, frame) in viewer.arrivals() {
        if *at >= begin {
            before.get_or_insert_with(|| seen(&display, begin));
        }
        if display.on_complete(*at, frame) > 0 {
            first.get_or_insert(*at);
        }
    }
    let before = before.unwrap_or_else(|| seen(&display, begin));
    let startup = first.map(|first| first.saturating_since(viewer.start()));
    (startup, before, seen(&display, end))
}

/// The frames encoded in the measured time that were not complete in time.
fn missed(
    server: &VideoServer,
    viewer: &VideoViewer,
    epoch: Instant,
    deadline: Duration,
    (begin, end): (Instant, Instant),
) -> Missed {
    let mut meter = DeadlineMeter::new(epoch, deadline);
    let encoded = server.encoded();
    let first = encoded.partition_point(|frame| epoch + frame.at < begin);
    // The meter counts from index 0 on.
    let moved = |frame: &Frame| {
        let index = frame.index.checked_sub(first as u64)?;
        Some(Frame { index, ..*frame })
    };
    for frame in encoded.iter().filter_map(moved) {
        meter.on_encoded(&frame);
    }
    for (at, frame) in viewer.arrivals() {
        if let Some(frame) = moved(frame) {
            meter.on_complete(*at, &frame);
        }
    }
    let report = meter.report(end);
    Missed {
        frames: report.frames,
        late: report.missed,
        per_second: report.per_second,
    }
}
