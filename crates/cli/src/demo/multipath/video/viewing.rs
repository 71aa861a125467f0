//! One strategy of the video story: its server, networks, client and session.

use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant as StdInstant;

use http::{HeaderValue, Request, Response, StatusCode, header};
use swiftwater::paths::{LocalEnd, PathPolicy, PathRule};
use swiftwater::units::Instant;
use swiftwater::{Client, Connection, MultipathConfig, Server};
use swiftwater_http::client::{HttpClient, Policy};
use swiftwater_http::udp::ALPN_HTTP3;
use swiftwater_http::web::body::{Body, text_response};
use swiftwater_media::streaming::adaptation::AdaptationKind;
use swiftwater_media::streaming::{ChunkedConfig, ChunkedPlayer, ChunkedReport};
use tokio::time::sleep_until;
use tower::service_fn;

use super::VideoPlan;
use super::recorder::{Recorder, Recording, lock};
use super::row::{Sample, VideoRow, Watched};
use super::segments::{MASTER, Segments};
use super::strategy::VideoStrategy;
use crate::commands::play::load::presentation;
use crate::commands::play::report::quantile;
use crate::commands::play::session::Session;
use crate::demo::http3_connections::serve_http3;
use crate::demo::multipath::networks::{NetworkName, Networks};
use crate::demo::multipath::plan::{Job, Plan};
use crate::demo::multipath::variant::{Credentials, since};
use crate::exit::{Exit, Failure};
use crate::multipath::PathManagers;
use crate::stats::path_rows;
use crate::transport::{Trust, build_failure, client, farewell, listen, server};
use crate::url::Url;
use crate::web_content::boxed;

/// Failed requests in a row after which a viewer gives up.
const FAILURES: u32 = 10;

/// The feedback policy of players.
const PLAYER: &str = "player";

/// A viewer, ready to watch.
pub(super) struct Viewing {
    strategy: VideoStrategy,
    segments: Arc<Segments>,
    config: ChunkedConfig,
    networks: Networks,
    server: Arc<Server>,
    client: Client,
    http: HttpClient,
    /// The server's ends of the viewer's connections.
    connections: Arc<Mutex<Vec<Connection>>>,
    recording: Arc<Mutex<Recording>>,
    samples: Mutex<Vec<Sample>>,
    failure: Mutex<Option<Failure>>,
}

impl Viewing {
    pub(super) async fn prepare(
        plan: &Plan,
        video: &VideoPlan,
        credentials: &Credentials,
        strategy: VideoStrategy,
    ) -> Result<Self, Failure> {
        let mut tuning = plan.tuning.clone();
        let policies = strategy.multipath();
        if let Some(policies) = policies {
            let recovery = || policies.recovery.to_owned();
            tuning.recovery.get_or_insert_with(recovery);
        }
        let mut server = server(&credentials.identity, &[ALPN_HTTP3], &tuning);
        let trust = Trust::Roots(vec![credentials.trusted.clone()]);
        let wifi = SocketAddr::new(NetworkName::Wifi.interface(), 0);
        let mut client = client(&trust, ALPN_HTTP3, &tuning).bind(wifi);
        if let Some(policies) = policies {
            let config = MultipathConfig::default;
            server = server.multipath(config()).scheduler(policies.scheduler);
            server = server.feedback(policies.feedback.unwrap_or(PLAYER));
            client = client.multipath(config()).scheduler(policies.scheduler);
            client = client.feedback(PLAYER);
        }
        let server = listen(&server, SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0))?;
        let networks = Networks::varying(server.local_addr(), plan.seed).await?;
        let client = client.build().map_err(|error| build_failure(&error))?;
        let http = HttpClient::builder()
            .quic(client.endpoint().clone(), client.config().clone())
            .policy(Policy::Http3Only)
            .build()
            .map_err(|error| Failure::new(Exit::Failure, error))?;
        Ok(Self {
            strategy,
            segments: Arc::clone(&video.segments),
            config: ChunkedConfig {
                session: Some(video.session),
                looped: true,
                ..ChunkedConfig::default()
            },
            networks,
            server: Arc::new(server),
            client,
            http,
            connections: Arc::default(),
            recording: Arc::default(),
            samples: Mutex::default(),
            failure: Mutex::default(),
        })
    }

    /// Watches from `start` on, until the viewer leaves. A failure is recorded.
    pub(super) async fn watch(&self, plan: &Plan, start: StdInstant) {
        let incident = async {
            self.networks.suffer(&plan.incident, start).await?;
            std::future::pending().await
        };
        let outcome = tokio::select! {
            outcome = self.session(start) => outcome,
            failed = incident => failed,
            () = self.serve() => Err(Failure::new(Exit::Failure, "the server has stopped")),
        };
        if let Err(failure) = outcome {
            let mut kept = (self.failure.lock()).unwrap_or_else(PoisonError::into_inner);
            *kept = Some(failure);
        }
    }

    async fn session(&self, start: StdInstant) -> Result<(), Failure> {
        let port = self.networks.server().port();
        let url = format!("https://127.0.0.1:{port}{MASTER}");
        let url: Url = url
            .parse()
            .map_err(|error| Failure::new(Exit::Failure, error))?;
        let (video, levels) = presentation(&self.http, &url).await?;
        sleep_until(start.into()).await;
        let player = ChunkedPlayer::new(
            self.config,
            Arc::new(video),
            AdaptationKind::default().build(),
            self.strategy.predictor().build(),
            Instant::ZERO,
        );
        let rules =
            NetworkName::ALL.map(|network| PathRule::new(LocalEnd::Address(network.interface())));
        let endpoint = self.client.endpoint().clone();
        let paths = self.strategy.multipath();
        let recorder = Recorder::new(Arc::clone(&self.segments), Arc::clone(&self.recording));
        let mut session = Session {
            client: self.http.clone(),
            player,
            levels,
            paths: paths.map(|_| PathManagers::new(endpoint, PathPolicy::new(rules))),
            max_failures: FAILURES,
            observer: recorder,
            started: start.into(),
        };
        session.play().await
    }

    /// Answers requests, without end.
    async fn serve(&self) {
        let segments = Arc::clone(&self.segments);
        let content = boxed(service_fn(move |request: Request<Body>| {
            std::future::ready(Ok::<_, Infallible>(answer(&segments, &request)))
        }));
        serve_http3(&self.server, content, |connection| {
            let mut connections = (self.connections.lock()).unwrap_or_else(PoisonError::into_inner);
            connections.push(connection.clone());
        })
        .await;
    }

    /// Notes what the server has sent.
    pub(super) fn sample(&self, start: StdInstant) {
        let (sent, copies) = self.sent();
        let mut by_network = [0; 2];
        for (network, bytes) in by_network.iter_mut().zip(sent) {
            *network = bytes;
        }
        let sample = Sample {
            at: since(start).as_secs_f64(),
            sent: by_network,
            copies,
        };
        let mut samples = (self.samples.lock()).unwrap_or_else(PoisonError::into_inner);
        samples.push(sample);
    }

    /// Bytes that the server sent on each path, and of copies on all.
    fn sent(&self) -> (Vec<u64>, u64) {
        let connections = (self.connections.lock()).unwrap_or_else(PoisonError::into_inner);
        let (mut sent, mut copies) = (Vec::new(), 0);
        for path in connections.iter().flat_map(path_rows) {
            let place = path.id as usize;
            if sent.len() <= place {
                sent.resize(place + 1, 0);
            }
            sent[place] += path.bytes_sent;
            copies += path.copies;
        }
        (sent, copies)
    }

    /// The results so far.
    pub(super) fn watched(&self) -> Watched {
        let recording = lock(&self.recording).clone();
        let (sent_by_path, copies) = self.sent();
        let connections = (self.connections.lock()).unwrap_or_else(PoisonError::into_inner);
        let streams: u64 = connections
            .iter()
            .map(|connection| connection.stats().stream_bytes_sent.get())
            .sum();
        drop(connections);
        let mut times: Vec<f64> = recording
            .records
            .iter()
            .map(|record| record.took.as_secs_f64() * 1e3)
            .collect();
        times.sort_by(f64::total_cmp);
        let report = recording.report.as_ref();
        let ms = |time: std::time::Duration| time.as_secs_f64() * 1e3;
        let failure = (self.failure.lock()).unwrap_or_else(PoisonError::into_inner);
        let row = VideoRow {
            strategy: self.strategy,
            job: Job::Video,
            qoe: report.map_or(0.0, |report| report.score),
            bitrate_mbps: report.map_or(0.0, ChunkedReport::mean_bitrate_mbps),
            stall_ms: report.map_or(0.0, |report| ms(report.playback.stalls.total)),
            stalls: report.map_or(0, |report| report.playback.stalls.count),
            first_frame_ms: report.and_then(|report| report.playback.start_time.map(ms)),
            chunk_p99_ms: quantile(&times, 0.99),
            segments: recording.records.len() as u64,
            copies_share: copies as f64 / streams.max(1) as f64,
            sha256_ok: recording.wrong == 0 && !recording.records.is_empty(),
            sent_by_path,
            failure: failure.clone(),
        };
        let bitrates = recording.records.iter();
        let bitrates = bitrates
            .map(|record| (record.requested.as_secs_f64(), record.rate.as_mbps_f64()))
            .collect();
        let samples = (self.samples.lock()).unwrap_or_else(PoisonError::into_inner);
        Watched {
            row,
            buffer: recording.buffer,
            bitrates,
            samples: samples.clone(),
        }
    }

    pub(super) async fn close(self) {
        self.client.endpoint().close(0, b"done");
        farewell(&self.server).await;
        self.networks.stop().await;
    }
}

/// The object at the path of `request`, whole: a range that is all of it, if one is asked for.
fn answer(segments: &Segments, request: &Request<Body>) -> Response<Body> {
    let Some(content) = segments.content(request.uri().path()) else {
        return text_response(StatusCode::NOT_FOUND, "");
    };
    let mut response = Response::new(Body::empty());
    let length = content.len();
    if request.headers().contains_key(header::RANGE) && length > 0 {
        let range = format!("bytes 0-{}/{length}", length - 1);
        if let Ok(range) = HeaderValue::try_from(range) {
            *response.status_mut() = StatusCode::PARTIAL_CONTENT;
            response.headers_mut().insert(header::CONTENT_RANGE, range);
        }
    }
    *response.body_mut() = Body::full(content);
    response
}
