//! Answers requests.

use http::{Request, Response, StatusCode};
use http_body_util::BodyExt;
use job::{Failure, HttpAnswer, ServerArguments, events};
use swiftwater::http::web::body::{Body, BoxError};
use tower::service_fn;

use super::content::Content;
use crate::settings;

pub(crate) async fn run(arguments: &ServerArguments) -> Result<(), Failure> {
    let server = settings::web_server(arguments)?;
    events::ready();
    Ok(server.serve(service_fn(answer)).await?)
}

async fn answer(request: Request<Body>) -> Result<Response<Content>, BoxError> {
    let (head, mut body) = request.into_parts();
    let Some(mut answer) = HttpAnswer::new(head.uri.path()) else {
        return Ok(refusal());
    };
    while let Some(frame) = body.frame().await {
        if let Some(data) = frame?.data_ref() {
            answer.receive(data);
        }
    }
    Ok(answer
        .finish()
        .map_or_else(refusal, |content| Response::new(Content::new(content))))
}

fn refusal() -> Response<Content> {
    let mut response = Response::new(Content::empty());
    *response.status_mut() = StatusCode::BAD_REQUEST;
    response
}
