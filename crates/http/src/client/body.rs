//! The content of a response, the same type for every HTTP version.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use tokio::time::{Sleep, sleep};

use super::error::Error;
use super::measurements::{End, Recorder};
use super::origin::Origin;
use super::pool::Pool;
use super::request_content::RequestContent;
use super::tcp::{TcpLink, TcpSender};
use super::timeouts::Phase;
use crate::udp::RecvBody;

/// Source of the content.
pub(super) enum Source {
    Http3(RecvBody),
    Tcp(Incoming),
}

impl Source {
    fn is_end_stream(&self) -> bool {
        match self {
            Self::Http3(body) => body.is_end_stream(),
            Self::Tcp(body) => body.is_end_stream(),
        }
    }
}

/// The content of a response. Dropping it before its end asks the server to stop sending
/// (STOP_SENDING, RST_STREAM, or closing of an HTTP/1.1 connection).
pub struct ClientBody {
    /// `None` once it is over.
    source: Option<Source>,
    idle: Duration,
    /// Idle timer, running while content is awaited.
    sleep: Option<Pin<Box<Sleep>>>,
    recorder: Recorder,
    release: Option<Release>,
}

impl ClientBody {
    pub(super) fn new(
        source: Source,
        idle: Duration,
        recorder: Recorder,
        release: Option<Release>,
    ) -> Self {
        Self {
            source: Some(source),
            idle,
            sleep: None,
            recorder,
            release,
        }
    }

    /// Completes a response without content at once, which releases its connection.
    pub(super) async fn settle(&mut self) {
        if self.source.as_ref().is_some_and(Source::is_end_stream) {
            std::future::poll_fn(|cx| self.poll_over(cx)).await;
        }
    }

    /// After the end: gives an HTTP/1.1 connection back before the end is reported.
    fn poll_over(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if let Some(release) = &mut self.release {
            ready!(release.poll(cx));
            self.release = None;
        }
        self.source = None;
        self.recorder.end(End::Complete);
        Poll::Ready(())
    }

    fn broken(&mut self, error: Error) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        self.source = None;
        self.release = None;
        self.recorder.end(End::Broken);
        Poll::Ready(Some(Err(error)))
    }
}

impl Body for ClientBody {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        let frame = match &mut self.source {
            None => return Poll::Ready(None),
            Some(Source::Http3(body)) => Pin::new(body)
                .poll_frame(cx)
                .map(|frame| frame.map(|frame| frame.map_err(Error::from))),
            Some(Source::Tcp(body)) => Pin::new(body)
                .poll_frame(cx)
                .map(|frame| frame.map(|frame| frame.map_err(Error::from))),
        };
        let Poll::Ready(frame) = frame else {
            let idle = self.idle;
            let sleep = self.sleep.get_or_insert_with(|| Box::pin(sleep(idle)));
            ready!(sleep.as_mut().poll(cx));
            return self.broken(Error::Timeout(Phase::Body));
        };
        self.sleep = None;
        match frame {
            Some(Ok(frame)) => {
                if let Some(data) = frame.data_ref() {
                    let bytes = data.len();
                    self.recorder.received(bytes);
                }
                Poll::Ready(Some(Ok(frame)))
            }
            Some(Err(error)) => self.broken(error),
            None => {
                ready!(self.poll_over(cx));
                Poll::Ready(None)
            }
        }
    }

    /// False until the end was read, so that callers read to the end.
    fn is_end_stream(&self) -> bool {
        self.source.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        match &self.source {
            None => SizeHint::with_exact(0),
            Some(Source::Http3(body)) => body.size_hint(),
            Some(Source::Tcp(body)) => body.size_hint(),
        }
    }
}

impl fmt::Debug for ClientBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientBody")
            .field("over", &self.source.is_none())
            .finish_non_exhaustive()
    }
}

/// An HTTP/1.1 connection that is returned to the pool after the response.
pub(super) struct Release {
    pub(super) pool: Arc<Pool>,
    pub(super) origin: Origin,
    pub(super) upload: RequestContent,
    /// `None` once it was returned.
    pub(super) link: Option<TcpLink>,
}

impl Release {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(TcpLink {
            sender: TcpSender::Http1(sender),
            ..
        }) = &mut self.link
        else {
            return Poll::Ready(());
        };
        // A response that ends before its request: the HTTP/1.1 connection is closed, not returned.
        if self.upload.is_over()
            && ready!(sender.poll_ready(cx)).is_ok()
            && let Some(link) = self.link.take()
        {
            self.pool.put_http1(&self.origin, link);
        }
        self.link = None;
        Poll::Ready(())
    }
}
