//! The client: each case as the contract of `interop/README.md` has it.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use http::{HeaderMap, HeaderValue, Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use serde_json::{Value, json};
use swiftwater_http::h3;
use swiftwater_http::udp::{ALPN_HTTP3, ClientError, RecvBody, SendRequest};
use swiftwater_http::web::body::Body;
use swiftwater_net::quic::{ClientConfig, EarlyDataOutcome, TransportConfig};
use swiftwater_net::{Connection, Endpoint};
use swiftwater_tls::{ClientTls, MemorySessionStore};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::content::{Crc, LARGE, TRAILER, add_small, count_small, letters, pattern};
use crate::{AnyError, Arguments, endpoint_options};

const NAME: &str = "localhost";
const PARALLEL: usize = 1_000;
const TURNS: usize = 20;
const TURN_SIZE: usize = 50_000;
const HEADER_TURNS: usize = 3;
const LARGE_SIZE: usize = 20_000;
const SMALL_COUNT: usize = 50;
const CANCEL_AFTER: usize = 100_000;
/// Time limit for GOAWAY.
const SOON: Duration = Duration::from_millis(500);
/// Time limit for a session ticket.
const TICKET: Duration = Duration::from_millis(100);
/// Time limit for the server's close at the end.
const CLOSE: Duration = Duration::from_secs(3);

/// What a client has for all its connections.
struct Client {
    endpoint: Endpoint,
    config: ClientConfig,
    server: std::net::SocketAddr,
}

/// Runs a case and prints its result.
pub(crate) async fn run(arguments: &Arguments) -> Result<(), AnyError> {
    let client = Client::new(arguments)?;
    let report = match arguments.text("case")? {
        "zerortt" => client.zero_rtt().await?,
        case => {
            let visit = client.visit().await?;
            let report = visit.case(case).await?;
            visit.sender.close();
            report
        }
    };
    client.endpoint.wait_idle().await;
    println!("{report}");
    Ok(())
}

impl Client {
    fn new(arguments: &Arguments) -> Result<Self, AnyError> {
        let authorities = arguments.file("ca")?;
        let roots: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&authorities).collect();
        let tls = ClientTls::with_roots(roots?)?
            .alpn([ALPN_HTTP3])
            .sessions(Arc::new(MemorySessionStore::default()))
            .early_data(arguments.text("case")? == "zerortt")
            .key_log_file();
        let server = arguments.address("connect")?;
        let any = if server.is_ipv6() {
            "[::]:0"
        } else {
            "0.0.0.0:0"
        };
        Ok(Self {
            endpoint: Endpoint::bind(any.parse()?, endpoint_options()?)?,
            config: ClientConfig {
                crypto: Arc::new(tls),
                transport: Arc::new(TransportConfig::default()),
            },
            server,
        })
    }

    async fn visit(&self) -> Result<Visit, AnyError> {
        let connecting = self.endpoint.connect(&self.config, self.server, NAME)?;
        Ok(Visit::new(connecting.await?, h3::Config::default()))
    }

    /// Two connections, the second with its request in early data.
    async fn zero_rtt(&self) -> Result<Value, AnyError> {
        let first = self.visit().await?;
        let mut answers = vec![first.get("/bytes/1000").await?];
        sleep(TICKET).await;
        let remembered = first.sender.peer_settings();
        first.sender.close();
        let connecting = self.endpoint.connect(&self.config, self.server, NAME)?;
        let early = connecting.into_early();
        let connection = early.map_err(|_| "there is no session that permits early data")?;
        let config = h3::Config {
            remembered,
            ..h3::Config::default()
        };
        let second = Visit::new(connection, config);
        answers.push(second.get("/bytes/2000").await?);
        let outcome = second.sender.connection().early_data().await?;
        second.sender.close();
        Ok(json!({
            "responses": answers,
            "early_accepted": outcome == Some(EarlyDataOutcome::Accepted),
        }))
    }
}

/// One connection.
struct Visit {
    sender: SendRequest,
}

impl Visit {
    fn new(connection: Connection, config: h3::Config) -> Self {
        Self {
            sender: SendRequest::new(connection, config),
        }
    }

    async fn case(&self, case: &str) -> Result<Value, AnyError> {
        match case {
            "get" => self.gets().await,
            "parallel" => self.parallel().await,
            "post" => self.post().await,
            "headers" => self.headers().await,
            "trailers" => self.trailers().await,
            "cancel" => self.cancel().await,
            "goaway" => self.go_away().await,
            other => Err(format!("no case {other}").into()),
        }
    }

    async fn get(&self, path: &str) -> Result<Value, AnyError> {
        let response = self
            .sender
            .send(request("GET", path, Body::empty())?)
            .await?;
        let status = response.status().as_u16();
        let (bytes, crc, _) = drain(response).await?;
        Ok(json!({"path": path, "status": status, "bytes": bytes, "crc": crc}))
    }

    async fn gets(&self) -> Result<Value, AnyError> {
        let mut answers = Vec::new();
        for path in [
            "/bytes/0",
            "/bytes/1",
            "/bytes/100000",
            "/bytes/1000000",
            "/nothing",
        ] {
            answers.push(self.get(path).await?);
        }
        Ok(json!({"responses": answers}))
    }

    /// A thousand at the same time.
    async fn parallel(&self) -> Result<Value, AnyError> {
        let mut running = JoinSet::new();
        for nth in 0..PARALLEL {
            let visit = Self {
                sender: self.sender.clone(),
            };
            running.spawn(async move { visit.get(&format!("/bytes/{nth}")).await });
        }
        let (mut good, mut bytes, mut sum) = (0, 0, 0);
        while let Some(done) = running.join_next().await {
            let answer = done??;
            good += usize::from(answer["status"] == 200);
            bytes += answer["bytes"].as_u64().unwrap_or_default();
            sum ^= answer["crc"].as_u64().unwrap_or_default();
        }
        Ok(json!({"good": good, "bytes": bytes, "crc": sum}))
    }

    /// Each piece is echoed before the next is sent.
    async fn post(&self) -> Result<Value, AnyError> {
        let (feed, content) = channel();
        let content = request("POST", "/echo", content)?;
        let response = self.sender.send(content).await?;
        let status = response.status().as_u16();
        let mut back = response.into_body();
        let data = pattern(TURNS * TURN_SIZE);
        let (mut bytes, mut crc, mut turns) = (0, Crc::default(), 0);
        for piece in data.chunks(TURN_SIZE) {
            feed.send(Frame::data(Bytes::copy_from_slice(piece)))
                .await?;
            turns += 1;
            read_until(&mut back, turns * TURN_SIZE, &mut bytes, &mut crc).await?;
        }
        drop(feed);
        let rest = back.collect().await?.to_bytes();
        crc.feed(&rest);
        bytes += rest.len();
        Ok(json!({"status": status, "bytes": bytes, "crc": crc.value(), "turns": turns}))
    }

    async fn headers(&self) -> Result<Value, AnyError> {
        let mut answers = Vec::new();
        for turn in 0..HEADER_TURNS {
            let mut asked = request("GET", "/headers", Body::empty())?;
            let headers = asked.headers_mut();
            headers.insert("x-size", HeaderValue::from(LARGE_SIZE));
            headers.insert("x-turn", HeaderValue::from(turn));
            headers.insert(LARGE, letters(LARGE_SIZE));
            add_small(headers, SMALL_COUNT, turn);
            let response = self.sender.send(asked).await?;
            let told = response.headers();
            let text = |name| told.get(name).and_then(|value| value.to_str().ok());
            let large = told.get(LARGE).map_or(&b""[..], HeaderValue::as_bytes);
            answers.push(json!({
                "status": response.status().as_u16(),
                "digest": text("x-digest"),
                "count": text("x-count"),
                "large": large.len(),
                "large_crc": Crc::of(large),
                "small": count_small(told),
                "last": text(&format!("x-small-{}", SMALL_COUNT - 1)),
            }));
        }
        Ok(json!({"responses": answers}))
    }

    async fn trailers(&self) -> Result<Value, AnyError> {
        let (feed, content) = channel();
        let waiting = self.sender.send(request("POST", "/trailers", content)?);
        feed.send(Frame::data(pattern(TURN_SIZE))).await?;
        let mut trailers = HeaderMap::new();
        trailers.insert(TRAILER, HeaderValue::from_static("after all"));
        feed.send(Frame::trailers(trailers)).await?;
        drop(feed);
        let response = waiting.await?;
        let status = response.status().as_u16();
        let (bytes, crc, trailers) = drain(response).await?;
        let trailer = trailers.as_ref().and_then(|all| all.get(TRAILER));
        let trailer = trailer.and_then(|value| value.to_str().ok());
        Ok(json!({"status": status, "bytes": bytes, "crc": crc, "trailer": trailer}))
    }

    /// Drops an endless response midway, and continues.
    async fn cancel(&self) -> Result<Value, AnyError> {
        let endless = request("GET", "/slow", Body::empty())?;
        let mut body = self.sender.send(endless).await?.into_body();
        let (mut read, mut crc) = (0, Crc::default());
        read_until(&mut body, CANCEL_AFTER, &mut read, &mut crc).await?;
        drop(body);
        let after = self.get("/bytes/10000").await?;
        Ok(json!({"read": read, "after": after}))
    }

    /// The server sends GOAWAY while a request is in progress: it completes, and no other is sent.
    async fn go_away(&self) -> Result<Value, AnyError> {
        let (feed, content) = channel();
        let under_way = self.sender.send(request("POST", "/echo", content)?).await?;
        let status = under_way.status().as_u16();
        let mut back = under_way.into_body();
        let (mut bytes, mut crc) = (0, Crc::default());
        let data = pattern(2 * TURN_SIZE);
        feed.send(Frame::data(data.slice(..TURN_SIZE))).await?;
        read_until(&mut back, TURN_SIZE, &mut bytes, &mut crc).await?;
        let asked = self.get("/goaway").await?;
        sleep(SOON).await;
        let refused = match self
            .sender
            .send(request("GET", "/bytes/1", Body::empty())?)
            .await
        {
            Err(ClientError::Request(_)) => true,
            Ok(_) => false,
            Err(error) => return Err(error.into()),
        };
        feed.send(Frame::data(data.slice(TURN_SIZE..))).await?;
        drop(feed);
        let rest = back.collect().await?.to_bytes();
        crc.feed(&rest);
        let closed = timeout(CLOSE, self.sender.connection().closed()).await;
        Ok(json!({
            "echo": {"status": status, "bytes": bytes + rest.len(), "crc": crc.value()},
            "goaway": asked["status"],
            "refused": refused,
            "closed": closed.map(|reason| reason.to_string()).ok(),
        }))
    }
}

fn request(method: &str, path: &str, body: Body) -> Result<Request<Body>, http::Error> {
    let uri = format!("https://{NAME}{path}");
    Request::builder().method(method).uri(uri).body(body)
}

/// Content that is fed piece by piece.
fn channel() -> (mpsc::Sender<Frame<Bytes>>, Body) {
    let (feed, fed) = mpsc::channel(2);
    let frames = stream::unfold(fed, |mut fed: mpsc::Receiver<Frame<Bytes>>| async {
        let frame = fed.recv().await?;
        Some((Ok::<_, Infallible>(frame), fed))
    });
    (feed, Body::new(StreamBody::new(Box::pin(frames))))
}

/// Reads until `size` bytes were received in total.
async fn read_until(
    body: &mut RecvBody,
    size: usize,
    bytes: &mut usize,
    crc: &mut Crc,
) -> Result<(), AnyError> {
    while *bytes < size {
        let frame = body.frame().await.ok_or("the response ended early")??;
        if let Ok(data) = frame.into_data() {
            *bytes += data.len();
            crc.feed(&data);
        }
    }
    Ok(())
}

/// Size and CRC-32 of a response's content, and its trailers.
async fn drain(response: Response<RecvBody>) -> Result<(usize, u32, Option<HeaderMap>), AnyError> {
    let all = response.into_body().collect().await?;
    let trailers = all.trailers().cloned();
    let content = all.to_bytes();
    Ok((content.len(), Crc::of(&content), trailers))
}
