//! The keys of `app = "video"`, live video over QUIC.

use std::time::Duration;

use swiftwater_media::player::LiveConfig;
use swiftwater_media::source::{SourceSpec, SpecError};

use super::error::Read;
use super::reader::{LONGEST, Reader};

/// Keys of the application.
pub(super) const KEYS: &[&str] = &[
    "source",
    "mode",
    "deadline",
    "abandon",
    "start_buffer",
    "rebuffer",
];

/// The deadline of frames of their own streams: that of the papers on video calls and games.
const DEADLINE: Duration = Duration::from_millis(100);

/// Live video of one group of flows.
#[derive(Clone, Debug, PartialEq)]
pub struct VideoSpec {
    /// Source of frames.
    pub source: SourceSpec,
    /// Transmission mode.
    pub mode: VideoMode,
    /// A frame that isn't complete within this time after its encoding misses its deadline; `None`:
    /// no deadline.
    pub deadline: Option<Duration>,
    /// Whether the sender abandons a frame that can't be in time any more; with
    /// [`VideoMode::Frames`] only.
    pub abandon: bool,
    /// The player's buffer; with [`VideoMode::Stream`] only.
    pub player: LiveConfig,
}

/// Transmission of frames.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum VideoMode {
    /// All on one stream, in order, as in pulls of live streams. The viewer's player has a buffer.
    Stream,
    /// Each on a separate unidirectional stream with a deadline, as in video calls. The viewer
    /// shows frames as soon as possible.
    Frames,
}

/// Reads the keys.
pub(super) fn read(row: &Reader<'_>) -> Read<VideoSpec> {
    let modes = [("stream", VideoMode::Stream), ("frames", VideoMode::Frames)];
    let mode = row.word("mode", &modes)?.unwrap_or(VideoMode::Stream);
    let (unfit, why) = match mode {
        VideoMode::Stream => (&["abandon"][..], "it goes with `mode = \"frames\"`"),
        VideoMode::Frames => (
            &["start_buffer", "rebuffer"][..],
            "it goes with `mode = \"stream\"`: frames on separate streams are shown at once",
        ),
    };
    if let Some(key) = unfit.iter().find(|key| row.has(key)) {
        return Err(row.fault(key, why));
    }
    let deadline = read_deadline(row)?;
    let default = LiveConfig::default();
    let time = |key| row.duration(key, Duration::ZERO..=LONGEST);
    Ok(VideoSpec {
        source: read_source(row)?,
        mode,
        deadline: deadline.or((mode == VideoMode::Frames).then_some(DEADLINE)),
        abandon: mode == VideoMode::Frames && row.truth("abandon")?.unwrap_or(true),
        player: LiveConfig {
            start_buffer: time("start_buffer")?.unwrap_or(default.start_buffer),
            rebuffer: time("rebuffer")?.unwrap_or(default.rebuffer),
        },
    })
}

/// A source of frames. It is opened here as a check, so that a missing file is reported with its
/// line and before the first run.
pub(super) fn read_source(row: &Reader<'_>) -> Read<SourceSpec> {
    let text = row.string("source")?;
    let text = row.need("source", text, "such as \"cbr:4mbit,fps=60\" or \"sample\"")?;
    let source: SourceSpec = text
        .parse()
        .map_err(|error: SpecError| row.fault("source", error.to_string()))?;
    source
        .open(0)
        .map_err(|error| row.fault("source", error.to_string()))?;
    Ok(source)
}

/// A deadline of at least a millisecond.
pub(super) fn read_deadline(row: &Reader<'_>) -> Read<Option<Duration>> {
    row.duration("deadline", Duration::from_millis(1)..=LONGEST)
}
