//! WebTransport sessions on loopback: streams, datagrams and ends, as applications see them.

use axum::{Extension, Router};
use http::StatusCode;
use swiftwater_http::h3::webtransport::stream_code;
use swiftwater_http::h3::{Code, RequestError};
use swiftwater_http::udp::H3Server;
use swiftwater_http::udp::webtransport::{
    OpenSessionError, ReadError, ReadToEndError, SessionEnd, SessionRequest, WriteError,
};
use swiftwater_net::quic::{DatagramFate, DatagramOptions, TransportConfig};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::task::JoinSet;

use crate::hall::{Hall, SESSIONS, ask, config};
use crate::pair::{Pair, get, guard, noise, read};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_go_both_ways_from_either_end() {
    guard(async {
        let mut hall = Hall::new();
        let (_client, ours, theirs) = hall.session().await;
        for (from, to) in [(&ours, &theirs), (&theirs, &ours)] {
            let data = noise(300_000);
            let (mut send, mut recv) = from.open_bi().await.unwrap();
            let back = async {
                let (mut send, mut recv) = to.accept_bi().await.unwrap();
                let n = tokio::io::copy(&mut recv, &mut send).await.unwrap();
                send.finish().unwrap();
                assert_eq!(send.stopped().await, Ok(None));
                n
            };
            let there = async {
                send.write_all(&data).await.unwrap();
                send.shutdown().await.unwrap();
            };
            let (echoed, (), n) = tokio::join!(recv.read_to_end(300_000), there, back);
            assert!(echoed.unwrap() == data);
            assert_eq!(n, 300_000);

            let mut send = from.open_uni().await.unwrap();
            send.write_chunk("only there".into()).await.unwrap();
            drop(send);
            let mut recv = to.accept_uni().await.unwrap();
            let mut text = String::new();
            recv.read_to_string(&mut text).await.unwrap();
            assert_eq!(text, "only there");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn more_streams_than_are_permitted_at_once_all_come() {
    guard(async {
        let mut hall = Hall::with(
            hall_limits(),
            TransportConfig {
                max_concurrent_bidi_streams: 8,
                max_concurrent_uni_streams: 8,
                ..TransportConfig::default()
            },
        );
        let (_client, ours, theirs) = hall.session().await;
        let server = tokio::spawn(async move {
            for _ in 0..200 {
                let (mut send, mut recv) = theirs.accept_bi().await.unwrap();
                tokio::spawn(async move { tokio::io::copy(&mut recv, &mut send).await });
            }
            theirs.closed().await
        });
        let mut running = JoinSet::new();
        for nth in 0..200_u32 {
            let session = ours.clone();
            running.spawn(async move {
                let (mut send, mut recv) = session.open_bi().await.unwrap();
                send.write_all(&nth.to_be_bytes()).await.unwrap();
                send.finish().unwrap();
                assert_eq!(recv.read_to_end(4).await.unwrap(), nth.to_be_bytes());
            });
        }
        while let Some(done) = running.join_next().await {
            done.unwrap();
        }
        ours.close(7, "enough");
        let (code, reason) = (7, "enough".to_owned());
        assert_eq!(server.await.unwrap(), SessionEnd::Closed { code, reason });
    })
    .await;
}

fn hall_limits() -> swiftwater_http::udp::webtransport::SessionLimits {
    swiftwater_http::udp::webtransport::SessionLimits::default()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_that_is_not_read_blocks_its_writer() {
    guard(async {
        let mut hall = Hall::new();
        let (_client, ours, theirs) = hall.session().await;
        let mut send = ours.open_uni().await.unwrap();
        let mut recv = {
            send.write_all(b"first").await.unwrap();
            theirs.accept_uni().await.unwrap()
        };
        // Flow control lets far less than this pass unread.
        let data = noise(30 << 20);
        let all = send.write_all(&data);
        tokio::pin!(all);
        let early = tokio::time::timeout(std::time::Duration::from_millis(300), &mut all).await;
        assert!(early.is_err());
        let reading = async {
            let mut n = 0;
            while n < data.len() + 5 {
                n += recv.read_chunk(100_000).await.unwrap().unwrap().len();
            }
        };
        let (written, ()) = tokio::join!(all, reading);
        written.unwrap();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn codes_of_the_application_reach_the_other_end() {
    guard(async {
        let mut hall = Hall::new();
        let (_client, ours, theirs) = hall.session().await;
        let (mut send, mut recv) = ours.open_bi().await.unwrap();
        send.write_all(b"x").await.unwrap();
        let (mut back, mut there) = theirs.accept_bi().await.unwrap();
        assert_eq!(there.read_chunk(10).await.unwrap().unwrap(), "x");
        send.reset(1234).unwrap();
        assert_eq!(send.finish(), Err(WriteError::Closed));
        let error = there.read_chunk(10).await.unwrap_err();
        assert_eq!(error, ReadError::Reset(stream_code(1234)));
        assert_eq!(error.application_code(), Some(1234));
        recv.stop(u32::MAX).unwrap();
        assert_eq!(recv.read_chunk(10).await, Err(ReadError::Closed));
        assert_eq!(back.stopped().await, Ok(Some(stream_code(u32::MAX))));
        let error = back.write_all(b"y").await.unwrap_err();
        assert_eq!(error.application_code(), Some(u32::MAX));

        // Letting go is code 0 for a reader, and the end for a writer.
        let (mut send, recv) = ours.open_bi().await.unwrap();
        send.write_all(b"12345").await.unwrap();
        drop((send, recv));
        let (mut back, mut there) = theirs.accept_bi().await.unwrap();
        let too_long = there.read_to_end(4).await.unwrap_err();
        assert_eq!(too_long, ReadToEndError::TooLong { limit: 4 });
        assert_eq!(back.stopped().await, Ok(Some(stream_code(0))));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn datagrams_go_both_ways() {
    guard(async {
        let mut hall = Hall::new();
        let (_client, ours, theirs) = hall.session().await;
        let size = ours.max_datagram_size().unwrap();
        assert!(size > 1000, "{size}");
        assert!(ours.try_send_datagram(&vec![0; size + 1]).is_err());
        for (from, to) in [(&ours, &theirs), (&theirs, &ours)] {
            for nth in 0..50_u8 {
                from.send_datagram(&vec![nth; 1000]).await.unwrap();
                // Loopback loses none as long as few are in transit.
                assert_eq!(to.recv_datagram().await.unwrap(), vec![nth; 1000]);
            }
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_fates_of_datagrams_are_reported_to_their_session() {
    guard(async {
        let mut hall = Hall::new();
        let (client, ours, theirs) = hall.session().await;
        let (other, _) = client.open_session(ask("/session")).await.unwrap();
        let other_end = hall.accepted().await;
        let of = |key| DatagramOptions::default().with_key(key);
        ours.send_datagram_with(b"one", of(7)).await.unwrap();
        assert_eq!(&theirs.recv_datagram().await.unwrap()[..], b"one");
        let late = of(7).with_deadline(other.connection().now());
        other.try_send_datagram_with(b"late", late).unwrap();
        let fate = ours.recv_datagram_fate().await.unwrap();
        assert_eq!(fate, (7, DatagramFate::Acknowledged));
        let fate = other.recv_datagram_fate().await.unwrap();
        assert_eq!(fate, (7, DatagramFate::Expired));
        other.send_datagram(b"next").await.unwrap();
        assert_eq!(&other_end.recv_datagram().await.unwrap()[..], b"next");
        ours.close(0, "");
        assert!(ours.recv_datagram_fate().await.is_err());
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_ends_with_all_that_belongs_to_it() {
    guard(async {
        let mut hall = Hall::new();
        let (client, ours, theirs) = hall.session().await;
        // Another session of the connection is not affected.
        let (other, _) = client.open_session(ask("/session")).await.unwrap();
        let other_end = hall.accepted().await;

        let (mut send, mut recv) = ours.open_bi().await.unwrap();
        send.write_all(b"x").await.unwrap();
        let (mut back, mut there) = theirs.accept_bi().await.unwrap();
        there.read_chunk(1).await.unwrap();
        let waiting = tokio::spawn(async move { recv.read_chunk(10).await });
        let accepting = tokio::spawn({
            let ours = ours.clone();
            async move { ours.accept_uni().await.map(drop) }
        });
        let listening = tokio::spawn({
            let ours = ours.clone();
            async move { ours.recv_datagram().await }
        });
        tokio::task::yield_now().await;
        theirs.close(99, "that was it");
        let (code, reason) = (99, "that was it".to_owned());
        let end = SessionEnd::Closed { code, reason };
        assert_eq!(ours.closed().await, end);
        assert_eq!(accepting.await.unwrap(), Err(end.clone()));
        assert_eq!(listening.await.unwrap(), Err(end.clone()));
        assert_eq!(ours.open_uni().await.map(drop), Err(end));
        // The peer's reset arrives first, or the event of the session's end.
        let gone = Code::WEBTRANSPORT_SESSION_GONE;
        let error = waiting.await.unwrap().unwrap_err();
        assert!(
            error == ReadError::SessionOver || error == ReadError::Reset(gone),
            "{error:?}"
        );
        let error = send.write_all(b"y").await.unwrap_err();
        assert!(
            error == WriteError::SessionOver || error == WriteError::Stopped(gone),
            "{error:?}"
        );
        assert_eq!(theirs.closed().await, SessionEnd::ClosedHere);
        assert_eq!(back.write_all(b"y").await, Err(WriteError::SessionOver));
        assert_eq!(there.read_chunk(1).await, Err(ReadError::SessionOver));
        assert!(ours.send_datagram(b"late").await.is_err());

        other.send_datagram(b"still here").await.unwrap();
        assert_eq!(other_end.recv_datagram().await.unwrap(), "still here");
        drop((send, back, there, ours, theirs));
        until_requests(&client, 1).await;
    })
    .await;
}

/// Waits until so many requests are open.
async fn until_requests(client: &swiftwater_http::udp::SendRequest, wanted: usize) {
    while client.open_requests() != wanted {
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_last_handle_closes_the_session() {
    guard(async {
        let mut hall = Hall::new();
        let (client, ours, theirs) = hall.session().await;
        let mut send = ours.open_uni().await.unwrap();
        drop(ours);
        // A stream is a handle too.
        send.write_all(b"x").await.unwrap();
        theirs.accept_uni().await.unwrap();
        drop(send);
        let (code, reason) = (0, String::new());
        assert_eq!(theirs.closed().await, SessionEnd::Closed { code, reason });
        until_requests(&client, 0).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_may_refuse_or_lose_interest() {
    guard(async {
        let hall = Hall::new();
        let client = hall.client().await;
        let refused = client.open_session(ask("/elsewhere")).await.unwrap_err();
        assert!(
            matches!(refused, OpenSessionError::Refused(StatusCode::NOT_FOUND)),
            "{refused:?}"
        );
        let (session, head) = client.open_session(ask("/unwanted")).await.unwrap();
        assert_eq!(head.status, StatusCode::OK);
        let (code, reason) = (0, String::new());
        assert_eq!(session.closed().await, SessionEnd::Closed { code, reason });
        until_requests(&client, 0).await;
        // Ordinary requests are not affected.
        let response = client.send(get("/session")).await.unwrap();
        assert_eq!(response.status(), StatusCode::NOT_FOUND);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_are_limited() {
    guard(async {
        let mut hall = Hall::new();
        let client = hall.client().await;
        let mut open = Vec::new();
        for _ in 0..SESSIONS {
            open.push(client.open_session(ask("/session")).await.unwrap().0);
            open.push(hall.accepted().await);
        }
        let refused = client.open_session(ask("/session")).await.unwrap_err();
        assert!(
            matches!(
                refused,
                OpenSessionError::Request(RequestError::TooManySessions)
            ),
            "{refused:?}"
        );
        drop(open);
        until_requests(&client, 0).await;
        client.open_session(ask("/session")).await.unwrap();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_draining_server_asks_sessions_to_end() {
    guard(async {
        let mut hall = Hall::new();
        let (client, ours, theirs) = hall.session().await;
        hall.pair.server.drain();
        tokio::join!(ours.draining(), theirs.draining());
        // Requests in progress may be completed.
        let mut send = ours.open_uni().await.unwrap();
        send.write_all(b"the rest").await.unwrap();
        send.finish().unwrap();
        let mut recv = theirs.accept_uni().await.unwrap();
        assert_eq!(recv.read_to_end(100).await.unwrap(), b"the rest");
        drop((send, recv));
        theirs.close(0, "bye");
        let (code, reason) = (0, "bye".to_owned());
        assert_eq!(ours.closed().await, SessionEnd::Closed { code, reason });
        while hall.pair.server.connections() > 0 {
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
        assert!(client.is_closed());
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn either_end_can_ask_for_an_end_and_a_lost_connection_is_one() {
    guard(async {
        let mut hall = Hall::new();
        let (client, ours, theirs) = hall.session().await;
        ours.drain();
        theirs.draining().await;
        client.close();
        assert!(matches!(ours.closed().await, SessionEnd::ConnectionLost(_)));
        assert!(matches!(
            theirs.closed().await,
            SessionEnd::ConnectionLost(_)
        ));
        assert!(matches!(
            theirs.open_bi().await,
            Err(SessionEnd::ConnectionLost(_))
        ));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_axum_handler_takes_a_session() {
    guard(async {
        let handler = |Extension(asked): Extension<SessionRequest>| async move {
            tokio::spawn(async move {
                let session = asked.session().await.unwrap();
                let datagram = session.recv_datagram().await.unwrap();
                session.send_datagram(&datagram).await.unwrap();
                session.closed().await
            });
            StatusCode::OK
        };
        let app = Router::new()
            .route("/echo", axum::routing::any(handler))
            .route("/", axum::routing::get(|| async { "plain" }));
        // axum's body is one of its own.
        let app = tower::ServiceBuilder::new()
            .map_request(|request: http::Request<swiftwater_http::web::body::Body>| {
                request.map(axum::body::Body::new)
            })
            .service(app);
        let server = H3Server::default().webtransport(1);
        let pair = Pair::with(server, TransportConfig::default(), app);
        let connection = pair.connection().await;
        let client = swiftwater_http::udp::SendRequest::new(connection, config());
        let mut request = ask("/echo");
        let one = http::HeaderValue::from_static("1");
        request
            .headers_mut()
            .insert("sec-webtransport-http3-draft02", one);
        let (session, head) = client.open_session(request).await.unwrap();
        assert_eq!(head.headers["sec-webtransport-http3-draft"], "draft02");
        session.send_datagram(b"ping").await.unwrap();
        assert_eq!(session.recv_datagram().await.unwrap(), "ping");
        let response = client.send(get("/")).await.unwrap();
        assert_eq!(read(response).await, "plain");
    })
    .await;
}
