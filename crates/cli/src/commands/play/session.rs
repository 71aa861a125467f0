//! A session: the player in real time, and the requests that it makes.

use std::collections::BTreeMap;
use std::time::Duration;

use swiftwater::Connection;
use swiftwater::quic::policy::{ChunkExpectation, Hints, QoeSignal};
use swiftwater::units::{Instant, PathId};
use swiftwater_http::client::{HttpClient, Origin};
use swiftwater_media::presentation::{Level, Resource};
use swiftwater_media::streaming::predictor::{PathEstimate, ServerReport};
use swiftwater_media::streaming::{ChunkRequest, ChunkedPlayer, divide_by_path};
use tokio::time::sleep_until;

use super::fetch::Content;
use super::observer::SessionObserver;
use crate::exit::{Exit, Failure};
use crate::multipath::PathManagers;

/// Most bytes of a segment: more is no segment of a video.
const MAX_SEGMENT: u64 = 1 << 30;

/// Time between two reports of the player's state while a segment arrives.
const REPORT_INTERVAL: Duration = Duration::from_millis(50);

/// What a session needs of its surroundings.
pub(crate) struct Session<O> {
    pub(crate) client: HttpClient,
    pub(crate) player: ChunkedPlayer,
    pub(crate) levels: Vec<Level>,
    /// Keeps the paths of connections, if there are to be several.
    pub(crate) paths: Option<PathManagers>,
    /// Failures in a row after which to give up.
    pub(crate) max_failures: u32,
    pub(crate) observer: O,
    pub(crate) started: tokio::time::Instant,
}

impl<O: SessionObserver> Session<O> {
    fn now(&self) -> Instant {
        Instant::ZERO + self.started.elapsed()
    }

    fn observe(&mut self) -> Result<(), Failure> {
        let now = self.now();
        self.observer.on_time(now, &mut self.player)
    }

    /// Plays until the viewer leaves.
    pub(crate) async fn play(&mut self) -> Result<(), Failure> {
        let mut with_header = vec![false; self.levels.len()];
        let mut failures = 0;
        while !self.player.is_finished() {
            let Some(request) = self.player.poll_request(self.now()) else {
                self.wait().await?;
                continue;
            };
            self.observe()?;
            match self.segment(request, &mut with_header).await {
                Ok(()) => failures = 0,
                Err(failure) => {
                    failures += 1;
                    self.observer.on_failure(&failure)?;
                    self.player.on_failure(self.now());
                    if failures >= self.max_failures {
                        return Err(failure);
                    }
                }
            }
            self.observe()?;
            self.observer.on_segment(&self.player)?;
        }
        Ok(())
    }

    /// Waits until the player's time has come.
    async fn wait(&mut self) -> Result<(), Failure> {
        self.observe()?;
        let Some(at) = self.timer() else {
            let text = "the player waits for nothing: this is a bug";
            return Err(Failure::new(Exit::Failure, text));
        };
        sleep_until(at).await;
        self.player.on_timer(self.now());
        self.observe()
    }

    /// When the player is due.
    fn timer(&self) -> Option<tokio::time::Instant> {
        let timer = self.player.next_timer()?;
        Some(self.started + timer.saturating_since(Instant::ZERO))
    }

    /// Fetches the segment of `request`, and before the first of its bitrate what precedes it.
    async fn segment(
        &mut self,
        request: ChunkRequest,
        with_header: &mut [bool],
    ) -> Result<(), Failure> {
        let level = &self.levels[request.level];
        let header = level.header.clone().filter(|_| !with_header[request.level]);
        let segment = level.segments[request.chunk].0.clone();
        let connection = self.connection(&segment);
        self.tell(connection.as_ref(), Some(request));
        let before = connection.as_ref().map(received).unwrap_or_default();
        let mut bytes = 0;
        if let Some(header) = header {
            bytes += self.receive(&header, connection.as_ref()).await?;
            // Not if it was given up halfway.
            with_header[request.level] = self.player.has_request();
        }
        if self.player.has_request() {
            bytes += self.receive(&segment, connection.as_ref()).await?;
        }
        if self.player.is_finished() || self.player.poll_abandoned().is_some() {
            // What was under way is cancelled.
            return Ok(());
        }
        // The first request opens the connection.
        let connection = self.connection(&segment);
        let after = connection.as_ref().map(received).unwrap_or_default();
        let now = self.now();
        for part in divide_by_path(bytes, &before, &after) {
            self.player.on_data(now, part.path, part.bytes);
        }
        self.player.on_complete(now);
        self.tell(connection.as_ref(), None);
        Ok(())
    }

    /// Counts the bytes of `resource` while the player's time goes on; ends early if the viewer leaves or the
    /// player gives the request up.
    async fn receive(
        &mut self,
        resource: &Resource,
        connection: Option<&Connection>,
    ) -> Result<u64, Failure> {
        let client = self.client.clone();
        self.observer.on_request(resource);
        let mut request = Box::pin(Content::request(&client, resource));
        let mut content = loop {
            let timer = self.next_wake();
            tokio::select! {
                content = &mut request => break content?,
                () = sleep_until(timer) => self.on_wake(connection)?,
            }
            if self.player.is_finished() || !self.player.has_request() {
                return Ok(0);
            }
        };
        let mut bytes: u64 = 0;
        while !self.player.is_finished() && self.player.has_request() {
            let timer = self.next_wake();
            tokio::select! {
                data = content.next() => {
                    let Some(data) = data? else {
                        self.observer.on_complete(resource);
                        break;
                    };
                    bytes += data.len() as u64;
                    let now = self.now();
                    self.player.on_progress(now, data.len() as u64);
                    self.observer.on_data(&data);
                }
                () = sleep_until(timer) => self.on_wake(connection)?,
            }
            if bytes > MAX_SEGMENT {
                let text = format_args!("{}: too large for a segment", resource.url);
                return Err(Failure::new(Exit::Failure, text));
            }
        }
        Ok(bytes)
    }

    /// When to look at the player again while something arrives.
    fn next_wake(&self) -> tokio::time::Instant {
        let regular = tokio::time::Instant::now() + REPORT_INTERVAL;
        self.timer().map_or(regular, |timer| timer.min(regular))
    }

    fn on_wake(&mut self, connection: Option<&Connection>) -> Result<(), Failure> {
        self.player.on_timer(self.now());
        self.tell(connection, None);
        self.observe()
    }

    /// The connection over HTTP/3 to the server of `resource`, if there is one.
    fn connection(&self, resource: &Resource) -> Option<Connection> {
        let uri = resource.url.to_string().parse().ok()?;
        let connection = self.client.http3_connection(&Origin::of(&uri).ok()?)?;
        if let Some(paths) = &self.paths {
            paths.attend(&connection, []);
        }
        Some(connection)
    }

    /// With several paths: what is buffered, and when the segment of `request` is expected, to the server's policies,
    /// and their reports to the player.
    fn tell(&mut self, connection: Option<&Connection>, request: Option<ChunkRequest>) {
        let Some(connection) = connection.filter(|_| self.paths.is_some()) else {
            return;
        };
        while let Some(message) = connection.recv_feedback() {
            if let Some(QoeSignal::Shares(shares)) =
                QoeSignal::decode(message.kind, &message.payload)
            {
                let estimate = |share: &swiftwater::quic::policy::PathShare| PathEstimate {
                    path: share.path,
                    share: share.share,
                    rate: share.rate,
                    rtt: share.rtt,
                };
                self.player.on_server_report(&ServerReport {
                    received: self.now(),
                    paths: shares.paths.iter().map(estimate).collect(),
                });
            }
        }
        let expectation = request.and_then(|request| {
            Some(ChunkExpectation {
                chunk: request.index,
                expected_time: request.expected?,
            })
        });
        let signal = self.player.signal();
        connection.update_hints(|hints: &mut Hints| {
            hints.player = Some(signal);
            if expectation.is_some() {
                hints.expectation = expectation;
            }
        });
    }
}

/// Bytes received on each path of a connection.
fn received(connection: &Connection) -> BTreeMap<PathId, u64> {
    let paths = connection.paths();
    let ended = connection.ended_paths();
    let all = ended.iter().chain(&paths);
    all.map(|path| (path.id, path.received_bytes.get()))
        .collect()
}
