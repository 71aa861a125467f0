//! Why a proxy over TCP does not accept the user's certificate: with TLS 1.3 its alert comes when the client's handshake is
//! over (RFC 8446, section 4.4.2.4), so HTTP sees a connection that breaks.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_rustls::rustls::{AlertDescription, Error};

use super::error::OpenError;

/// The alert that ended a connection, once it came.
#[derive(Clone, Debug, Default)]
pub(super) struct ReceivedAlert(Arc<OnceLock<AlertDescription>>);

impl ReceivedAlert {
    /// The error that it means, if it is about the certificate.
    pub(super) fn refusal(&self) -> Option<OpenError> {
        let why = match self.0.get()? {
            AlertDescription::CertificateExpired => "it has expired",
            AlertDescription::CertificateRevoked => "it was revoked",
            AlertDescription::UnknownCA => "its issuer is not trusted",
            AlertDescription::CertificateRequired => "there is none",
            AlertDescription::UnsupportedCertificate => "it is of a kind that is not supported",
            AlertDescription::BadCertificate
            | AlertDescription::CertificateUnknown
            | AlertDescription::AccessDenied => "it can't be verified",
            _ => return None,
        };
        Some(OpenError::CertificateRefused(why))
    }

    /// The same, or else `error`.
    pub(super) fn or(&self, error: impl Into<OpenError>) -> OpenError {
        self.refusal().unwrap_or_else(|| error.into())
    }

    fn note(&self, error: &io::Error) {
        let inner = error.get_ref();
        if let Some(Error::AlertReceived(alert)) = inner.and_then(|it| it.downcast_ref()) {
            // The first one ends the connection.
            let _ = self.0.set(*alert);
        }
    }
}

/// A stream over TLS whose alert is noted.
#[derive(Debug)]
pub(super) struct WithAlert<S> {
    stream: S,
    alert: ReceivedAlert,
}

impl<S> WithAlert<S> {
    pub(super) fn new(stream: S, alert: ReceivedAlert) -> Self {
        Self { stream, alert }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for WithAlert<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = ready!(Pin::new(&mut self.stream).poll_read(cx, buffer));
        Poll::Ready(read.inspect_err(|error| self.alert.note(error)))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for WithAlert<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, bytes)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
