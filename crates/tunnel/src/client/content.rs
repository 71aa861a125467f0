//! The content of the proxy's answer: capsules, over whatever version of HTTP.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use swiftwater_http::udp::connect::RecvContent;

use super::capsule_stream::CapsuleReceiver;
use super::error::TunnelError;

/// What the proxy sends besides datagrams.
pub(super) enum Content {
    Http3(RecvContent),
    Stream(CapsuleReceiver),
}

impl Content {
    /// The next bytes; `None` at the end. Dropping the future loses nothing.
    pub(super) async fn read(&mut self) -> Result<Option<Bytes>, TunnelError> {
        match self {
            Self::Http3(content) => Ok(content.read().await?),
            Self::Stream(stream) => {
                let chunk = stream.chunk().await;
                chunk.map_err(|error| TunnelError::Stream(Arc::new(error)))
            }
        }
    }

    /// Waits for the end, and says what it is.
    pub(super) async fn end(&mut self) -> TunnelError {
        loop {
            match self.read().await {
                Ok(Some(_)) => {}
                Ok(None) => return TunnelError::Ended,
                Err(error) => return error,
            }
        }
    }
}

impl fmt::Debug for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Http3(_) => "Http3",
            Self::Stream(_) => "Stream",
        })
    }
}
