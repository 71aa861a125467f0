//! Clients that select protocols, and what they choose.

use std::convert::Infallible;
use std::future::{Future, Ready, ready};
use std::pin::Pin;
use std::time::Duration;

use http::{Request, Response, Version};
use swiftwater_http::client::select::{Parameters, Reason};
use swiftwater_http::client::{ArmChoice, Builder, ClientBody, HttpClient};
use swiftwater_http::web::body::Body;

use super::{World, read};

/// How much later the slower transport answers: far more than loopback takes, less than a hedge waits.
pub const LATER: Duration = Duration::from_millis(100);

pub type Answering = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

/// Answers with the path.
pub fn greet(request: Request<Body>) -> Ready<Result<Response<Body>, Infallible>> {
    let (head, _) = request.into_parts();
    ready(Ok(Response::new(Body::full(head.uri.path().to_owned()))))
}

/// Answers later over one transport.
pub fn slow_over(
    quic: bool,
) -> impl Fn(Request<Body>) -> Answering + Clone + Send + Sync + 'static {
    move |request| {
        Box::pin(async move {
            if (request.version() == Version::HTTP_3) == quic {
                tokio::time::sleep(LATER).await;
            }
            greet(request).await
        })
    }
}

pub fn choice(response: &Response<ClientBody>) -> ArmChoice {
    response.extensions().get::<ArmChoice>().unwrap().clone()
}

/// Sends a GET and reads all of the response.
pub async fn get(client: &HttpClient, world: &World) -> ArmChoice {
    let response = client.send(world.get("/x")).await.unwrap();
    let choice = choice(&response);
    assert_eq!(read(response).await, "/x");
    choice
}

/// Sends requests until an experiment is over.
pub async fn experiment(client: &HttpClient, world: &World) -> Vec<ArmChoice> {
    let mut choices = Vec::new();
    loop {
        let choice = get(client, world).await;
        let over = !choice.reason.is_probe() && choice.reason != Reason::ExperimentWaits;
        let begun = client.selection().unwrap().stats.experiments > 0;
        choices.push(choice);
        if over && begun {
            return choices;
        }
    }
}

/// A client that knows that the origin speaks HTTP/3, and whose races QUIC wins.
pub fn informed(world: &World) -> Builder {
    let client = world.client().assume_http3(true);
    client.stagger(Duration::from_secs(20))
}

pub fn parameters(values: &[(&str, f64)]) -> Parameters {
    let mut parameters = Parameters::default();
    for (name, value) in values {
        parameters.set(name, *value).unwrap();
    }
    parameters
}
