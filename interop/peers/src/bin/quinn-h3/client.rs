//! The client: runs a case and prints its result.

use std::panic::{self, AssertUnwindSafe};

use bytes::{Buf, Bytes};
use h3::client::RequestStream;
use h3::error::{Code, StreamError};
use http::{HeaderMap, HeaderName, HeaderValue, Request};
use quinn::{ClientConfig, Endpoint, VarInt};
use serde_json::{Value, json};
use swiftwater_interop_program::arguments::{Suite, local_address};
use swiftwater_interop_program::http::{
    ALPN, CANCEL_AFTER, CLOSE, Case, Crc, GETS, H3Client, HEADER_TURNS, LARGE_SIZE, NAME, NO_ERROR,
    PARALLEL, SMALL, SMALL_COUNT, SOON, TICKET, TRAILER, TURN_SIZE, TURNS, letters, pattern, small,
};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::{AnyError, tls};

type SendRequest = h3::client::SendRequest<h3_quinn::OpenStreams, Bytes>;
type Stream = RequestStream<h3_quinn::BidiStream<Bytes>, Bytes>;

/// Runs a case.
pub(crate) async fn run(arguments: H3Client) -> Result<(), AnyError> {
    let endpoint = Endpoint::client(local_address(arguments.connect))?;
    let early = arguments.case == Case::Zerortt;
    let crypto = tls::client(Some(&arguments.ca), ALPN, Suite::Any, early)?;
    let config = ClientConfig::new(crypto);
    let connect = || endpoint.connect_with(config.clone(), arguments.connect, NAME);
    let mut visit = Visit::new(connect()?.await?).await?;
    let report = if early {
        let first = visit.get("/bytes/1000").await?;
        sleep(TICKET).await;
        visit.close();
        let connecting = connect()?.into_0rtt();
        let (connection, accepted) =
            connecting.map_err(|_| "there is no session with 0-RTT keys")?;
        visit = Visit::new(connection).await?;
        let second = visit.get("/bytes/2000").await?;
        json!({"responses": [first, second], "early_accepted": accepted.await})
    } else {
        visit.case(arguments.case).await?
    };
    visit.close();
    endpoint.wait_idle().await;
    println!("{report}");
    Ok(())
}

/// One connection.
struct Visit {
    quic: quinn::Connection,
    sender: SendRequest,
}

impl Visit {
    async fn new(quic: quinn::Connection) -> Result<Self, AnyError> {
        let (mut driver, sender) = h3::client::new(h3_quinn::Connection::new(quic.clone())).await?;
        tokio::spawn(async move { driver.wait_idle().await });
        Ok(Self { quic, sender })
    }

    fn close(&self) {
        self.quic.close(VarInt::from_u32(NO_ERROR), b"");
    }

    async fn case(&mut self, case: Case) -> Result<Value, AnyError> {
        match case {
            Case::Get | Case::Zerortt => {
                let mut answers = Vec::new();
                for path in GETS {
                    answers.push(self.get(path).await?);
                }
                Ok(json!({"responses": answers}))
            }
            Case::Parallel => self.parallel().await,
            Case::Post => self.post().await,
            Case::Headers => self.headers().await,
            Case::Trailers => self.trailers().await,
            Case::Cancel => self.cancel().await,
            Case::Goaway => self.go_away().await,
        }
    }

    async fn open(&mut self, method: &str, path: &str) -> Result<Stream, AnyError> {
        let request = request(method, path)?;
        Ok(self.sender.send_request(request).await?)
    }

    async fn get(&mut self, path: &str) -> Result<Value, AnyError> {
        let stream = self.open("GET", path).await?;
        get(stream, path).await
    }

    /// A thousand at the same time.
    async fn parallel(&mut self) -> Result<Value, AnyError> {
        let mut running = JoinSet::new();
        for nth in 0..PARALLEL {
            let mut sender = self.sender.clone();
            running.spawn(async move {
                let path = format!("/bytes/{nth}");
                get(sender.send_request(request("GET", &path)?).await?, &path).await
            });
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
    async fn post(&mut self) -> Result<Value, AnyError> {
        let stream = self.open("POST", "/echo").await?;
        let mut exchange = Exchange::new(stream);
        let data = pattern(TURNS * TURN_SIZE);
        let mut turns = 0;
        for piece in data.chunks(TURN_SIZE) {
            exchange.send(piece).await?;
            turns += 1;
            exchange.read_until(turns * TURN_SIZE).await?;
        }
        let mut report = exchange.end().await?;
        report["turns"] = json!(turns);
        Ok(report)
    }

    async fn headers(&mut self) -> Result<Value, AnyError> {
        let mut answers = Vec::new();
        for turn in 0..HEADER_TURNS {
            let mut asked = request("GET", "/headers")?;
            let mut fields = vec![
                ("x-size".to_owned(), LARGE_SIZE.to_string()),
                ("x-turn".to_owned(), turn.to_string()),
                ("x-large".to_owned(), letters(LARGE_SIZE)),
            ];
            fields.extend((0..SMALL_COUNT).map(|nth| small(nth, turn)));
            for (name, value) in fields {
                let name = HeaderName::from_bytes(name.as_bytes())?;
                asked.headers_mut().insert(name, value.try_into()?);
            }
            let mut stream = self.sender.send_request(asked).await?;
            stream.finish().await?;
            let response = stream.recv_response().await?;
            let told = response.headers();
            let text = |name| told.get(name).and_then(|value| value.to_str().ok());
            let large = told.get("x-large").map_or(&b""[..], HeaderValue::as_bytes);
            let is_small = |name: &&HeaderName| name.as_str().starts_with(SMALL);
            answers.push(json!({
                "status": response.status().as_u16(),
                "digest": text("x-digest"),
                "count": text("x-count"),
                "large": large.len(),
                "large_crc": Crc::of(large),
                "small": told.keys().filter(is_small).count(),
                "last": text(&format!("{SMALL}{}", SMALL_COUNT - 1)),
            }));
            while stream.recv_data().await?.is_some() {}
        }
        Ok(json!({"responses": answers}))
    }

    async fn trailers(&mut self) -> Result<Value, AnyError> {
        let stream = self.open("POST", "/trailers").await?;
        let mut exchange = Exchange::new(stream);
        exchange.send(&pattern(TURN_SIZE)).await?;
        let mut trailers = HeaderMap::new();
        trailers.insert("x-trailer", HeaderValue::from_static(TRAILER));
        exchange.stream.send_trailers(trailers).await?;
        exchange.end().await
    }

    /// Cancels an endless response, and continues.
    async fn cancel(&mut self) -> Result<Value, AnyError> {
        let mut stream = self.open("GET", "/slow").await?;
        stream.finish().await?;
        let mut exchange = Exchange::new(stream);
        exchange.read_until(CANCEL_AFTER).await?;
        while !exchange.try_stop() {
            exchange.piece().await?;
        }
        let after = self.get("/bytes/10000").await?;
        Ok(json!({"read": exchange.bytes, "after": after}))
    }

    /// The server sends GOAWAY while a request is in progress: it completes, and no other is sent.
    async fn go_away(&mut self) -> Result<Value, AnyError> {
        let stream = self.open("POST", "/echo").await?;
        let mut exchange = Exchange::new(stream);
        let data = pattern(2 * TURN_SIZE);
        exchange.send(&data[..TURN_SIZE]).await?;
        exchange.read_until(TURN_SIZE).await?;
        let asked = self.get("/goaway").await?;
        sleep(SOON).await;
        let refused = match self.sender.send_request(request("GET", "/bytes/1")?).await {
            Err(StreamError::RemoteClosing { .. }) => true,
            Ok(_) => false,
            Err(error) => return Err(error.into()),
        };
        exchange.send(&data[TURN_SIZE..]).await?;
        let echo = exchange.end().await?;
        let closed = timeout(CLOSE, self.quic.closed()).await;
        Ok(json!({
            "echo": echo,
            "goaway": asked["status"],
            "refused": refused,
            "closed": closed.map(|reason| reason.to_string()).ok(),
        }))
    }
}

fn request(method: &str, path: &str) -> Result<Request<()>, http::Error> {
    let uri = format!("https://{NAME}{path}");
    Request::builder().method(method).uri(uri).body(())
}

async fn get(mut stream: Stream, path: &str) -> Result<Value, AnyError> {
    stream.finish().await?;
    let exchange = Exchange::new(stream);
    let mut report = exchange.rest().await?;
    report["path"] = json!(path);
    Ok(report)
}

/// A request whose response is being read.
struct Exchange {
    stream: Stream,
    status: Option<u16>,
    bytes: usize,
    crc: Crc,
}

impl Exchange {
    fn new(stream: Stream) -> Self {
        Self {
            stream,
            status: None,
            bytes: 0,
            crc: Crc::default(),
        }
    }

    async fn send(&mut self, data: &[u8]) -> Result<(), StreamError> {
        self.stream.send_data(Bytes::copy_from_slice(data)).await
    }

    /// Takes the next piece of the response; false at its end.
    async fn piece(&mut self) -> Result<bool, StreamError> {
        if self.status.is_none() {
            let head = self.stream.recv_response().await?;
            self.status = Some(head.status().as_u16());
        }
        let Some(mut data) = self.stream.recv_data().await? else {
            return Ok(false);
        };
        let data = data.copy_to_bytes(data.remaining());
        self.bytes += data.len();
        self.crc.feed(&data);
        Ok(true)
    }

    /// Stops reading. False if that must be repeated after another read: h3-quinn panics, before any effect,
    /// if a read is pending, which h3 doesn't report.
    fn try_stop(&mut self) -> bool {
        let usual = panic::take_hook();
        panic::set_hook(Box::new(|_| {}));
        let stop = AssertUnwindSafe(|| self.stream.stop_sending(Code::H3_REQUEST_CANCELLED));
        let done = panic::catch_unwind(stop).is_ok();
        panic::set_hook(usual);
        done
    }

    async fn read_until(&mut self, size: usize) -> Result<(), AnyError> {
        while self.bytes < size {
            if !self.piece().await? {
                return Err("the response ended early".into());
            }
        }
        Ok(())
    }

    /// Ends the request and reads the rest.
    async fn end(mut self) -> Result<Value, AnyError> {
        self.stream.finish().await?;
        self.rest().await
    }

    async fn rest(mut self) -> Result<Value, AnyError> {
        while self.piece().await? {}
        let trailers = self.stream.recv_trailers().await?;
        let trailer = trailers.as_ref().and_then(|all| all.get("x-trailer"));
        Ok(json!({
            "status": self.status,
            "bytes": self.bytes,
            "crc": self.crc.value(),
            "trailer": trailer.and_then(|value| value.to_str().ok()),
        }))
    }
}
