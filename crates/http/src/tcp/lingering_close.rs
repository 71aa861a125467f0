//! The end of a connection whose client may still be sending: what it has not read yet would be lost if the connection was
//! reset, which systems do if data arrive after the end.

use std::io;
use std::time::Duration;

use rustls::Error;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::timeout;

/// Ends `stream`; discards at most `bytes` of further data for at most `time`, so that the client reads what was sent
/// last. One that continues for longer is disconnected.
pub(super) async fn end<S>(stream: &mut S, bytes: usize, time: Duration) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    stream.shutdown().await?;
    let mut rest = stream.take(bytes as u64);
    let _ = timeout(time, tokio::io::copy(&mut rest, &mut tokio::io::sink())).await;
    Ok(())
}

/// Whether a handshake failed with `error` because of the client's certificate. With TLS 1.3 the client has sent its first
/// request by then.
pub(super) fn is_about_client_certificate(error: &io::Error) -> bool {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref());
    matches!(
        inner,
        Some(Error::InvalidCertificate(_) | Error::NoCertificatesPresented)
    )
}
