//! Fetches one URL, from its first request to its last byte.

use std::sync::Arc;
use std::time::{Duration, Instant};

use http::{Method, Request, Response, StatusCode};
use http_body::Body as _;
use swiftwater::Connection;
use swiftwater_http::client::{self, ArmChoice, Chosen, Error, HttpClient, Measurements, Origin};
use swiftwater_http::web::body::Body;
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout, timeout_at};
use tower::{ServiceExt, service_fn};
use tower_http::decompression::Decompression;

use super::args::Protocol;
use super::failures::{content_failure, request_failure, target};
use super::migration::Migrations;
use super::order::{Ask, From, Order};
use super::pace::Paces;
use super::part::Record;
use super::plan::{Item, Place};
use super::redirect::{MAX_REDIRECTS, Next, next};
use super::response::{Expected, Take};
use super::retry::{Incomplete, Retries};
use super::sink::Sink;
use super::transcript;
use super::upload::Upload;
use crate::exit::{Exit, Failure};
use crate::migrate::Odometer;
use crate::multipath::PathManagers;
use crate::output;
use crate::progress::Progress;
use crate::stats::{PathRow, path_rows};
use crate::table;
use crate::url::Url;

/// State shared by all URLs.
pub(super) struct Context {
    pub(super) client: HttpClient,
    pub(super) order: Order,
    pub(super) slots: Semaphore,
    pub(super) progress: Progress,
    pub(super) paces: Option<Paces>,
    pub(super) moves: Option<Migrations>,
    pub(super) paths: Option<PathManagers>,
    pub(super) options: Options,
}

/// Settings of the flags for every URL.
#[derive(Clone, Copy, Debug)]
pub(super) struct Options {
    pub(super) overwrite: bool,
    pub(super) continuation: bool,
    pub(super) follow: bool,
    /// Redirects may carry all fields of the request to any origin.
    pub(super) trust_redirects: bool,
    pub(super) compressed: bool,
    pub(super) keep_failures: bool,
    /// Heads of responses go to standard output.
    pub(super) heads: bool,
    pub(super) verbose: bool,
    /// The URL as given by the user.
    pub(super) protocol: Protocol,
    /// Bytes of content, after decompression, beyond which a URL is aborted.
    pub(super) max_size: Option<u64>,
    pub(super) retry: u32,
    /// For how long a URL is requested again while nothing more of it arrives.
    pub(super) retry_max_time: Option<Duration>,
    pub(super) max_time: Option<Duration>,
}

/// The result.
pub(super) struct Outcome {
    pub(super) item: Item,
    pub(super) result: Result<Ending, Failure>,
    pub(super) trace: Trace,
    pub(super) elapsed: Duration,
}

/// Success.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Ending {
    Complete,
    /// The file existed, and with `--continue` that is enough.
    Existed,
}

/// Protocol and measurements, whatever the result. Of several requests, the last.
#[derive(Debug, Default)]
pub(super) struct Trace {
    pub(super) status: Option<StatusCode>,
    pub(super) chosen: Option<Chosen>,
    pub(super) selection: Option<ArmChoice>,
    pub(super) measurements: Option<Measurements>,
    /// The final URL after redirects.
    pub(super) led_to: Option<Url>,
    /// Bytes of content received in this run.
    pub(super) received: u64,
    /// Of these, bytes discarded because the content had to be fetched again.
    pub(super) discarded: u64,
    /// Bytes that existed before.
    pub(super) continued_at: Option<u64>,
    /// Repeated requests, without redirects.
    pub(super) further_tries: u32,
    /// The paths of the QUIC connection when the content was complete.
    pub(super) paths: Vec<PathRow>,
    heads_shown: bool,
}

/// Fetches `item`.
pub(super) async fn fetch(context: Arc<Context>, item: Item) -> Outcome {
    // The semaphore is never closed.
    let _slot = context.slots.acquire().await.ok();
    let begun = Instant::now();
    let mut trace = Trace::default();
    let work = context.attempts(&item, &mut trace);
    let result = match context.options.max_time {
        None => work.await,
        Some(limit) => timeout(limit, work).await.unwrap_or_else(|_| {
            let text = format_args!("{}: not done within {limit:?} (--max-time)", item.url);
            Err(Failure::new(Exit::TooSlow, text))
        }),
    };
    Outcome {
        item,
        result,
        trace,
        elapsed: begun.elapsed(),
    }
}

impl Context {
    /// Repeats the request until the content is complete or the limits are reached.
    async fn attempts(&self, item: &Item, trace: &mut Trace) -> Result<Ending, Failure> {
        let options = self.options;
        if options.continuation
            && let Place::File(path) = &item.place
            && path.symlink_metadata().is_ok()
        {
            return Ok(Ending::Existed);
        }
        let url = item.url.to_string();
        let mut sink =
            Sink::open(&item.place, &url, options.overwrite, options.continuation).await?;
        trace.continued_at = sink.standing().map(|(offset, _)| offset);
        if let Some(bytes) = sink.ignored() {
            let (name, bytes) = (name_of(item), table::bytes(bytes));
            self.progress.note(&format!(
                "note: {name}: {bytes} of an earlier download exist and will be overwritten (-C continues)"
            ));
        }
        let order = &self.order;
        let mut tries = Retries::new(
            options.retry,
            options.retry_max_time,
            &order.method,
            order.is_repeatable(),
        );
        loop {
            let keep_failures = options.keep_failures && !tries.may_repeat();
            let until = tries.until();
            let exchanged = self.exchange(item, &mut sink, trace, keep_failures, until);
            let trouble = match exchanged.await {
                Ok(None) => {
                    sink.complete().await?;
                    return Ok(Ending::Complete);
                }
                Ok(Some(failure)) => {
                    sink.complete().await?;
                    return Err(failure);
                }
                Err(trouble) => trouble,
            };
            let so_far = (Instant::now(), trace.received);
            let pause = match tries.pause(trouble, &sink, so_far) {
                Ok(pause) => pause,
                Err(failure) => return Err(kept(failure, &sink)),
            };
            if options.verbose {
                let pause = table::time(pause);
                self.progress
                    .note(&format!("* {url} is requested again in {pause}"));
            }
            trace.further_tries += 1;
            sleep(pause).await;
        }
    }

    /// Sends one request, follows redirects, and writes the content; the response must begin by `until`. A failure status
    /// whose content is to be written is not an error here.
    async fn exchange(
        &self,
        item: &Item,
        sink: &mut Sink,
        trace: &mut Trace,
        keep_failures: bool,
        until: Option<Instant>,
    ) -> Result<Option<Failure>, Incomplete> {
        let from = sink.standing().map(|(offset, record)| From {
            offset,
            record: record.clone(),
        });
        let answer = self.answer(item, from.as_ref(), trace);
        let (ask, response) = match until {
            None => answer.await?,
            Some(until) => match timeout_at(until.into(), answer).await {
                Ok(answer) => answer?,
                Err(_) => return Err(Incomplete::Late),
            },
        };
        if self.options.heads && !std::mem::replace(&mut trace.heads_shown, true) {
            let head = transcript::head(&response) + "\n";
            let show = || output::raw(head.as_bytes());
            self.progress.suspended(show)?;
        }
        let question = Expected {
            url: &item.url,
            ask: &ask,
            from: from.as_ref(),
            has_range: self.order.has_range(),
            follow: self.options.follow,
            compressed: self.options.compressed,
            keep_failures,
        };
        let (total, failure) = match question.judge(response.status(), response.headers()) {
            Ok(Take::Nothing) => return Ok(None),
            Ok(Take::Rest(total)) => (total, None),
            Ok(Take::Whole(total, record)) => {
                self.begin_afresh(item, sink, record.as_ref(), trace);
                sink.begin(record)?;
                (total, None)
            }
            Ok(Take::Failed(failure)) => {
                sink.begin(None)?;
                (None, Some(failure))
            }
            Err(trouble) => {
                if matches!(trouble, Incomplete::Afresh) {
                    self.begin_afresh(item, sink, None, trace);
                    sink.begin(None)?;
                }
                return Err(trouble);
            }
        };
        if ask.method != Method::HEAD {
            self.check_size(item, total)?;
        }
        self.receive(item, &ask, response, total, sink, trace)
            .await?;
        Ok(failure)
    }

    /// Content starts from its beginning, in the version `new` if that is known; existing bytes are
    /// discarded.
    fn begin_afresh(&self, item: &Item, sink: &Sink, new: Option<&Record>, trace: &mut Trace) {
        trace.continued_at = None;
        trace.discarded = trace.received;
        let Some((bytes, old)) = sink.standing() else {
            return;
        };
        let why = if new.is_some_and(|new| new.validator == old.validator) {
            "the server sends the whole content"
        } else {
            "the file has changed on the server"
        };
        let (name, bytes) = (name_of(item), table::bytes(bytes));
        self.progress.note(&format!(
            "note: {name}: {why}; {bytes} are discarded, and it is fetched again"
        ));
    }

    /// Rejects content whose known or received length exceeds the limit.
    fn check_size(&self, item: &Item, bytes: Option<u64>) -> Result<(), Failure> {
        let Some(limit) = self.options.max_size else {
            return Ok(());
        };
        if bytes.is_none_or(|bytes| bytes <= limit) {
            return Ok(());
        }
        let limit = table::bytes(limit);
        Err(Failure::new(
            Exit::Failure,
            format_args!(
                "{}: more than {limit} of content (--max-filesize)",
                item.url
            ),
        ))
    }

    /// The response at the end of the redirects.
    async fn answer(
        &self,
        item: &Item,
        from: Option<&From>,
        trace: &mut Trace,
    ) -> Result<(Ask, Response<Body>), Incomplete> {
        let mut ask = self.order.ask(&item.url);
        let mut hops = 0;
        loop {
            let response = self.send(&ask, from, trace).await?;
            if !self.options.follow {
                return Ok((ask, response));
            }
            match next(&ask, response.status(), response.headers())? {
                Next::Stay => return Ok((ask, response)),
                Next::Follow(_) if hops == MAX_REDIRECTS => {
                    let text = format_args!("{}: redirected more than {hops} times", item.url);
                    return Err(Failure::new(Exit::Status, text).into());
                }
                Next::Follow(to) if to.with_data && !self.order.is_repeatable() => {
                    let text = format_args!(
                        "{}: redirected to {}, and standard input can't be sent again",
                        item.url, to.url
                    );
                    return Err(Failure::new(Exit::Status, text).into());
                }
                Next::Follow(mut to) => {
                    hops += 1;
                    to.trusted |= self.options.trust_redirects;
                    trace.led_to = Some(to.url.clone());
                    ask = to;
                }
            }
        }
    }

    async fn send(
        &self,
        ask: &Ask,
        from: Option<&From>,
        trace: &mut Trace,
    ) -> Result<Response<Body>, Incomplete> {
        let (mut request, upload) = self.order.request(ask, from).await?;
        if self.options.verbose {
            transcript::request(&request, &self.progress);
        }
        let measurements = Measurements::new();
        request.extensions_mut().insert(measurements.clone());
        trace.measurements = Some(measurements);
        trace.status = None;
        // A request whose content failed gets no response.
        let response = tokio::select! {
            biased;
            failure = unreadable(upload.as_ref()) => return Err(Incomplete::Final(failure)),
            answered = self.send_plainly(request) => answered,
        };
        let response = response.map_err(|error| {
            let failure = request_failure(&error, &ask.url);
            match error {
                Error::Unreachable(_) => Incomplete::Unreachable(failure),
                _ => Incomplete::Unanswered(failure),
            }
        })?;
        trace.status = Some(response.status());
        trace.chosen = response.extensions().get().copied();
        trace.selection = response.extensions().get().cloned();
        if self.options.verbose {
            transcript::response(&response, self.options.protocol, &self.progress);
        }
        Ok(response)
    }

    /// Sends `request`; compressed content is decompressed if requested.
    async fn send_plainly(&self, request: Request<Body>) -> Result<Response<Body>, Error> {
        if !self.options.compressed {
            let response = self.client.send(request).await?;
            return Ok(response.map(Body::new));
        }
        let client = self.client.clone();
        let service = service_fn(move |request| {
            let client = client.clone();
            async move { client.send(request).await }
        });
        let response = Decompression::new(service).oneshot(request).await?;
        Ok(response.map(Body::new))
    }

    /// Writes the content to `sink`, which then has `total` bytes if that is known.
    async fn receive(
        &self,
        item: &Item,
        ask: &Ask,
        response: Response<Body>,
        total: Option<u64>,
        sink: &mut Sink,
        trace: &mut Trace,
    ) -> Result<(), Incomplete> {
        let protocol = trace.chosen.map(|chosen| chosen.protocol);
        let by_quic = protocol == Some(client::Protocol::Http3);
        let paces = self.paces.as_ref().filter(|_| !by_quic);
        let pace = paces.map(|paces| paces.of(target(&ask.url)));
        let odometer = self.odometer(ask).filter(|_| by_quic);
        let connection = self.connection(ask).filter(|_| by_quic);
        if let (Some(paths), Some(connection)) = (&self.paths, &connection) {
            paths.attend(connection, []);
        }
        let bar = self.progress.transfer(&name_of(item), total);
        let mut there = sink.standing().map_or(0, |(offset, _)| offset);
        bar.advance(there);
        let mut body = response.into_body();
        while let Some(frame) =
            std::future::poll_fn(|cx| std::pin::Pin::new(&mut body).poll_frame(cx)).await
        {
            let frame =
                frame.map_err(|error| Incomplete::Broken(content_failure(&*error, &ask.url)))?;
            match frame.into_data() {
                Ok(data) => {
                    if let Err(failure) = self.check_size(item, Some(there + data.len() as u64)) {
                        // The content is not needed.
                        sink.begin(None)?;
                        return Err(failure.into());
                    }
                    sink.write(&data).await?;
                    let bytes = data.len() as u64;
                    (trace.received, there) = (trace.received + bytes, there + bytes);
                    bar.advance(bytes);
                    if let Some(odometer) = &odometer {
                        odometer.advance(bytes);
                    }
                    if let Some(pace) = &pace {
                        pace.spend(data.len()).await;
                    }
                }
                Err(frame) => {
                    if let (true, Some(trailers)) = (self.options.verbose, frame.trailers_ref()) {
                        transcript::trailers(trailers, &self.progress);
                    }
                }
            }
        }
        trace.paths = connection.as_ref().map(path_rows).unwrap_or_default();
        let is_short = total.is_some_and(|total| there < total);
        if is_short && ask.method != Method::HEAD {
            let text = format_args!("{} ended the content too early", target(&ask.url));
            return Err(Incomplete::Broken(Failure::new(Exit::Connection, text)));
        }
        Ok(())
    }

    fn odometer(&self, ask: &Ask) -> Option<Arc<Odometer>> {
        let moves = self.moves.as_ref()?;
        moves.odometer(&self.client, &origin(ask)?)
    }

    /// The connection over HTTP/3 to the server, if there is one.
    fn connection(&self, ask: &Ask) -> Option<Connection> {
        self.client.http3_connection(&origin(ask)?)
    }
}

fn origin(ask: &Ask) -> Option<Origin> {
    let uri = ask.url.to_string().parse().ok()?;
    Origin::of(&uri).ok()
}

/// Waits until reading the content fails.
async fn unreadable(upload: Option<&Upload>) -> Failure {
    match upload {
        Some(upload) => upload.failed().await,
        None => std::future::pending().await,
    }
}

/// The failure, with a hint.
fn kept(failure: Failure, sink: &Sink) -> Failure {
    match sink.standing() {
        Some((bytes, _)) if !failure.message().is_empty() => Failure::new(
            failure.exit,
            format_args!("{failure} ({bytes} bytes are kept: -C continues)"),
        ),
        _ => failure,
    }
}

/// For a progress bar.
fn name_of(item: &Item) -> String {
    match &item.place {
        Place::File(path) | Place::Device(path) => {
            let name = path.file_name().unwrap_or(path.as_os_str());
            name.to_string_lossy().into_owned()
        }
        Place::Stdout | Place::Nowhere => item.url.host().to_owned(),
    }
}
