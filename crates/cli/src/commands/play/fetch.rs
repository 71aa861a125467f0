//! Requests for playlists, manifests and segments.

use std::pin::Pin;

use bytes::Bytes;
use http::header::RANGE;
use http::{Request, StatusCode};
use http_body::Body as _;
use swiftwater_http::client::{ClientBody, HttpClient};
use swiftwater_http::web::body::Body;
use swiftwater_media::presentation::Resource;

use crate::commands::get::failures::{content_failure, request_failure, status_failure};
use crate::exit::{Exit, Failure};
use crate::url::Url;

/// Largest playlist, manifest or index, bytes: a day of segments of a second takes less.
const MAX_DESCRIPTION: usize = 16 << 20;

/// Content on its way.
pub(crate) struct Content {
    url: Url,
    body: ClientBody,
}

impl Content {
    /// Requests `resource`; returns when the response has begun.
    pub(crate) async fn request(client: &HttpClient, resource: &Resource) -> Result<Self, Failure> {
        let url = resource.url.as_str().parse::<Url>();
        let url = url.map_err(|error| Failure::new(Exit::Failure, error))?;
        let mut request = Request::get(url.to_string());
        if let Some((offset, len)) = resource.range {
            let last = offset.saturating_add(len).saturating_sub(1);
            request = request.header(RANGE, format!("bytes={offset}-{last}"));
        }
        let request = request.body(Body::empty());
        let request = request.map_err(|error| Failure::new(Exit::Usage, error))?;
        let response = client.send(request).await;
        let response = response.map_err(|error| request_failure(&error, &url))?;
        let status = response.status();
        let expected = match resource.range {
            None => StatusCode::OK,
            Some(_) => StatusCode::PARTIAL_CONTENT,
        };
        if status != expected {
            let more = match (expected, status) {
                (StatusCode::PARTIAL_CONTENT, StatusCode::OK) => "a range was requested",
                _ => "",
            };
            return Err(status_failure(&url, status, more));
        }
        Ok(Self {
            url,
            body: response.into_body(),
        })
    }

    /// The next bytes; `None` at the end. Cancelling it loses nothing.
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>, Failure> {
        loop {
            let body = &mut self.body;
            let frame = std::future::poll_fn(|cx| Pin::new(&mut *body).poll_frame(cx)).await;
            let Some(frame) = frame else {
                return Ok(None);
            };
            let frame = frame.map_err(|error| content_failure(&error, &self.url))?;
            if let Ok(data) = frame.into_data() {
                return Ok(Some(data));
            }
        }
    }
}

/// The content of a playlist, manifest or index.
pub(crate) async fn description(
    client: &HttpClient,
    resource: &Resource,
) -> Result<Vec<u8>, Failure> {
    let mut content = Content::request(client, resource).await?;
    let mut bytes = Vec::new();
    while let Some(data) = content.next().await? {
        if bytes.len() + data.len() > MAX_DESCRIPTION {
            let text = format_args!("{}: too large for a playlist or manifest", resource.url);
            return Err(Failure::new(Exit::Failure, text));
        }
        bytes.extend_from_slice(&data);
    }
    Ok(bytes)
}
