//! The content of a response as a whole, in memory, with a limit.

use std::future::Future;

use bytes::{Bytes, BytesMut};
use http::Response;
use http_body_util::BodyExt;
use serde::de::DeserializeOwned;
use thiserror::Error;

use super::body::ClientBody;
use super::error::Error;

/// The most content that [`ResponseExt`] takes without being told how much: 16 MiB.
pub const DEFAULT_CONTENT_LIMIT: usize = 16 << 20;

/// Content could not be had as a whole.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ContentError {
    /// There is more content than this many bytes.
    #[error("the content is longer than {0} bytes")]
    TooLong(usize),
    /// It broke off.
    #[error(transparent)]
    Broken(#[from] Error),
    /// It is not UTF-8.
    #[error("the content is not UTF-8: {0}")]
    Text(#[from] std::string::FromUtf8Error),
    /// It is not JSON, or not of the type asked for.
    #[error("the content is not the JSON that was expected: {0}")]
    Json(#[from] serde_json::Error),
}

/// The whole content of a response. What is longer than a limit is an error, and is read no further.
pub trait ResponseExt: Sized + private::Sealed {
    /// At most `limit` bytes.
    fn bytes_within(self, limit: usize)
    -> impl Future<Output = Result<Bytes, ContentError>> + Send;

    /// At most [`DEFAULT_CONTENT_LIMIT`] bytes.
    fn bytes(self) -> impl Future<Output = Result<Bytes, ContentError>> + Send {
        self.bytes_within(DEFAULT_CONTENT_LIMIT)
    }

    /// Text in UTF-8, at most [`DEFAULT_CONTENT_LIMIT`] bytes; the `charset` of Content-Type is not looked at.
    fn text(self) -> impl Future<Output = Result<String, ContentError>> + Send;

    /// JSON (RFC 8259), at most [`DEFAULT_CONTENT_LIMIT`] bytes; Content-Type is not looked at.
    fn json<T: DeserializeOwned>(self) -> impl Future<Output = Result<T, ContentError>> + Send;
}

impl ResponseExt for Response<ClientBody> {
    async fn bytes_within(self, limit: usize) -> Result<Bytes, ContentError> {
        let mut body = self.into_body();
        let mut content = BytesMut::new();
        while let Some(frame) = body.frame().await {
            // What comes behind the content is nobody's here.
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
    /// Only responses of this client have content of this kind.
    pub trait Sealed {}

    impl Sealed for http::Response<super::ClientBody> {}
}
