//! Collects the content of a response in memory, up to a limit.

use std::future::Future;

use bytes::{Bytes, BytesMut};
use http::Response;
use http_body_util::BodyExt;
use serde::de::DeserializeOwned;
use thiserror::Error;

use super::body::ClientBody;
use super::error::Error;

/// Limit that [`ResponseExt`] applies where none is given: 16 MiB.
pub const DEFAULT_CONTENT_LIMIT: usize = 16 << 20;

/// Why content could not be collected.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ContentError {
    /// There is more content than this many bytes.
    #[error("the content is longer than {0} bytes")]
    TooLong(usize),
    /// The content ended before it was complete.
    #[error(transparent)]
    Broken(#[from] Error),
    /// It is not UTF-8.
    #[error("the content is not UTF-8: {0}")]
    Text(#[from] std::string::FromUtf8Error),
    /// It is not JSON, or not of the requested type.
    #[error("the content is not the expected JSON: {0}")]
    Json(#[from] serde_json::Error),
}

/// Collects the whole content of a response. Content beyond the limit is an error and is not read.
pub trait ResponseExt: Sized + private::Sealed {
    /// At most `limit` bytes.
    fn bytes_within(self, limit: usize)
    -> impl Future<Output = Result<Bytes, ContentError>> + Send;

    /// At most [`DEFAULT_CONTENT_LIMIT`] bytes.
    fn bytes(self) -> impl Future<Output = Result<Bytes, ContentError>> + Send {
        self.bytes_within(DEFAULT_CONTENT_LIMIT)
    }

    /// Text in UTF-8, at most [`DEFAULT_CONTENT_LIMIT`] bytes; the `charset` of Content-Type is ignored.
    fn text(self) -> impl Future<Output = Result<String, ContentError>> + Send;

    /// JSON (RFC 8259), at most [`DEFAULT_CONTENT_LIMIT`] bytes; Content-Type is ignored.
    fn json<T: DeserializeOwned>(self) -> impl Future<Output = Result<T, ContentError>> + Send;
}

impl ResponseExt for Response<ClientBody> {
    async fn bytes_within(self, limit: usize) -> Result<Bytes, ContentError> {
        let mut body = self.into_body();
        let mut content = BytesMut::new();
        while let Some(frame) = body.frame().await {
            // Bytes after the end of the content belong to no response.
            let Ok(data) = frame?.into_data() else {
                continue;
            };
            if data.len() > limit.saturating_sub(content.len()) {
                return Err(ContentError::TooLong(limit));
            }
            content.extend_from_slice(&data);
        }
        Ok(content.freeze())
    }

    async fn text(self) -> Result<String, ContentError> {
        Ok(String::from_utf8(self.bytes().await?.into())?)
    }

    async fn json<T: DeserializeOwned>(self) -> Result<T, ContentError> {
        Ok(serde_json::from_slice(&self.bytes().await?)?)
    }
}

mod private {
    /// Only responses of this client have this type of content.
    pub trait Sealed {}

    impl Sealed for http::Response<super::ClientBody> {}
}
