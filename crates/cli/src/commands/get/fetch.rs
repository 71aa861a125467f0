//! One address, from its first request to its last byte.

use std::sync::Arc;
use std::time::{Duration, Instant};

use http::header::RETRY_AFTER;
use http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body::Body as _;
use swiftwater_http::client::{Chosen, Error, HttpClient, Measurements, Origin, Protocol};
use swiftwater_http::web::body::Body;
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};
use tower::{ServiceExt, service_fn};
use tower_http::decompression::Decompression;

use super::failures::{content_failure, request_failure, status_failure, target};
use super::moving::Moves;
use super::order::{Ask, From, Order};
use super::pace::Paces;
use super::plan::{Item, Place};
use super::redirect::{MAX_REDIRECTS, Next, location, next};
use super::sink::Sink;
use super::transcript;
use super::tries::{Tries, Trouble};
use super::{range, upload::Upload};
use crate::exit::{Exit, Failure};
use crate::migrate::Odometer;
use crate::output;
use crate::progress::Progress;
use crate::url::Url;

/// What all addresses share.
pub(super) struct Context {
    pub(super) client: HttpClient,
    pub(super) order: Order,
    pub(super) slots: Semaphore,
    pub(super) progress: Progress,
    pub(super) paces: Option<Paces>,
    pub(super) moves: Option<Moves>,
    pub(super) options: Options,
}

/// What the flags say of every address.
#[derive(Clone, Copy, Debug)]
pub(super) struct Options {
    pub(super) overwrite: bool,
    pub(super) continuation: bool,
    pub(super) follow: bool,
    pub(super) compressed: bool,
    pub(super) keep_failures: bool,
    /// Heads of responses go to standard output.
    pub(super) heads: bool,
    pub(super) verbose: bool,
    pub(super) retry: u32,
    pub(super) max_time: Option<Duration>,
}

/// How it went.
pub(super) struct Outcome {
    pub(super) item: Item,
    pub(super) result: Result<Ending, Failure>,
    pub(super) trace: Trace,
    pub(super) elapsed: Duration,
}

/// A good end.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Ending {
    Complete,
    /// The file was there, and with `--continue` that is enough.
    Existed,
}

/// What is known of the way, whatever the end. Of several requests, the last.
#[derive(Debug, Default)]
pub(super) struct Trace {
    pub(super) status: Option<StatusCode>,
    pub(super) chosen: Option<Chosen>,
    pub(super) measurements: Option<Measurements>,
    /// Where redirects led.
    pub(super) led_to: Option<Url>,
    /// Bytes of content received in this run.
    pub(super) received: u64,
    /// Bytes that were there before.
    pub(super) continued_at: Option<u64>,
    /// Requests beyond the first, redirects not counted.
    pub(super) further_tries: u32,
    heads_shown: bool,
}

/// What to do with the content of a response.
enum Take {
    /// It is all of it, and this is its length if known.
    Whole(Option<u64>),
    /// It is the rest, up to this length.
    Rest(Option<u64>),
    /// There was nothing left to fetch.
    Nothing,
    /// It belongs to a failure, and is wanted all the same.
    Failed(Failure),
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
    /// Asks until the content is complete or patience ends.
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
        let order = &self.order;
        let mut tries = Tries::new(options.retry, &order.method, order.is_repeatable());
        loop {
            let keep_failures = options.keep_failures && !tries.may_repeat();
            let trouble = match self.exchange(item, &mut sink, trace, keep_failures).await {
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
            let pause = match tries.pause(trouble, &sink) {
                Ok(pause) => pause,
                Err(failure) => return Err(kept(failure, &sink)),
            };
            tracing::info!(url, ?pause, "the address is asked once more");
            trace.further_tries += 1;
            sleep(pause).await;
        }
    }

    /// Asks once, redirects followed, and takes the content. A failure whose content was wanted is no
    /// error here.
    async fn exchange(
        &self,
        item: &Item,
        sink: &mut Sink,
        trace: &mut Trace,
        keep_failures: bool,
    ) -> Result<Option<Failure>, Trouble> {
        let from = sink.standing().map(|(offset, record)| From {
            offset,
            record: record.clone(),
        });
        let (ask, response) = self.answer(item, from.as_ref(), trace).await?;
        if self.options.heads && !std::mem::replace(&mut trace.heads_shown, true) {
            let head = transcript::head(&response) + "\n";
            let show = || output::raw(head.as_bytes());
            self.progress.suspended(show)?;
        }
        let status = response.status();
        let headers = response.headers();
        let take = match (&from, status) {
            (Some(from), StatusCode::PARTIAL_CONTENT) => {
                let rest = range::rest(headers, from.offset, &from.record);
                rest.map(|rest| Take::Rest(rest.total))
            }
            (Some(from), StatusCode::RANGE_NOT_SATISFIABLE) => {
                let all = range::is_all(headers, from.offset, &from.record);
                all.then_some(Take::Nothing)
            }
            _ => Some(self.judge(&ask, &response, from.is_some(), keep_failures)?),
        };
        let Some(take) = take else {
            sink.begin(None)?;
            trace.continued_at = None;
            return Err(Trouble::Afresh);
        };
        let failure = match take {
            Take::Nothing => return Ok(None),
            Take::Rest(total) => {
                self.receive(item, &ask, response, total, sink, trace)
                    .await?;
                None
            }
            Take::Whole(total) => {
                trace.continued_at = None;
                let record = if self.is_plain(&ask, status) {
                    range::record(&item.url.to_string(), headers)
                } else {
                    None
                };
                sink.begin(record)?;
                self.receive(item, &ask, response, total, sink, trace)
                    .await?;
                None
            }
            Take::Failed(failure) => {
                sink.begin(None)?;
                self.receive(item, &ask, response, None, sink, trace)
                    .await?;
                Some(failure)
            }
        };
        Ok(failure)
    }

    /// A response that a later request could continue.
    fn is_plain(&self, ask: &Ask, status: StatusCode) -> bool {
        ask.method == Method::GET
            && !ask.with_data
            && status == StatusCode::OK
            && !self.options.compressed
            && !self.order.has_range()
    }

    /// What to do with a response that is no part.
    fn judge(
        &self,
        ask: &Ask,
        response: &Response<Body>,
        continues: bool,
        keep_failures: bool,
    ) -> Result<Take, Trouble> {
        let (status, headers) = (response.status(), response.headers());
        if status == StatusCode::PARTIAL_CONTENT && !self.order.has_range() {
            let more = "a part that nobody asked for";
            return Err(Trouble::Final(status_failure(&ask.url, status, more)));
        }
        if status.is_success() {
            let length = range::length(headers).filter(|_| !self.options.compressed);
            return Ok(Take::Whole(length));
        }
        let more = match location(headers) {
            Some(to) if status.is_redirection() && !self.options.follow => {
                format!("it is at {to}; -L follows")
            }
            _ => String::new(),
        };
        let failure = status_failure(&ask.url, status, &more);
        // What is there is worth more than the words of a failure.
        if keep_failures && !continues {
            return Ok(Take::Failed(failure));
        }
        Err(if is_busy(status) {
            Trouble::Busy(failure, retry_after(headers))
        } else {
            Trouble::Final(failure)
        })
    }

    /// The response at the end of the redirects.
    async fn answer(
        &self,
        item: &Item,
        from: Option<&From>,
        trace: &mut Trace,
    ) -> Result<(Ask, Response<Body>), Trouble> {
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
                Next::Follow(to) => {
                    hops += 1;
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
    ) -> Result<Response<Body>, Trouble> {
        let (mut request, upload) = self.order.request(ask, from).await?;
        if self.options.verbose {
            transcript::request(&request, &self.progress);
        }
        let measurements = Measurements::new();
        request.extensions_mut().insert(measurements.clone());
        trace.measurements = Some(measurements);
        trace.status = None;
        // Without its content, a request is not worth waiting for.
        let response = tokio::select! {
            biased;
            failure = unreadable(upload.as_ref()) => return Err(Trouble::Final(failure)),
            answered = self.send_plainly(request) => answered,
        };
        let response =
            response.map_err(|error| Trouble::Unreachable(request_failure(&error, &ask.url)))?;
        trace.status = Some(response.status());
        trace.chosen = response.extensions().get().copied();
        if self.options.verbose {
            transcript::response(&response, &self.progress);
        }
        Ok(response)
    }

    /// Sends `request`; what is compressed comes restored if that was wanted.
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

    /// Takes the content into `sink`, which then has `total` bytes if that is known.
    async fn receive(
        &self,
        item: &Item,
        ask: &Ask,
        response: Response<Body>,
        total: Option<u64>,
        sink: &mut Sink,
        trace: &mut Trace,
    ) -> Result<(), Trouble> {
        let protocol = trace.chosen.map(|chosen| chosen.protocol);
        let by_quic = protocol == Some(Protocol::Http3);
        let paces = self.paces.as_ref().filter(|_| !by_quic);
        let pace = paces.map(|paces| paces.of(target(&ask.url)));
        let odometer = self.odometer(ask).filter(|_| by_quic);
        let bar = self.progress.transfer(&name_of(item), total);
        let mut there = sink.standing().map_or(0, |(offset, _)| offset);
        bar.advance(there);
        let mut body = response.into_body();
        while let Some(frame) =
            std::future::poll_fn(|cx| std::pin::Pin::new(&mut body).poll_frame(cx)).await
        {
            let frame =
                frame.map_err(|error| Trouble::Broken(content_failure(&*error, &ask.url)))?;
            match frame.into_data() {
                Ok(data) => {
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
        let is_short = total.is_some_and(|total| there < total);
        if is_short && ask.method != Method::HEAD {
            let text = format_args!("{} ended the content too early", target(&ask.url));
            return Err(Trouble::Broken(Failure::new(Exit::Connection, text)));
        }
        Ok(())
    }

    fn odometer(&self, ask: &Ask) -> Option<Arc<Odometer>> {
        let moves = self.moves.as_ref()?;
        let uri = ask.url.to_string().parse().ok()?;
        let origin = Origin::of(&uri).ok()?;
        moves.odometer(&self.client, &origin)
    }
}

/// Waits until the content can't be read.
async fn unreadable(upload: Option<&Upload>) -> Failure {
    match upload {
        Some(upload) => upload.failed().await,
        None => std::future::pending().await,
    }
}

/// The failure, and what can be done about it.
fn kept(failure: Failure, sink: &Sink) -> Failure {
    match sink.standing() {
        Some((bytes, _)) if !failure.message().is_empty() => Failure::new(
            failure.exit,
            format_args!("{failure} ({bytes} bytes are there: -C continues)"),
        ),
        _ => failure,
    }
}

/// For a bar.
fn name_of(item: &Item) -> String {
    match &item.place {
        Place::File(path) | Place::Device(path) => {
            let name = path.file_name().unwrap_or(path.as_os_str());
            name.to_string_lossy().into_owned()
        }
        Place::Stdout | Place::Nowhere => item.url.host().to_owned(),
    }
}

/// Failures that may pass.
fn is_busy(status: StatusCode) -> bool {
    matches!(
        status,
        StatusCode::REQUEST_TIMEOUT
            | StatusCode::TOO_MANY_REQUESTS
            | StatusCode::INTERNAL_SERVER_ERROR
            | StatusCode::BAD_GATEWAY
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::GATEWAY_TIMEOUT
    )
}

/// Seconds; dates are not understood (RFC 9110, section 10.2.3).
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse();
    seconds.ok().map(Duration::from_secs)
}
