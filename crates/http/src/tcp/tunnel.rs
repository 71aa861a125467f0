//! Byte streams in the place of messages: accepted upgrades of HTTP/1.1 and accepted CONNECT. hyper hands out the
//! connection or the stream; a task of the connection moves the bytes between it and the service's bodies.

use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Buf, Bytes};
use http::header::CONNECTION;
use http::{HeaderMap, Method, Request, Response, Version};
use http_body::{Body as HttpBody, Frame};
use hyper::body::Incoming;
use hyper::ext::Protocol;
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncWrite, AsyncWriteExt, ReadHalf, WriteHalf};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::time::timeout;

use super::exchange::{Exchange, Piece};
use super::limits::TcpLimits;
use crate::h3::ConnectProtocol;
use crate::web::body::{Body, BoxError};
use crate::web::upgrade::{ChunkReader, UpgradeRequest};

/// Pieces from the client that wait for the service, at most.
const QUEUED: usize = 1;

/// Most bytes that are written at once: HTTP/2 copies them.
const WRITTEN_AT_ONCE: usize = 16 * 1024;

/// The server's part of an [`UpgradeRequest`].
pub(super) struct Offer {
    upgrade: OnUpgrade,
    request: UpgradeRequest,
    version: Version,
    feed: Sender<Fed>,
}

/// What the client sent.
enum Fed {
    Bytes(Bytes),
    End,
    Failure(io::Error),
}

/// Adds an [`UpgradeRequest`] to a request for another protocol.
pub(super) fn offer(request: &mut Request<Incoming>) -> Option<Offer> {
    let upgrade = request.extensions_mut().remove::<OnUpgrade>()?;
    // The content would have to be read before the other protocol's bytes.
    if !request.body().is_end_stream() {
        return None;
    }
    let (feed, fed) = channel(QUEUED);
    let incoming = Body::new(FromClient { fed });
    let asked = if request.method() == Method::CONNECT {
        let protocol = request.extensions_mut().remove::<Protocol>();
        let protocol = protocol.and_then(|protocol| ConnectProtocol::new(protocol.as_str()));
        if let Some(protocol) = &protocol {
            request.extensions_mut().insert(protocol.clone());
        }
        UpgradeRequest::connect(protocol.as_ref().map(ConnectProtocol::as_str), incoming)
    } else if request.version() == Version::HTTP_11 && names_upgrade(request.headers()) {
        UpgradeRequest::upgrade(request.headers(), incoming)
    } else {
        return None;
    };
    request.extensions_mut().insert(asked.clone());
    Some(Offer {
        upgrade,
        request: asked,
        version: request.version(),
        feed,
    })
}

/// Whether `Upgrade` is a field of this connection (RFC 9110, section 7.8).
fn names_upgrade(headers: &HeaderMap) -> bool {
    let values = headers.get_all(CONNECTION).iter();
    values
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .any(|name| name.trim().eq_ignore_ascii_case("upgrade"))
}

impl Offer {
    /// Whether the service accepts.
    pub(super) fn is_accepted_by<B>(&self, response: &Response<B>) -> bool {
        self.request.is_accepted_by(response.status())
    }

    /// Whether the connection itself becomes the byte stream.
    pub(super) fn leaves_http(&self) -> bool {
        self.version < Version::HTTP_2
    }

    /// Moves the bytes of an accepted request until both ends are done; `outgoing` are those for the client.
    pub(super) async fn run<B>(self, outgoing: B, exchange: Arc<Exchange>, limits: Arc<TcpLimits>)
    where
        B: HttpBody<Data = Piece>,
        B::Error: Into<BoxError>,
    {
        let Self {
            upgrade,
            request,
            feed,
            ..
        } = self;
        // Only the service's clones count from here on.
        drop(request);
        let upgraded = match upgrade.await {
            Ok(upgraded) => upgraded,
            Err(error) => {
                let _ = feed.send(Fed::Failure(io::Error::other(error))).await;
                return;
            }
        };
        let (reader, writer) = tokio::io::split(TokioIo::new(upgraded));
        if let Err(error) = move_all(reader, writer, feed, outgoing, &limits).await {
            tracing::debug!(%error, "a tunnel broke off");
            // Resets a stream of HTTP/2; a connection is closed when this returns.
            exchange.give_up();
        }
    }
}

type Reader = ReadHalf<TokioIo<Upgraded>>;
type Writer = WriteHalf<TokioIo<Upgraded>>;

async fn move_all<B>(
    reader: Reader,
    writer: Writer,
    feed: Sender<Fed>,
    outgoing: B,
    limits: &TcpLimits,
) -> Result<(), BoxError>
where
    B: HttpBody<Data = Piece>,
    B::Error: Into<BoxError>,
{
    let mut chunks = ChunkReader::new(reader);
    let unread = {
        let mut receiving = pin!(receive(&mut chunks, &feed));
        let mut sending = pin!(send(writer, outgoing, limits.send_timeout));
        let mut is_receiving = true;
        loop {
            tokio::select! {
                biased;
                received = receiving.as_mut(), if is_receiving => {
                    received?;
                    is_receiving = false;
                }
                sent = sending.as_mut() => break sent?,
            }
        }
        if is_receiving {
            // The service may still read; otherwise the client gets the time to read the end.
            tokio::select! {
                received = receiving => received?,
                () = feed.closed() => {}
            }
        }
        feed.is_closed()
    };
    if unread {
        let _ = timeout(limits.linger_time, async {
            while let Ok(Some(_)) = chunks.chunk().await {}
        })
        .await;
    }
    Ok(())
}

/// Passes what the client sends to the service, to the end of one of them.
async fn receive(chunks: &mut ChunkReader<Reader>, feed: &Sender<Fed>) -> io::Result<()> {
    loop {
        let fed = match chunks.chunk().await {
            Ok(Some(bytes)) => Fed::Bytes(bytes),
            Ok(None) => Fed::End,
            Err(error) => {
                let _ = feed.send(Fed::Failure(error.kind().into())).await;
                return Err(error);
            }
        };
        let ends = matches!(fed, Fed::End);
        if feed.send(fed).await.is_err() || ends {
            return Ok(());
        }
    }
}

/// Sends what the service sends, and the end.
async fn send<B>(mut writer: Writer, outgoing: B, time_limit: Duration) -> Result<(), BoxError>
where
    B: HttpBody<Data = Piece>,
    B::Error: Into<BoxError>,
{
    let mut outgoing = pin!(outgoing);
    loop {
        let next = std::future::poll_fn(|cx| outgoing.as_mut().poll_frame(cx)).await;
        match next {
            None => break,
            Some(Err(error)) => return Err(error.into()),
            Some(Ok(frame)) => {
                if let Ok(mut piece) = frame.into_data() {
                    write(&mut writer, &mut piece).await?;
                }
            }
        }
    }
    timeout(time_limit, writer.shutdown()).await??;
    Ok(())
}

async fn write(writer: &mut (impl AsyncWrite + Unpin), piece: &mut Piece) -> io::Result<()> {
    while piece.has_remaining() {
        let chunk = piece.chunk();
        let written = writer
            .write(&chunk[..chunk.len().min(WRITTEN_AT_ONCE)])
            .await?;
        if written == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        piece.advance(written);
    }
    writer.flush().await
}

/// The bytes of the client as the service reads them.
struct FromClient {
    fed: Receiver<Fed>,
}

impl HttpBody for FromClient {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        self.fed.poll_recv(cx).map(|fed| match fed {
            Some(Fed::Bytes(bytes)) => Some(Ok(Frame::data(bytes))),
            Some(Fed::End) => None,
            Some(Fed::Failure(error)) => Some(Err(error)),
            // The connection ended, or the request was not accepted.
            None => Some(Err(io::ErrorKind::ConnectionAborted.into())),
        })
    }
}
