//! What a session was like, as its player reports it.

use super::StreamingViewer;
use super::player::Player;
use crate::world::measures::StreamingViewing;

impl StreamingViewer {
    /// Results so far.
    pub(in crate::world) fn viewing(&self) -> StreamingViewing {
        let levels = self.levels().samples().to_vec();
        let share_errors = self.shares().errors().to_vec();
        match self.player() {
            Player::Chunked(player) => {
                let report = player.report();
                let records = player.records().iter();
                let chunks = report.chunks as f64;
                StreamingViewing {
                    score: Some(report.score),
                    bitrate_mbps: (report.chunks > 0).then(|| report.mean_bitrate_mbps()),
                    switching_mbps: (report.chunks > 1)
                        .then(|| report.qoe.switching_mbps / (chunks - 1.0)),
                    prediction: report.prediction,
                    first_frames: report.playback.start_time.into_iter().collect(),
                    stalls: report.playback.stalls.count,
                    stalled: report.playback.stalls.total,
                    played: report.playback.played,
                    requests: records.map(|record| record.took).collect(),
                    received: report.bytes,
                    unplayed: None,
                    levels,
                    share_errors,
                }
            }
            Player::Short(player) => {
                let report = player.report();
                let ranges = player.ranges().iter();
                StreamingViewing {
                    first_frames: report.first_frames,
                    stalls: report.stalls,
                    stalled: report.stalled,
                    played: report.played,
                    requests: ranges.map(|range| range.took).collect(),
                    received: report.received,
                    unplayed: Some(report.unplayed),
                    levels,
                    share_errors,
                    ..StreamingViewing::default()
                }
            }
        }
    }
}
