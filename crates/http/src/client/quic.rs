//! One QUIC connection attempt, with the request as early data (0-RTT) if the session permits it.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::time::Duration;

use http::{HeaderValue, Request, Response};
use swiftwater_net::quic::{ClientConfig, ConnectionError};
use swiftwater_net::{Connection, Endpoint};
use tokio::time::{Instant, timeout};

use super::error::AttemptCause;
use super::timeouts::Phase;
use super::udp_probe;
use crate::h3;
use crate::udp::{ALPN_HTTP3, ClientError, RecvBody, SendRequest};
use crate::web::body::Body;

/// The QUIC side of a client.
#[derive(Clone)]
pub(super) struct QuicSide {
    pub(super) endpoint: Endpoint,
    pub(super) config: ClientConfig,
}

/// An HTTP/3 connection of the pool.
#[derive(Clone)]
pub(super) struct Http3Link {
    pub(super) sender: SendRequest,
    /// The alternative service that it is connected to, for Alt-Used (RFC 7838, section 5).
    pub(super) alternative: Option<HeaderValue>,
}

/// The response to a request sent as early data.
pub(super) type EarlyResponse =
    Pin<Box<dyn Future<Output = Result<Response<RecvBody>, ClientError>> + Send>>;

/// A new connection whose handshake is complete.
pub(super) struct QuicOpened {
    pub(super) sender: SendRequest,
    pub(super) handshake: Duration,
    pub(super) early: Option<EarlyResponse>,
}

/// Inputs of an attempt.
#[derive(Clone)]
pub(super) struct QuicPlan {
    pub(super) side: QuicSide,
    /// The name that the server's certificate must match.
    pub(super) host: String,
    pub(super) http3: h3::Config,
    pub(super) limit: Duration,
}

/// Connects to `address`. `early` is sent as early data if that is permitted, otherwise dropped. Fails at once
/// if ICMP reports that the port is unreachable.
pub(super) async fn open(
    plan: QuicPlan,
    address: SocketAddr,
    early: Option<Request<Body>>,
) -> Result<QuicOpened, AttemptCause> {
    let limit = plan.limit;
    let endpoint = plan.side.endpoint.clone();
    let connected = async {
        tokio::select! {
            biased;
            done = attempt(plan, address, early) => done,
            refusal = refusal(&endpoint, address) => Err(refusal.into()),
        }
    };
    let done = timeout(limit, connected).await;
    done.unwrap_or(Err(AttemptCause::Timeout(Phase::Quic)))
}

/// Waits until it is known that `address` can't be reached.
async fn refusal(endpoint: &Endpoint, address: SocketAddr) -> io::Error {
    match endpoint.carrier() {
        Some(carrier) => carrier.refusal(address).await,
        None => udp_probe::refusal(endpoint.local_addr().ip(), address).await,
    }
}

async fn attempt(
    plan: QuicPlan,
    address: SocketAddr,
    early: Option<Request<Body>>,
) -> Result<QuicOpened, AttemptCause> {
    let begun = Instant::now();
    let connect = || {
        plan.side
            .endpoint
            .connect(&plan.side.config, address, &plan.host)
    };
    let mut connecting = connect()?;
    if let Some(request) = early {
        match connecting.into_early() {
            Ok(connection) => match try_early(connection, &plan, request, begun).await {
                // A rejected request is sent again after the handshake.
                Err(AttemptCause::Quic(ConnectionError::EarlyDataLost)) => connecting = connect()?,
                done => return done,
            },
            Err(other) => connecting = other,
        }
    }
    let connection = connecting.await?;
    check(&connection)?;
    Ok(QuicOpened {
        sender: SendRequest::new(connection, plan.http3),
        handshake: begun.elapsed(),
        early: None,
    })
}

async fn try_early(
    connection: Connection,
    plan: &QuicPlan,
    request: Request<Body>,
    begun: Instant,
) -> Result<QuicOpened, AttemptCause> {
    let sender = SendRequest::new(connection.clone(), plan.http3);
    let mut response: EarlyResponse = {
        let sender = sender.clone();
        Box::pin(async move { sender.send(request).await })
    };
    // The response is polled first, because polling it sends the request.
    tokio::select! {
        biased;
        done = &mut response => {
            if let Some(reason) = connection.close_reason() {
                return Err(reason.into());
            }
            response = Box::pin(std::future::ready(done));
        }
        outcome = connection.early_data() => {
            outcome?;
        }
    }
    check(&connection)?;
    Ok(QuicOpened {
        sender,
        handshake: begun.elapsed(),
        early: Some(response),
    })
}

fn check(connection: &Connection) -> Result<(), AttemptCause> {
    if connection.alpn().as_deref() == Some(ALPN_HTTP3) {
        Ok(())
    } else {
        Err(AttemptCause::NotHttp3)
    }
}
