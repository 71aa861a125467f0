//! The requests of `instant_acme`, by the HTTP client of this project.

use std::future::Future;
use std::pin::Pin;

use bytes::Bytes;
use http::Request;
use http_body_util::BodyExt as _;
use instant_acme::{BodyWrapper, BytesResponse, Error};
use swiftwater_http::client::HttpClient;
use swiftwater_http::web::body::Body;

/// Sends requests to an authority.
pub(crate) struct AuthorityClient(pub(crate) HttpClient);

impl instant_acme::HttpClient for AuthorityClient {
    fn request(
        &self,
        request: Request<BodyWrapper<Bytes>>,
    ) -> Pin<Box<dyn Future<Output = Result<BytesResponse, Error>> + Send>> {
        let client = self.0.clone();
        Box::pin(async move {
            let (head, body) = request.into_parts();
            let body = body
                .collect()
                .await
                .map_err(|error| Error::Other(error.into()))?;
            let request = Request::from_parts(head, Body::full(body.to_bytes()));
            let response = client.send(request).await;
            let response = response.map_err(|error| Error::Other(Box::new(error)))?;
            Ok(BytesResponse::from(response))
        })
    }
}
