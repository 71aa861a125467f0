//! Clients that misuse WebTransport: the session, the stream or at most the connection is closed,
//! and the server continues.

use crate::hall;
use crate::pair;

use bytes::Bytes;
use http::{Method, Request};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use swiftwater_http::h3::capsule::{Capsule, capsule_type};
use swiftwater_http::h3::frame::{FrameType, put_frame};
use swiftwater_http::h3::webtransport::close_session;
use swiftwater_http::h3::{BodyError, Code, ConnectProtocol};
use swiftwater_http::qpack::{Encoder, EncoderConfig, Field};
use swiftwater_http::udp::webtransport::{
    ReadError, Session, SessionEnd, SessionLimits, WriteError,
};
use swiftwater_http::udp::{RecvBody, SendRequest};
use swiftwater_http::web::body::Body;
use swiftwater_net::quic::{self, ConnectionError, TransportConfig};
use swiftwater_net::{Connection, RecvStream, SendStream};
use tokio::sync::mpsc;

use hall::{Hall, ask};
use pair::{NAME, get, guard, read};

/// A client without an engine, that sends anything.
struct Rogue {
    connection: Connection,
    /// Must not end.
    _control: SendStream,
}

impl Rogue {
    async fn new(hall: &Hall) -> Self {
        let connection = hall.pair.connection().await;
        let mut control = connection.open_uni().await.unwrap();
        // SETTINGS with H3_DATAGRAM.
        let bytes = [&[0x00][..], &frame(FrameType::Settings, &[0x33, 0x01])].concat();
        control.write_all(&bytes).await.unwrap();
        Self {
            connection,
            _control: control,
        }
    }

    async fn uni(&self, bytes: &[u8]) -> SendStream {
        let mut send = self.connection.open_uni().await.unwrap();
        send.write_all(bytes).await.unwrap();
        send
    }

    async fn bidi(&self, bytes: &[u8]) -> (SendStream, RecvStream) {
        let (mut send, recv) = self.connection.open_bi().await.unwrap();
        send.write_all(bytes).await.unwrap();
        (send, recv)
    }

    /// Asks for a session and waits until there is some answer.
    async fn ask(&self, path: &'static str) -> (SendStream, RecvStream) {
        let fields = [
            (":method", "CONNECT"),
            (":protocol", "webtransport"),
            (":scheme", "https"),
            (":authority", NAME),
            (":path", path),
        ];
        let fields = fields.map(|(name, value)| Field::new(name, value));
        let mut section = Vec::new();
        Encoder::new(EncoderConfig::default()).encode(0, &fields, &mut section);
        let (send, mut recv) = self.bidi(&frame(FrameType::Headers, &section)).await;
        recv.read_chunk(1000).await.unwrap().unwrap();
        (send, recv)
    }
}

fn frame(frame_type: FrameType, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    put_frame(&mut out, frame_type, payload);
    out
}

/// The code with which the server stops reading a stream.
async fn stopped_with(send: &mut SendStream) -> Code {
    Code(send.stopped().await.unwrap().unwrap())
}

/// A request for a session whose data stream the test writes itself.
struct Bare {
    feed: mpsc::Sender<Result<Frame<Bytes>, std::convert::Infallible>>,
    body: RecvBody,
    theirs: Session,
}

impl Bare {
    async fn new(hall: &mut Hall, client: &SendRequest) -> Self {
        let (feed, mut fed) = mpsc::channel(8);
        let stream = futures_util::stream::poll_fn(move |cx| fed.poll_recv(cx));
        let mut request = Request::builder()
            .method(Method::CONNECT)
            .uri(format!("https://{NAME}/session"))
            .body(StreamBody::new(stream))
            .unwrap();
        let protocol = ConnectProtocol::new("webtransport").unwrap();
        request.extensions_mut().insert(protocol);
        while client.peer_settings().is_none() {
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
        let response = client.send(request).await.unwrap();
        assert!(response.status().is_success());
        Self {
            feed,
            body: response.into_body(),
            theirs: hall.accepted().await,
        }
    }

    async fn write(&self, bytes: impl Into<Bytes>) {
        let frame = Frame::data(bytes.into());
        self.feed.send(Ok(frame)).await.unwrap();
    }

    async fn capsule(&self, capsule: &Capsule) {
        let mut bytes = Vec::new();
        capsule.encode(&mut bytes);
        self.write(bytes).await;
    }

    /// How the server ends the response.
    async fn answer(self) -> Result<Bytes, BodyError> {
        let Self { body, feed, .. } = self;
        let answer = body.collect().await;
        drop(feed);
        answer.map(http_body_util::Collected::to_bytes)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_and_datagrams_of_no_session_are_refused() {
    guard(async {
        let mut hall = Hall::new();
        let rogue = Rogue::new(&hall).await;
        let _session = rogue.ask("/session").await;
        let theirs = hall.accepted().await;
        // Of a session that was refused.
        let _refused = rogue.ask("/nowhere").await;
        let gone = Code::WEBTRANSPORT_SESSION_GONE;
        let mut stray = rogue.uni(&[0x40, 0x54, 0x04]).await;
        assert_eq!(stopped_with(&mut stray).await, gone);
        let mut stray = rogue.bidi(&[0x40, 0x41, 0x04]).await;
        assert_eq!(stopped_with(&mut stray.0).await, gone);
        for _ in 0..1000 {
            let datagram = Bytes::from_static(&[0x01, 1, 2, 3]);
            rogue.connection.send_datagram(datagram).await.unwrap();
        }
        // For a request that was not received: a limited number is buffered.
        let mut early = Vec::new();
        for _ in 0..20 {
            early.push(rogue.uni(&[0x40, 0x54, 0x40, 0x80]).await);
        }
        let rejected = Code::WEBTRANSPORT_BUFFERED_STREAM_REJECTED;
        for send in &mut early[16..] {
            assert_eq!(stopped_with(send).await, rejected);
        }
        // The session has seen nothing of it.
        let mut send = rogue.uni(b"\x40\x54\x00mine").await;
        send.finish().unwrap();
        let mut recv = theirs.accept_uni().await.unwrap();
        assert_eq!(recv.read_to_end(10).await.unwrap(), b"mine");
        let datagram = Bytes::from_static(b"\x00mine");
        rogue.connection.send_datagram(datagram).await.unwrap();
        assert_eq!(theirs.recv_datagram().await.unwrap(), "mine");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_that_come_before_the_answer_wait_for_it() {
    guard(async {
        let mut hall = Hall::new();
        let rogue = Rogue::new(&hall).await;
        // The first request will be on stream 4, after this one on stream 0.
        let _bidi = rogue.bidi(b"\x40\x41\x04early").await;
        let mut uni = rogue.uni(b"\x40\x54\x04bird").await;
        uni.finish().unwrap();
        let session = rogue.ask("/session").await;
        assert_eq!(session.0.id().get(), 4);
        let theirs = hall.accepted().await;
        let mut recv = theirs.accept_uni().await.unwrap();
        assert_eq!(recv.read_to_end(10).await.unwrap(), b"bird");
        let (_send, mut recv) = theirs.accept_bi().await.unwrap();
        assert_eq!(recv.read_chunk(10).await.unwrap().unwrap(), "early");

        // A rejected session also rejects its streams: the next request is on stream 8.
        let mut uni = rogue.uni(b"\x40\x54\x08").await;
        let _refused = rogue.ask("/nowhere").await;
        let gone = Code::WEBTRANSPORT_SESSION_GONE;
        assert_eq!(stopped_with(&mut uni).await, gone);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn floods_stop_at_the_caps() {
    guard(async {
        let limits = SessionLimits {
            max_waiting_streams: 5,
            max_waiting_datagrams: 20 * (100 + 64),
        };
        let mut hall = Hall::with(limits, TransportConfig::default());
        let (_client, ours, theirs) = hall.session().await;
        let mut streams = Vec::new();
        for _ in 0..20 {
            let mut send = ours.open_uni().await.unwrap();
            // The refusal may be here already.
            let _ = send.write_all(b"x").await;
            streams.push(send);
        }
        let rejected = Code::WEBTRANSPORT_BUFFERED_STREAM_REJECTED;
        for send in &mut streams[5..] {
            assert_eq!(send.stopped().await, Ok(Some(rejected)));
        }
        // Those that had room are served, and then there is room again.
        for _ in 0..5 {
            let mut recv = theirs.accept_uni().await.unwrap();
            assert_eq!(recv.read_chunk(10).await.unwrap().unwrap(), "x");
        }
        let mut send = ours.open_uni().await.unwrap();
        send.write_all(b"again").await.unwrap();
        let mut recv = theirs.accept_uni().await.unwrap();
        assert_eq!(recv.read_chunk(10).await.unwrap().unwrap(), "again");

        for nth in 0..100_u8 {
            ours.send_datagram(&[nth; 100]).await.unwrap();
        }
        // Packets of datagrams keep their order on loopback; the newest are kept.
        while theirs.dropped_datagrams() < 80 {
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
        for nth in 80..100_u8 {
            assert_eq!(theirs.recv_datagram().await.unwrap(), vec![nth; 100]);
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn capsules_of_any_size_are_survived() {
    guard(async {
        let mut hall = Hall::new();
        let client = hall.client().await;
        let bare = Bare::new(&mut hall, &client).await;
        // An unknown capsule of 5 MB, a datagram larger than is kept, a datagram.
        let huge = Capsule {
            capsule_type: 0x1234,
            value: vec![0; 5_000_000].into(),
        };
        bare.capsule(&huge).await;
        bare.capsule(&Capsule::datagram(vec![1; 100_000].into()))
            .await;
        bare.capsule(&Capsule::datagram(Bytes::from_static(b"small")))
            .await;
        assert_eq!(bare.theirs.recv_datagram().await.unwrap(), "small");
        // Byte by byte, as well.
        let mut bytes = Vec::new();
        close_session(5, "done").encode(&mut bytes);
        for byte in bytes {
            bare.write(vec![byte]).await;
        }
        let (code, reason) = (5, "done".to_owned());
        let end = bare.theirs.closed().await;
        assert_eq!(end, SessionEnd::Closed { code, reason });
        assert_eq!(bare.answer().await.unwrap(), "");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn malformed_ends_break_the_session_only() {
    let close = |value: Vec<u8>| Capsule {
        capsule_type: capsule_type::CLOSE_WEBTRANSPORT_SESSION,
        value: value.into(),
    };
    let capsules = [
        close(vec![0; 3]),
        close(vec![0; 4 + 1025]),
        // Longer than is read at all.
        close(vec![0; 1_000_000]),
        close(vec![0, 0, 0, 0, 0xff]),
    ];
    guard(async {
        let mut hall = Hall::new();
        let client = hall.client().await;
        for capsule in &capsules {
            let bare = Bare::new(&mut hall, &client).await;
            let mut bytes = Vec::new();
            capsule.encode(&mut bytes);
            bytes.truncate(100_000);
            bare.write(bytes).await;
            let end = bare.theirs.closed().await;
            assert_eq!(end, SessionEnd::Broken(Code::MESSAGE_ERROR));
            let answer = bare.answer().await;
            assert!(
                matches!(answer, Err(BodyError::Reset(Code::MESSAGE_ERROR))),
                "{answer:?}"
            );
        }
        // Data after the session was closed: the server stops reading.
        let bare = Bare::new(&mut hall, &client).await;
        bare.capsule(&close_session(1, "")).await;
        let (code, reason) = (1, String::new());
        let end = bare.theirs.closed().await;
        assert_eq!(end, SessionEnd::Closed { code, reason });
        while bare.feed.send(Ok(Frame::data("more".into()))).await.is_ok() {}
        // An end within a capsule.
        let bare = Bare::new(&mut hall, &client).await;
        bare.write(vec![0x68, 0x43, 0x08, 0, 0]).await;
        let Bare { feed, body, theirs } = bare;
        drop(feed);
        assert_eq!(
            theirs.closed().await,
            SessionEnd::Broken(Code::MESSAGE_ERROR)
        );
        drop(body);
        // The connection is not affected.
        hall.session().await;
        read(client.send(get("/")).await.unwrap()).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_that_is_reset_takes_its_streams_with_it() {
    guard(async {
        let mut hall = Hall::new();
        let rogue = Rogue::new(&hall).await;
        let (mut request, _response) = rogue.ask("/session").await;
        let theirs = hall.accepted().await;
        let (mut there, mut back) = rogue.bidi(b"\x40\x41\x00hi").await;
        let mut unread = rogue.uni(b"\x40\x54\x00unread").await;
        let (mut send, mut recv) = theirs.accept_bi().await.unwrap();
        assert_eq!(recv.read_chunk(10).await.unwrap().unwrap(), "hi");
        let reading = tokio::spawn(async move { recv.read_chunk(10).await });
        request.reset(Code::REQUEST_CANCELLED.0).unwrap();
        let end = SessionEnd::Broken(Code::REQUEST_CANCELLED);
        assert_eq!(theirs.closed().await, end);
        assert_eq!(reading.await.unwrap(), Err(ReadError::SessionOver));
        assert_eq!(send.write_all(b"x").await, Err(WriteError::SessionOver));
        let gone = Code::WEBTRANSPORT_SESSION_GONE;
        assert_eq!(stopped_with(&mut there).await, gone);
        assert_eq!(stopped_with(&mut unread).await, gone);
        let reset = back.read_chunk(10).await;
        assert_eq!(reset, Err(quic::ReadError::Reset(gone.0)));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_signal_for_what_can_be_no_session_ends_the_connection() {
    guard(async {
        let mut hall = Hall::new();
        let rogue = Rogue::new(&hall).await;
        let _session = rogue.ask("/session").await;
        let theirs = hall.accepted().await;
        let _stray = rogue.uni(&[0x40, 0x54, 0x03]).await;
        match rogue.connection.closed().await {
            ConnectionError::PeerApplication { code, .. } => {
                assert_eq!(Code(code), Code::ID_ERROR);
            }
            reason => panic!("{reason}"),
        }
        assert!(matches!(
            theirs.closed().await,
            SessionEnd::ConnectionLost(_)
        ));
        // The next one is served.
        hall.session().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_without_sessions_treats_them_as_any_request() {
    guard(async {
        let service = tower::service_fn(|request: Request<Body>| async move {
            let asked = request.extensions().get::<ConnectProtocol>().cloned();
            let answer = asked.map_or("none".to_owned(), |asked| asked.as_str().to_owned());
            Ok::<_, std::convert::Infallible>(http::Response::new(Body::full(answer)))
        });
        let pair = pair::Pair::new(service);
        let client = SendRequest::new(pair.connection().await, hall::config());
        let refused = client.open_session(ask("/session")).await.unwrap_err();
        assert!(refused.to_string().contains("WebTransport"), "{refused}");
        assert_eq!(read(client.send(get("/")).await.unwrap()).await, "none");
    })
    .await;
}
