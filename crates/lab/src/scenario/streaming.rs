//! The keys of `app = "chunked-video"` and `app = "short-video"`: viewers that download ahead.
//!
//! What a key means to the player is in `swiftwater_media::streaming`; here are only names and ranges.

use std::sync::Arc;
use std::time::Duration;

use swiftwater_media::streaming::adaptation::AdaptationKind;
use swiftwater_media::streaming::predictor::PredictorKind;
use swiftwater_media::streaming::{
    BufferConfig, ChunkedConfig, ChunkedPlayer, FeedSpec, Ladder, MAX_CHUNK, ShortVideoConfig,
    ShortVideoError, ShortVideoPlayer, Variation, VideoError,
};
use swiftwater_policies::FeedbackCatalogue;
use swiftwater_units::Instant;

use super::error::Read;
use super::reader::{LONGEST, Reader};
use super::setup::{App, FeedbackPolicies};

/// Keys of chunked video.
pub(super) const CHUNKED_KEYS: &[&str] = &[
    "ladder",
    "chunk",
    "film",
    "abr",
    "predictor",
    "session",
    "buffer",
    "start_buffer",
    "abandon",
    "feedback",
    "viewer_feedback",
];

/// Keys of short video.
pub(super) const SHORT_KEYS: &[&str] = &[
    "videos",
    "fps",
    "swiped",
    "parallel",
    "request_bytes",
    "ahead",
    "preload",
    "feedback",
    "viewer_feedback",
];

/// Play time of a chunk in Chorus' evaluation (MobiCom 2024).
const CHUNK: Duration = Duration::from_secs(4);

/// Chunked video of one group of flows.
#[derive(Clone, Debug, PartialEq)]
pub struct ChunkedVideoSpec {
    /// The bitrates.
    pub ladder: Ladder,
    /// Play time of a chunk.
    pub chunk: Duration,
    /// Spread of the chunk sizes and length of the video.
    pub film: Variation,
    /// Choice of bitrates.
    pub abr: AdaptationKind,
    /// Prediction of throughput.
    pub predictor: PredictorKind,
    /// The player; the video is played in a loop until its session ends.
    pub player: ChunkedConfig,
}

/// A feed of short videos of one group of flows.
#[derive(Clone, Debug, PartialEq)]
pub struct ShortVideoSpec {
    /// The videos and when they are left.
    pub feed: FeedSpec,
    /// The player.
    pub player: ShortVideoConfig,
}

impl ChunkedVideoSpec {
    /// The player of a viewer who asks for the video at `start`. Sizes of chunks depend on `seed` only.
    pub(crate) fn player(&self, seed: u64, start: Instant) -> Result<ChunkedPlayer, VideoError> {
        let video = self.film.video(self.ladder.clone(), self.chunk, seed)?;
        let (adaptation, predictor) = (self.abr.build(), self.predictor.build());
        let video = Arc::new(video);
        Ok(ChunkedPlayer::new(
            self.player,
            video,
            adaptation,
            predictor,
            start,
        ))
    }
}

impl ShortVideoSpec {
    /// The player of a viewer who asks for the first video at `start`. The feed depends on `seed` only.
    pub(crate) fn player(
        &self,
        seed: u64,
        start: Instant,
    ) -> Result<ShortVideoPlayer, ShortVideoError> {
        let feed = self.feed.generate(seed)?;
        Ok(ShortVideoPlayer::new(self.player, feed, start))
    }
}

/// No feedback policy.
const NONE: &str = "none";

/// Reads the feedback policies of both ends, of `app` or `in_tunnel` that reports; `None` if there are none.
pub(super) fn read_feedback(
    row: &Reader<'_>,
    app: &App,
    in_tunnel: bool,
    known: &FeedbackCatalogue,
) -> Read<Option<FeedbackPolicies>> {
    let is_video = matches!(app, App::ChunkedVideo(_) | App::ShortVideo(_));
    let read = |key, default| {
        let name = row.string(key)?.unwrap_or(default);
        if !is_video && !in_tunnel && name != NONE {
            let why = "it goes with video on demand, or with a tunnel that reports";
            return Err(row.fault(key, why));
        }
        (known.get(name)).map_err(|error| row.fault(key, error.to_string()))
    };
    let (server, viewer) = match (is_video, in_tunnel) {
        (true, _) => (NONE, "player"),
        (false, true) => ("tecc", "tecc-client"),
        (false, false) => (NONE, NONE),
    };
    let policies = FeedbackPolicies {
        server: read("feedback", server)?,
        viewer: read("viewer_feedback", viewer)?,
    };
    Ok((is_video || in_tunnel).then_some(policies))
}

/// Reads the keys of chunked video.
pub(super) fn read_chunked(row: &Reader<'_>) -> Read<ChunkedVideoSpec> {
    let films = [
        ("big-buck-bunny", Variation::BIG_BUCK_BUNNY),
        ("elephants-dream", Variation::ELEPHANTS_DREAM),
        ("sintel", Variation::SINTEL),
    ];
    let ladder = match row.string("ladder")? {
        Some(text) => text
            .parse::<Ladder>()
            .map_err(|error| row.fault("ladder", format!("{error}")))?,
        None => Ladder::chorus(),
    };
    let abr = AdaptationKind::ALL.map(|kind| (kind.name(), kind));
    let predictors = PredictorKind::ALL.map(|kind| (kind.name(), kind));
    let default = ChunkedConfig::chorus();
    // So that every film has less than `MAX_CHUNKS` chunks.
    let shortest = Duration::from_millis(100);
    let session = row.duration("session", shortest..=LONGEST)?;
    let maximum = row.duration("buffer", Duration::ZERO..=LONGEST)?;
    let start = row.duration("start_buffer", Duration::ZERO..=LONGEST)?;
    Ok(ChunkedVideoSpec {
        ladder,
        chunk: (row.duration("chunk", shortest..=MAX_CHUNK)?).unwrap_or(CHUNK),
        film: (row.word("film", &films)?).unwrap_or(Variation::BIG_BUCK_BUNNY),
        abr: row.word("abr", &abr)?.unwrap_or_default(),
        predictor: row.word("predictor", &predictors)?.unwrap_or_default(),
        player: ChunkedConfig {
            session: session.or(default.session),
            abandon: row.truth("abandon")?.unwrap_or(default.abandon),
            buffer: BufferConfig {
                maximum: maximum.unwrap_or(default.buffer.maximum),
                start: start.unwrap_or(default.buffer.start),
                ..default.buffer
            },
            ..default
        },
    })
}

/// Reads the keys of short video.
pub(super) fn read_short(row: &Reader<'_>) -> Read<ShortVideoSpec> {
    let feed = FeedSpec::default();
    let player = ShortVideoConfig::default();
    let whole = |key, range, default: usize| -> Read<usize> {
        Ok(row
            .whole(key, range)?
            .map_or(default, |value| value as usize))
    };
    let bytes = row.whole("request_bytes", 1024..=1 << 30)?;
    Ok(ShortVideoSpec {
        feed: FeedSpec {
            videos: whole("videos", 1..=10_000, feed.videos)?,
            fps: row.number("fps", 1.0..=240.0)?.unwrap_or(feed.fps),
            swiped: row.number("swiped", 0.0..=1.0)?.unwrap_or(feed.swiped),
            ..feed
        },
        player: ShortVideoConfig {
            request_bytes: bytes.unwrap_or(player.request_bytes),
            parallel: whole("parallel", 1..=64, player.parallel)?,
            ahead: (row.duration("ahead", Duration::ZERO..=LONGEST)?).unwrap_or(player.ahead),
            preload: whole("preload", 0..=64, player.preload)?,
            ..player
        },
    })
}
