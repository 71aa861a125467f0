//! The server's side of `hq-interop`: passes every request of a connection to the HTTP service, as a
//! GET of version 0.9, and sends the content of its response.
//!
//! **Memory.** Beyond the transport's send buffer (`TransportConfig::send_window`) a request holds the
//! data that its response's body reads ahead. A connection is served [`MAX_REQUESTS`] requests at a
//! time; further ones wait within the transport's receive windows.

use std::time::Duration;

use http::{Method, Request, Response, StatusCode, Version};
use http_body_util::BodyExt;
use swiftwater::{Connection, ConnectionError, ReadError, RecvStream, SendStream, WriteError};
use swiftwater_http::web::body::{Body, BoxError};
use swiftwater_http::web::connection_info::{ConnectionInfo, Transport};
use swiftwater_http::web::early_data::EarlyData;
use swiftwater_http::web::service::WebService;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tower::ServiceExt;

use super::cancellations::Cancellations;
use super::{ALPN, MAX_REQUEST, Refusal, parse_request};

/// Concurrent requests of one connection; the usual limit of streams.
pub const MAX_REQUESTS: usize = 100;

/// Time limit of a request's line; the stream is then reset.
const REQUEST_TIME: Duration = Duration::from_secs(30);

/// Bytes written to the transport at once: the amount that a client must read within the send
/// timeout.
const WRITE_SIZE: usize = 16 * 1024;

/// The error code of connections that are closed because too many requests were cancelled.
const EXCESSIVE_LOAD: u64 = 429;

/// Why a request wasn't completed.
#[derive(Debug, thiserror::Error)]
enum ServeError {
    /// Refused, with the reason for the log.
    #[error("refused ({}): {reason}", .refusal.code())]
    Refused { refusal: Refusal, reason: String },
    /// The client stopped reading, or reset its request.
    #[error("cancelled: {0}")]
    Cancelled(String),
    /// The client does not read.
    #[error("the client read nothing for {0:?}")]
    Stalled(Duration),
    /// The connection is closed.
    #[error("not finished: {0}")]
    Lost(String),
}

impl ServeError {
    fn refused(refusal: Refusal, reason: &impl ToString) -> Self {
        Self::Refused {
            refusal,
            reason: reason.to_string(),
        }
    }
}

impl From<WriteError> for ServeError {
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::ConnectionLost(error) => Self::Lost(error.to_string()),
            // Stopped; or reset already, in reply to the client's STOP_SENDING.
            error => Self::Cancelled(error.to_string()),
        }
    }
}

/// Answers the requests of `connection` with `service` until it is closed. A response that the client
/// does not read for `send_timeout` is reset; the connection of a client that cancels too many requests
/// is closed.
///
/// When `draining` becomes true, new requests are refused; once those in progress are answered, the
/// connection is closed.
pub async fn serve_connection<S>(
    connection: Connection,
    service: S,
    mut draining: watch::Receiver<bool>,
    send_timeout: Duration,
) where
    S: WebService + Sync,
{
    let mut requests = JoinSet::new();
    let mut cancellations = Cancellations::default();
    loop {
        tokio::select! {
            accepted = connection.accept_bi(), if requests.len() < MAX_REQUESTS => {
                let Ok((mut send, recv)) = accepted else { break };
                if *draining.borrow() {
                    // A failure means that the client no longer needs it.
                    let _ = send.reset(Refusal::Unavailable.code());
                    continue;
                }
                let exchange = Exchange {
                    connection: connection.clone(),
                    send,
                    recv,
                    send_timeout,
                };
                requests.spawn(exchange.answer(service.clone()));
            }
            Some(ended) = requests.join_next() => {
                if matches!(ended, Ok(Err(ServeError::Cancelled(_)))) && !cancellations.permit() {
                    connection.close(EXCESSIVE_LOAD, b"too many requests were cancelled");
                    break;
                }
            }
            () = drain_begins(&mut draining), if !*draining.borrow() => {}
        }
        if *draining.borrow() && requests.is_empty() {
            connection.close(0, b"server is shutting down");
            break;
        }
    }
    while requests.join_next().await.is_some() {}
    let client = connection.remote_address();
    let key_updates = connection.stats().key_updates;
    tracing::info!(%client, key_updates, "all requests of a client ended");
}

/// Waits until `draining` is true; forever if its sender is gone.
async fn drain_begins(draining: &mut watch::Receiver<bool>) {
    if draining.wait_for(|draining| *draining).await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// One request and its response.
struct Exchange {
    connection: Connection,
    send: SendStream,
    recv: RecvStream,
    send_timeout: Duration,
}

impl Exchange {
    /// Answers and waits until the client has acknowledged everything.
    async fn answer<S: WebService>(mut self, service: S) -> Result<(), ServeError> {
        let outcome = self.try_answer(service).await;
        if let Err(error) = &outcome {
            let code = match error {
                ServeError::Refused { refusal, .. } => refusal.code(),
                _ => Refusal::Internal.code(),
            };
            let _ = self.send.reset(code);
            tracing::debug!(client = %self.connection.remote_address(), %error, "hq-interop");
        }
        // The stream's end may arrive after the line. Clients may not support STOP_SENDING here.
        let _ = timeout(Duration::from_secs(1), self.recv.read_to_end(MAX_REQUEST)).await;
        outcome
    }

    async fn try_answer<S: WebService>(&mut self, service: S) -> Result<(), ServeError> {
        let path = timeout(REQUEST_TIME, read_request(&mut self.recv))
            .await
            .map_err(|_| ServeError::refused(Refusal::BadRequest, &"no request within 30 s"))??;
        let request = self.request(&path)?;
        let response = service.oneshot(request).await.map_err(|error| {
            let error: BoxError = error.into();
            ServeError::refused(Refusal::Internal, &error)
        })?;
        self.send_content(response.map(Body::new)).await?;
        self.send.finish()?;
        self.wait_for_acknowledgement().await
    }

    /// The request as passed to services.
    fn request(&self, path: &str) -> Result<Request<Body>, ServeError> {
        let request = Request::builder()
            .method(Method::GET)
            .version(Version::HTTP_09)
            .uri(path)
            .body(Body::empty());
        let mut request =
            request.map_err(|error| ServeError::refused(Refusal::BadRequest, &error))?;
        let extensions = request.extensions_mut();
        extensions.insert(self.connection_info());
        if self.recv.is_early_data() {
            extensions.insert(EarlyData);
        }
        Ok(request)
    }

    fn connection_info(&self) -> ConnectionInfo {
        ConnectionInfo {
            peer: self.connection.remote_address(),
            local: self.connection.local_address(),
            protocol: Transport::Quic,
            alpn: Some(ALPN.into()),
            server_name: self.connection.server_name().map(Into::into),
            client_chain: None,
        }
    }

    async fn send_content(&mut self, response: Response<Body>) -> Result<(), ServeError> {
        let status = response.status();
        if status != StatusCode::OK {
            return Err(ServeError::refused(Refusal::of(status), &status));
        }
        let mut body = response.into_body();
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| ServeError::refused(Refusal::Internal, &error))?;
            // Trailers can't be sent.
            let Ok(mut data) = frame.into_data() else {
                continue;
            };
            while !data.is_empty() {
                let part = data.split_to(data.len().min(WRITE_SIZE));
                timeout(self.send_timeout, self.send.write_chunk(part))
                    .await
                    .map_err(|_| ServeError::Stalled(self.send_timeout))??;
            }
        }
        Ok(())
    }

    /// Waits until the client has acknowledged everything, as long as it makes progress.
    async fn wait_for_acknowledgement(&mut self) -> Result<(), ServeError> {
        let mut sent = None;
        loop {
            match timeout(self.send_timeout, self.send.stopped()).await {
                // Clients often close the connection before the last acknowledgement.
                Ok(Ok(None) | Err(ConnectionError::PeerApplication { code: 0, .. })) => {
                    return Ok(());
                }
                Ok(Ok(Some(code))) => {
                    let why = format!("the client stopped reading with code {code}");
                    return Err(ServeError::Cancelled(why));
                }
                Ok(Err(error)) => return Err(ServeError::Lost(error.to_string())),
                Err(_) => {
                    let now = self.connection.stats().stream_bytes_sent;
                    if sent.replace(now) == Some(now) {
                        return Err(ServeError::Stalled(self.send_timeout));
                    }
                }
            }
        }
    }
}

async fn read_request(recv: &mut RecvStream) -> Result<String, ServeError> {
    let mut line = Vec::new();
    loop {
        let chunk = recv
            .read_chunk(MAX_REQUEST)
            .await
            .map_err(|error| match error {
                ReadError::Reset(_) => ServeError::Cancelled(error.to_string()),
                error => ServeError::Lost(error.to_string()),
            })?;
        let finished = chunk.is_none();
        line.extend_from_slice(&chunk.unwrap_or_default());
        match parse_request(&line, finished) {
            Ok(Some(path)) => return Ok(path.to_owned()),
            Ok(None) => {}
            Err(error) => return Err(ServeError::refused(error.into(), &error)),
        }
    }
}
