//! Packets of QUIC beside the connection to the proxy, over loopback (draft-ietf-masque-quic-proxy): downloads, clients
//! that move, and clients that do as they please.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, Response};
use swiftwater_http::h3;
use swiftwater_http::h3::ConnectProtocol;
use swiftwater_http::h3::capsule::{Capsule, CapsuleReader};
use swiftwater_http::udp::SendRequest;
use swiftwater_http::udp::connect::{HttpDatagrams, RecvContent, SendContent};
use swiftwater_http::web::body::Body;
use swiftwater_net::quic::{ClientConfig, EcnCodepoint, TransportConfig};
use swiftwater_net::relay::{Relay, RelayConfig};
use swiftwater_net::{Connection, Endpoint, VirtualId, VirtualIdReceiver, VirtualPacket};
use swiftwater_tunnel::CONNECT_UDP;
use swiftwater_tunnel::client::endpoint::TunnelEndpoint;
use swiftwater_tunnel::client::{Connect, Connecting, TunnelClient, TunnelError};
use swiftwater_tunnel::context;
use swiftwater_tunnel::forwarding::{
    CidCapsule, ForwardingAnswer, ForwardingOffer, PROXY_QUIC_FORWARDING, ScrambleKey, Transform,
};
use swiftwater_tunnel::proxy::{Limits, ProxyConfig};
use swiftwater_tunnel::target::{Target, Template};
use swiftwater_units::ByteCount;
use swiftwater_wire::ConnectionId;
use tokio::net::UdpSocket;
use tokio::sync::mpsc;
use tower::service_fn;

use crate::stage::{
    NAME, Stage, config, content, endpoint, endpoint_config, get_with, guard, origin, serving,
    target, token,
};

/// A client of the HTTP/3 server at `origin`, through the proxy that is reached at `proxy`, which agrees to `transform`. It
/// lasts as long as the endpoint.
pub(crate) async fn http3_client(
    stage: &Stage,
    proxy: SocketAddr,
    transform: Transform,
    (origin, config): (SocketAddr, &ClientConfig),
) -> (TunnelEndpoint, SendRequest) {
    let (template, token) = (Template::new(NAME).unwrap(), token());
    let connector = stage.connector_to(proxy);
    let client = TunnelClient::with_forwarding(template, Some(&token), connector, &[transform]);
    let endpoint = endpoint(client);
    let connection = endpoint.connect(config, &target(origin), NAME).await;
    let client = SendRequest::new(connection.unwrap(), h3::Config::default());
    (endpoint, client)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn short_headers_pass_beside_the_connection_and_long_ones_through_it() {
    guard(async {
        for transform in Transform::ALL {
            let stage = Stage::new();
            let content = Bytes::from(content(3_000_000));
            let (origin, config) = origin(content.clone(), TransportConfig::default());
            let (proxy, to) = (stage.server_end.local_addr(), origin.local_addr());
            let (_endpoint, client) = http3_client(&stage, proxy, transform, (to, &config)).await;
            assert_eq!(get_with(&client).await, content, "{transform:?}");
            let stats = stage.proxy.stats();
            assert_eq!(stats.opened, 1);
            // The handshake, and what comes until the IDs are registered, is in the tunnel.
            let tunnelled = (
                stats.datagrams_to_clients - stats.forwarded_to_clients,
                stats.datagrams_to_targets - stats.forwarded_to_targets,
            );
            assert!(tunnelled.0 > 0 && tunnelled.1 > 0, "{stats:?}");
            assert!(stats.forwarded_to_clients > 1500, "{stats:?}");
            assert!(stats.forwarded_to_targets > 20, "{stats:?}");
            assert_eq!(
                stage.server_end.stats().virtual_packets,
                stats.forwarded_to_targets
            );
            assert!(stage.client_end.stats().virtual_packets > 1500);
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_an_agreement_everything_is_in_the_tunnel() {
    guard(async {
        let without = ProxyConfig {
            forwarding: Vec::new(),
            ..config()
        };
        let scrambling = ProxyConfig {
            forwarding: vec![Transform::Scramble],
            ..config()
        };
        for (config, offer) in [
            (without, Transform::Scramble),
            (scrambling, Transform::Identity),
        ] {
            let stage = Stage::with(config);
            let content = Bytes::from(content(100_000));
            let (origin, config) = origin(content.clone(), TransportConfig::default());
            let (proxy, to) = (stage.server_end.local_addr(), origin.local_addr());
            let (_endpoint, client) = http3_client(&stage, proxy, offer, (to, &config)).await;
            assert_eq!(get_with(&client).await, content);
            let stats = stage.proxy.stats();
            assert_eq!(
                (stats.forwarded_to_clients, stats.forwarded_to_targets),
                (0, 0)
            );
        }
    })
    .await;
}

/// The address of the client changes, once without its knowledge and once with it: each time the download goes on, and so
/// does forwarding, with other IDs.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn forwarding_goes_on_when_the_client_has_another_address() {
    guard(async {
        let stage = Stage::new();
        let any = "127.0.0.1:0".parse().unwrap();
        let through = RelayConfig::new(any, stage.server_end.local_addr());
        let relay = Relay::start(through).unwrap();
        let content = Bytes::from(content(1_000_000));
        let (origin, config) = origin(content.clone(), TransportConfig::default());
        let (proxy, to) = (relay.local_addr(), origin.local_addr());
        let transform = Transform::Scramble;
        let (_endpoint, client) = http3_client(&stage, proxy, transform, (to, &config)).await;
        let mut before = 0;
        for change in 0..3 {
            match change {
                0 => {}
                1 => relay.rebind().unwrap(),
                _ => drop(stage.client_end.rebind(any).unwrap()),
            }
            // Until the IDs are registered again, packets are in the tunnel.
            loop {
                assert_eq!(get_with(&client).await, content, "{change}");
                let forwarded = stage.proxy.stats().forwarded_to_clients;
                if forwarded > before + 500 {
                    before = forwarded;
                    break;
                }
            }
        }
        assert_eq!(stage.proxy.stats().opened, 1);
    })
    .await;
}

/// A client that says what a test wants.
struct Raw {
    connection: Connection,
    datagrams: HttpDatagrams,
    send: SendContent,
    receive: RecvContent,
    reader: CapsuleReader,
    piece: Bytes,
    answer: HeaderMap,
    offer: ForwardingOffer,
}

impl Raw {
    async fn open(stage: &Stage, to: &Target) -> Self {
        let request = stage.connect().await;
        let offer = ForwardingOffer::new(&[Transform::Scramble], ScrambleKey::new([3; 32]));
        let uri = Template::new(NAME).unwrap().expand(to).unwrap();
        let head = Request::get(uri)
            .header("capsule-protocol", "?1")
            .header("proxy-authorization", token().credentials().unwrap())
            .header("proxy-quic-port-sharing", "?1")
            .header(PROXY_QUIC_FORWARDING, offer.field().unwrap());
        let protocol = ConnectProtocol::new(CONNECT_UDP).unwrap();
        let pending = request
            .connect(protocol, head.body(()).unwrap())
            .await
            .unwrap();
        let datagrams = pending.datagrams().clone();
        let (head, content) = pending.response().await.unwrap().into_parts();
        Self {
            connection: datagrams.connection().clone(),
            datagrams,
            send: content.send,
            receive: content.receive,
            reader: CapsuleReader::new(1000),
            piece: Bytes::new(),
            answer: head.headers,
            offer,
        }
    }

    fn agreed(&self) -> ForwardingAnswer {
        let field = self.answer.get(PROXY_QUIC_FORWARDING).unwrap();
        ForwardingAnswer::parse(field, &self.offer)
            .unwrap()
            .unwrap()
    }

    async fn say(&mut self, capsule: &CidCapsule) {
        self.send.write(capsule.to_bytes()).await.unwrap();
    }

    /// The next capsule of the proxy; `None` if it ends the tunnel.
    async fn hear(&mut self) -> Option<CidCapsule> {
        loop {
            if let Some(capsule) = self.reader.next(&mut self.piece) {
                return Some(CidCapsule::decode(&capsule).unwrap().unwrap());
            }
            self.piece = self.receive.read().await.ok()??;
        }
    }

    async fn send(&self, payload: &[u8]) {
        let datagram = context::encode(context::ContextId::UDP, payload);
        self.datagrams.send(&datagram).await.unwrap();
    }

    /// Registers an ID of the client, and takes the virtual one, whose packets come out of what is returned.
    async fn take_client_id(&mut self, cid: &'static [u8]) -> (VirtualId, Received) {
        self.say(&CidCapsule::RegisterClientCid(Bytes::from_static(cid)))
            .await;
        let Some(CidCapsule::AckClientCid { vcid, .. }) = self.hear().await else {
            panic!("the ID is refused");
        };
        let (sender, received) = mpsc::unbounded_channel();
        let id = ConnectionId::new(&vcid).unwrap();
        assert!(id.len() >= cid.len().max(8));
        let receiver = Arc::new(Receiver(Mutex::new(sender)));
        let virtual_id = self.connection.accept_virtual_id(id, receiver).unwrap();
        self.say(&CidCapsule::AckClientVcid {
            cid: Bytes::from_static(cid),
            vcid,
            reset_token: Bytes::new(),
        })
        .await;
        (virtual_id, received)
    }

    /// Registers an ID of the target; the virtual one, if it is not refused.
    async fn take_target_id(&mut self, cid: &'static [u8]) -> Option<Bytes> {
        let (cid, reset_token) = (Bytes::from_static(cid), Bytes::new());
        self.say(&CidCapsule::RegisterTargetCid { cid, reset_token })
            .await;
        match self.hear().await.unwrap() {
            CidCapsule::AckTargetCid { vcid, .. } => Some(vcid),
            CidCapsule::CloseTargetCid(_) => None,
            other => panic!("{other:?}"),
        }
    }

    fn forward(&self, vcid: &[u8], content: &[u8], ecn: Option<EcnCodepoint>) {
        let mut packet = [&[0x45], vcid, content].concat();
        assert!(
            self.offer
                .sending(&self.agreed())
                .encode(&mut packet, vcid.len())
        );
        let path = self.connection.validated_path().unwrap();
        let sent = self
            .connection
            .send_beside(&path, &packet, packet.len(), ecn);
        sent.unwrap();
    }
}

type Received = mpsc::UnboundedReceiver<(Vec<u8>, Option<EcnCodepoint>)>;

struct Receiver(Mutex<mpsc::UnboundedSender<(Vec<u8>, Option<EcnCodepoint>)>>);

impl VirtualIdReceiver for Receiver {
    fn receive(&self, packets: &mut dyn Iterator<Item = VirtualPacket<'_>>) {
        for packet in packets {
            let sender = self.0.lock().unwrap();
            let _ = sender.send((packet.packet.to_vec(), packet.ecn));
        }
    }
}

/// A target, and the address of the proxy there once it has said something.
async fn answering(raw: &Raw, socket: &UdpSocket) -> SocketAddr {
    raw.send(b"hello").await;
    let mut buffer = [0; 100];
    let (_, from) = socket.recv_from(&mut buffer).await.unwrap();
    socket.send_to(b"welcome", from).await.unwrap();
    raw.datagrams.recv().await.unwrap();
    from
}

const CONTENT: [u8; 40] = [0xa5; 40];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn packets_get_the_ids_of_their_receivers_and_nothing_else_passes() {
    guard(async {
        let stage = Stage::new();
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let mut raw = Raw::open(&stage, &target(socket.local_addr().unwrap())).await;
        assert_eq!(raw.answer.get("proxy-quic-port-sharing").unwrap(), "?0");
        let permitted = raw.hear().await;
        assert_eq!(permitted, Some(CidCapsule::MaxConnectionIds(7)));
        // Nobody knows an ID of a target that has said nothing: who claims to might flood somebody.
        assert_eq!(raw.take_target_id(b"target-1").await, None);
        assert!(matches!(
            raw.hear().await,
            Some(CidCapsule::MaxConnectionIds(_))
        ));
        let proxy = answering(&raw, &socket).await;
        let vcid = raw.take_target_id(b"target-1").await.unwrap();
        raw.forward(&vcid, &CONTENT, None);
        let mut buffer = [0; 100];
        let (len, from) = socket.recv_from(&mut buffer).await.unwrap();
        assert_eq!(
            (&buffer[..len], from),
            (&[b"\x45target-1", &CONTENT[..]].concat()[..], proxy)
        );

        let (_held, mut received) = raw.take_client_id(b"client-1").await;
        // Once the proxy has taken the acknowledgement, it forwards.
        let packet = [b"\x41client-1", &CONTENT[..]].concat();
        let forwarded = loop {
            socket.send_to(&packet, proxy).await.unwrap();
            tokio::select! {
                datagram = raw.datagrams.recv() => assert_eq!(datagram.unwrap()[1..], packet[..]),
                forwarded = received.recv() => break forwarded.unwrap(),
            }
        };
        let (mut forwarded, _) = forwarded;
        assert_eq!(forwarded.len(), packet.len());
        assert_ne!(forwarded[17..], packet[17..], "it is scrambled");
        assert!(raw.agreed().sending().decode(&mut forwarded, 8));
        assert_eq!((forwarded[0], &forwarded[9..]), (0x41, &CONTENT[..]));
        // Long headers, other IDs and short packets stay in the tunnel.
        for packet in [
            &b"\xc1client-1-long-header-and-some-bytes-more"[..],
            b"\x41client-2-and-some-bytes-more-of-it",
            b"\x41client-1short",
        ] {
            socket.send_to(packet, proxy).await.unwrap();
            assert_eq!(raw.datagrams.recv().await.unwrap()[1..], *packet);
        }
        // A virtual ID in the hands of somebody else is of no use there.
        let before = stage.proxy.stats();
        let mut packet = [&[0x45], &vcid[..], &CONTENT[..]].concat();
        raw.offer
            .sending(&raw.agreed())
            .encode(&mut packet, vcid.len());
        let stranger = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        stranger
            .send_to(&packet, stage.server_end.local_addr())
            .await
            .unwrap();
        let after = stage
            .until(|stats| stats.dropped_unknown > before.dropped_unknown)
            .await;
        assert_eq!(after.forwarded_to_targets, before.forwarded_to_targets);
        // An ID that is closed does not forward any more.
        raw.say(&CidCapsule::CloseTargetCid(Bytes::from_static(b"target-1")))
            .await;
        raw.say(&CidCapsule::CloseClientCid(Bytes::from_static(b"client-1")))
            .await;
        raw.hear().await.unwrap();
        raw.forward(&vcid, &CONTENT, None);
        raw.send(b"through the tunnel").await;
        let (len, _) = socket.recv_from(&mut buffer).await.unwrap();
        assert_eq!(&buffer[..len], b"through the tunnel");
    })
    .await;
}

/// Both ways a mark of the network passes the proxy (section 6.7).
#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ecn_marks_pass_in_both_directions() {
    guard(async {
        let stage = Stage::new();
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let state = quinn_udp::UdpSocketState::new((&socket).into()).unwrap();
        let mut raw = Raw::open(&stage, &target(socket.local_addr().unwrap())).await;
        raw.hear().await.unwrap();
        let proxy = answering(&raw, &socket).await;
        let vcid = raw.take_target_id(b"target-1").await.unwrap();
        let (_held, mut received) = raw.take_client_id(b"client-1").await;
        for (mark, udp) in [
            (None, None),
            (
                Some(EcnCodepoint::Ect0),
                Some(quinn_udp::EcnCodepoint::Ect0),
            ),
            (
                Some(EcnCodepoint::Ect1),
                Some(quinn_udp::EcnCodepoint::Ect1),
            ),
            (Some(EcnCodepoint::Ce), Some(quinn_udp::EcnCodepoint::Ce)),
        ] {
            raw.forward(&vcid, &CONTENT, mark);
            let mut buffer = [0; 200];
            let mut meta = [quinn_udp::RecvMeta::default()];
            loop {
                socket.readable().await.unwrap();
                let mut slots = [std::io::IoSliceMut::new(&mut buffer)];
                let receive = || state.recv((&socket).into(), &mut slots, &mut meta);
                if socket
                    .try_io(tokio::io::Interest::READABLE, receive)
                    .is_ok()
                {
                    break;
                }
            }
            assert_eq!(meta[0].ecn, udp);
            let packet = [b"\x41client-1", &CONTENT[..]].concat();
            let back = loop {
                let transmit = quinn_udp::Transmit {
                    destination: proxy,
                    ecn: udp,
                    contents: &packet,
                    segment_size: None,
                    src_ip: None,
                };
                state.try_send((&socket).into(), &transmit).unwrap();
                tokio::select! {
                    _ = raw.datagrams.recv() => {}
                    forwarded = received.recv() => break forwarded.unwrap(),
                }
            };
            assert_eq!(back.1, mark);
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_registers_too_much_or_nonsense_loses_its_tunnel() {
    guard(async {
        let stage = Stage::new();
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let to = target(socket.local_addr().unwrap());
        let mut raw = Raw::open(&stage, &to).await;
        raw.hear().await.unwrap();
        for number in 0..9_u8 {
            let registration = CidCapsule::RegisterClientCid(Bytes::from(vec![number; 8]));
            raw.say(&registration).await;
            if number < 8 {
                let answer = raw.hear().await;
                assert!(matches!(answer, Some(CidCapsule::AckClientCid { .. })));
            }
        }
        assert_eq!(raw.hear().await, None);
        let mut raw = Raw::open(&stage, &to).await;
        raw.hear().await.unwrap();
        let mut malformed = Vec::new();
        Capsule {
            capsule_type: 0xff_e601,
            value: Bytes::from_static(b"\x08short"),
        }
        .encode(&mut malformed);
        raw.send.write(malformed.into()).await.unwrap();
        assert_eq!(raw.hear().await, None);
        stage.until(|stats| stats.closed == 2).await;
    })
    .await;
}

/// Answers that nobody reads take no memory: the tunnel ends.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_does_not_read_the_answers_loses_its_tunnel() {
    guard(async {
        let transport = TransportConfig {
            initial_max_datagram_size: 1252,
            stream_receive_window: ByteCount::new(1000),
            ..TransportConfig::default()
        };
        let stage = Stage::over(
            transport,
            swiftwater_tunnel::proxy::TunnelProxy::new(config()),
        );
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let mut raw = Raw::open(&stage, &target(socket.local_addr().unwrap())).await;
        let cid = Bytes::from_static(b"client-1");
        for _ in 0..1000 {
            let register = CidCapsule::RegisterClientCid(cid.clone()).to_bytes();
            let close = CidCapsule::CloseClientCid(cid.clone()).to_bytes();
            let both = [register, close].concat();
            if raw.send.write(both.into()).await.is_err() {
                break;
            }
        }
        stage.until(|stats| stats.closed == 1).await;
    })
    .await;
}

/// Packets beside the connection keep a tunnel open, as those in it do.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn forwarded_packets_are_use_of_the_tunnel() {
    guard(async {
        let stage = Stage::with(ProxyConfig {
            limits: Limits {
                idle_timeout: Duration::from_millis(300),
                ..Limits::default()
            },
            ..config()
        });
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let mut raw = Raw::open(&stage, &target(socket.local_addr().unwrap())).await;
        raw.hear().await.unwrap();
        answering(&raw, &socket).await;
        let vcid = raw.take_target_id(b"target-1").await.unwrap();
        for _ in 0..15 {
            tokio::time::sleep(Duration::from_millis(100)).await;
            raw.forward(&vcid, &CONTENT, None);
        }
        assert_eq!(stage.proxy.stats().closed, 0);
        stage.until(|stats| stats.closed == 1).await;
    })
    .await;
}

/// Connects to a server of the test.
struct ToServer {
    end: Endpoint,
    config: ClientConfig,
    remote: SocketAddr,
}

impl Connect for ToServer {
    fn connect(&self) -> Connecting<'_> {
        Box::pin(async move {
            let connection = self.end.connect(&self.config, self.remote, NAME)?.await?;
            Ok(SendRequest::new(connection, h3::Config::default()))
        })
    }
}

/// A proxy that gives one virtual ID after the other and reads no acknowledgement: the client gives forwarding up, not its
/// memory.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_proxy_that_does_not_read_is_not_forwarded_through() {
    guard(async {
        let service = service_fn(|request: Request<Body>| async move {
            let mut capsules = Vec::new();
            for number in 0..2000_u64 {
                let ack = CidCapsule::AckClientCid {
                    cid: Bytes::from_static(b"client-1"),
                    vcid: Bytes::copy_from_slice(&number.to_be_bytes()),
                };
                capsules.extend_from_slice(&ack.to_bytes());
            }
            // It is there, and nobody reads it.
            tokio::spawn(async move {
                let _request = request;
                std::future::pending::<()>().await;
            });
            let mut response = Response::new(Body::full(capsules));
            let headers = response.headers_mut();
            let agreed = HeaderValue::from_static("?1;transform=\"identity\"");
            headers.insert(PROXY_QUIC_FORWARDING, agreed);
            Ok::<_, Infallible>(response)
        });
        let transport = TransportConfig {
            initial_max_datagram_size: 1252,
            stream_receive_window: ByteCount::new(1000),
            ..TransportConfig::default()
        };
        let (server, config) = serving(service, transport);
        let connector = ToServer {
            end: Endpoint::client("127.0.0.1:0".parse().unwrap(), endpoint_config(2), [2; 32])
                .unwrap(),
            config,
            remote: server.local_addr(),
        };
        let template = Template::new(NAME).unwrap();
        let client =
            TunnelClient::with_forwarding(template, None, connector, &[Transform::Identity]);
        let mut tunnel = client
            .open(&"127.0.0.1:443".parse().unwrap())
            .await
            .unwrap();
        let initial = b"\xc0\x00\x00\x00\x01\x06random\x08client-1";
        tunnel.send(initial).await.unwrap();
        assert!(matches!(tunnel.recv().await, Err(TunnelError::Ended)));
        assert!(!tunnel.is_forwarding());
    })
    .await;
}
