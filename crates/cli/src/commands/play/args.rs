//! The flags of `play`.

use std::time::Duration;

use clap::Args;
use swiftwater_media::streaming::adaptation::AdaptationKind;
use swiftwater_media::streaming::predictor::PredictorKind;

use crate::cli::TrustArgs;
use crate::commands::get::args::Protocol;
use crate::duration::parse_positive_duration;
use crate::multipath::PathArgs;
use crate::proxies::UdpProxyArgs;
use crate::transport::Tuning;
use crate::url::Url;

/// `play`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  swiftwater play https://localhost:4433/video/master.m3u8 --ca ~/.local/state/swiftwater/dev-cert.pem
  swiftwater play https://example.net/master.m3u8 --for 60s --json
  swiftwater play https://example.net/manifest.mpd --abr bola --buffer 20s
  swiftwater play https://127.0.0.1:4433/master.m3u8 --insecure --protocol h3 --path 127.0.0.1 --path 127.0.0.2

The address is that of a playlist of HTTP Live Streaming (RFC 8216), a master playlist with several bitrates or the
playlist of one of them with byte ranges, or that of a manifest of DASH (ISO/IEC 23009-1). The video must be complete
(video on demand) and not encrypted. Segments are requested as a player would, in real time, at the bitrates that the adaptation chooses; what arrives is
counted and discarded.

The score (qoe) is the sum over segments of the bitrate in Mbit/s, less --stall-weight for each second of stall and
--switch-weight for each Mbit/s of change between segments.

With several paths the server's policies are told what is buffered and when each segment is expected, if it
accepts that.")]
pub struct PlayArgs {
    /// The playlist or manifest: https://host:port/path, or http://
    #[arg(value_name = "URL")]
    pub url: Url,

    /// Leave after this time [default: at the end of the video]
    #[arg(long = "for", value_name = "TIME", value_parser = parse_positive_duration, help_heading = "Player")]
    pub session: Option<Duration>,

    /// Start again at the end of the video, until --for
    #[arg(long = "loop", requires = "session", help_heading = "Player")]
    pub looped: bool,

    /// How bitrates are chosen: mpc, rate or bola
    #[arg(long, value_name = "NAME", default_value_t, help_heading = "Player")]
    pub abr: AdaptationKind,

    /// How throughput is predicted: hm, robust-hm, recv-rate, robust-recv-rate, send-rate or
    /// send-rate-hm
    #[arg(long, value_name = "NAME", default_value_t, help_heading = "Player")]
    pub predictor: PredictorKind,

    /// Nothing is requested while as much is buffered
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = parse_positive_duration,
          help_heading = "Player")]
    pub buffer: Duration,

    /// Give a segment up for one at a lower bitrate if that is better for the score: if it would arrive long after the
    /// buffer is empty
    #[arg(long, help_heading = "Player")]
    pub abandon: bool,

    /// What a second of stall costs in the score, Mbit/s
    #[arg(long, value_name = "WEIGHT", default_value_t = 16.0, value_parser = weight, help_heading = "Player")]
    pub stall_weight: f64,

    /// What a change of bitrate costs in the score, per Mbit/s
    #[arg(long, value_name = "WEIGHT", default_value_t = 1.0, value_parser = weight, help_heading = "Player")]
    pub switch_weight: f64,

    /// Give up after as many failed requests in a row
    #[arg(long, value_name = "TIMES", default_value_t = 5, help_heading = "Limits",
          value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub failures: u32,

    /// Which protocols to use
    #[arg(
        long,
        value_enum,
        default_value_t,
        value_name = "WHICH",
        help_heading = "Protocol"
    )]
    pub protocol: Protocol,

    /// The certificates to trust.
    #[command(flatten)]
    pub trust: TrustArgs,

    /// A proxy for UDP.
    #[command(flatten)]
    pub proxy: UdpProxyArgs,

    /// Several paths.
    #[command(flatten)]
    pub paths: PathArgs,

    /// Transport settings.
    #[command(flatten)]
    pub tuning: Tuning,

    /// Neither read nor write state kept between runs (the record of QUIC failures)
    #[arg(long, help_heading = "Protocol")]
    pub no_state: bool,

    /// Print one JSON object per segment and event, then one with the results
    #[arg(long, help_heading = "Output")]
    pub json: bool,
}

fn weight(text: &str) -> Result<f64, String> {
    let weight: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    let valid = weight.is_finite() && (0.0..=1e6).contains(&weight);
    valid
        .then_some(weight)
        .ok_or_else(|| "use 0 to 1000000".to_owned())
}
