//! Convenience methods for the usual requests; for everything else see [`HttpClient::send`].

use http::header::CONTENT_TYPE;
use http::{HeaderValue, Method, Request, Response, Uri};
use serde::Serialize;

use super::body::ClientBody;
use super::error::Error;
use super::http_client::HttpClient;
use crate::web::body::Body;

const JSON: HeaderValue = HeaderValue::from_static("application/json");

impl HttpClient {
    /// GET. The content is read with [`ResponseExt`](super::ResponseExt), or frame by frame.
    ///
    /// The status is not interpreted: a response of 404 is a response.
    pub async fn get(&self, uri: impl TryInto<Uri>) -> Result<Response<ClientBody>, Error> {
        self.ask(Method::GET, uri, Body::empty()).await
    }

    /// HEAD: a response without content.
    pub async fn head(&self, uri: impl TryInto<Uri>) -> Result<Response<ClientBody>, Error> {
        self.ask(Method::HEAD, uri, Body::empty()).await
    }

    /// DELETE, without content.
    pub async fn delete(&self, uri: impl TryInto<Uri>) -> Result<Response<ClientBody>, Error> {
        self.ask(Method::DELETE, uri, Body::empty()).await
    }

    /// POST with this content: text, bytes, or a [`Body`]. No Content-Type is sent.
    pub async fn post(
        &self,
        uri: impl TryInto<Uri>,
        content: impl Into<Body>,
    ) -> Result<Response<ClientBody>, Error> {
        self.ask(Method::POST, uri, content.into()).await
    }

    /// PUT with this content: text, bytes, or a [`Body`]. No Content-Type is sent.
    pub async fn put(
        &self,
        uri: impl TryInto<Uri>,
        content: impl Into<Body>,
    ) -> Result<Response<ClientBody>, Error> {
        self.ask(Method::PUT, uri, content.into()).await
    }

    /// POST of `value` as JSON, with that Content-Type. Fails with [`Error::Json`] if it can't be written as
    /// JSON, such as a map whose keys are not strings.
    pub async fn post_json<T: Serialize + ?Sized>(
        &self,
        uri: impl TryInto<Uri>,
        value: &T,
    ) -> Result<Response<ClientBody>, Error> {
        let content = serde_json::to_vec(value)?;
        let mut request = request(Method::POST, uri, content.into())?;
        request.headers_mut().insert(CONTENT_TYPE, JSON);
        self.send(request).await
    }

    async fn ask(
        &self,
        method: Method,
        uri: impl TryInto<Uri>,
        body: Body,
    ) -> Result<Response<ClientBody>, Error> {
        // No value of the generic type is held across an await point.
        let request = request(method, uri, body)?;
        self.send(request).await
    }
}

fn request(method: Method, uri: impl TryInto<Uri>, body: Body) -> Result<Request<Body>, Error> {
    let uri = uri.try_into();
    let mut request = Request::new(body);
    *request.method_mut() = method;
    *request.uri_mut() = uri.map_err(|_| Error::InvalidUri("the URI is malformed"))?;
    Ok(request)
}
