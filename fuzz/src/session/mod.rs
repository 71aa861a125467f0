//! WebTransport sessions whose connection ends at any moment: the whole server and the whole client with their
//! worker and their tasks, on loopback with a clock that jumps, against the hand-made peer. After the end every
//! task that waited for something is done, and none has panicked.
//!
//! Programs are those of [`closing`](crate::closing), the application's calls with a meaning of their own. What
//! is withheld waits in the socket, and is read as one batch.

mod application;

use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use swiftwater_http::udp::ALPN_HTTP3;
use swiftwater_net::Endpoint;
use swiftwater_net::quic::{ClientConfig, EndpointConfig, ServerConfig, TransportConfig};
use swiftwater_quic::crypto::EncryptionLevel;
use swiftwater_quic::wire::Frame;
use swiftwater_tls::EndpointSecrets;
use swiftwater_tls::null::{NullClient, NullServer};
use swiftwater_units::Side;
use tokio::time::sleep;

use self::application::Application;
use crate::closing::program::{Beginning, Call, Fate, Op, Program};
use crate::closing::speaker::Speaker;
use crate::coding::encode;
use crate::peer::{Packet, RawPeer};
use crate::persona::Persona;
use crate::watchdog;

/// One iteration of everything that can make progress.
const TURN: Duration = Duration::from_millis(1);
/// Longer than any idle timeout.
const IDLE: Duration = Duration::from_secs(300);
/// After the end of the connection, no task waits longer than this.
const PATIENCE: Duration = Duration::from_secs(3600);

/// Carries out the program that `bytes` are.
pub fn run(bytes: &[u8]) {
    let mut program = Program::new(bytes);
    let Some(beginning) = program.setup() else {
        return;
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .event_interval(1)
        .build()
        .expect("a runtime");
    watchdog::call("the runtime", || {
        runtime.block_on(async {
            let Some(mut world) = World::new(beginning).await else {
                return;
            };
            while let Some(op) = program.next_op() {
                world.play(op).await;
            }
            world.end().await;
        });
    });
}

/// The end under test, and the peer.
struct World {
    endpoint: Endpoint,
    application: Application,
    peer: RawPeer,
    socket: UdpSocket,
    victim: SocketAddr,
    speaker: Speaker,
    late: Vec<Vec<u8>>,
    withholds: bool,
}

impl World {
    /// Both ends with a complete handshake; `None` if there is none.
    async fn new(beginning: Beginning) -> Option<Self> {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
        socket.set_nonblocking(true).expect("a socket");
        let mut world = match beginning.engine {
            Side::Server => Self::server(socket),
            Side::Client => Self::client(socket).await?,
        };
        world.shake_hands().await?;
        if beginning.well_begun {
            world.speaker.begin(true);
            world.flush(Fate::Delivered).await;
        }
        Some(world)
    }

    fn server(socket: UdpSocket) -> Self {
        let config = ServerConfig::new(
            Arc::new(NullServer::new([ALPN_HTTP3])),
            Arc::new(TransportConfig::default()),
        );
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let endpoint = Endpoint::server(any, endpoint_config(), [1; 32], config).expect("a port");
        let application = Application::server(&endpoint);
        let peer = RawPeer::client(&NullClient::new([ALPN_HTTP3]), &Persona::default());
        Self::with(endpoint, application, peer, socket, Side::Server)
    }

    async fn client(socket: UdpSocket) -> Option<Self> {
        let config = ClientConfig {
            crypto: Arc::new(NullClient::new([ALPN_HTTP3])),
            transport: Arc::new(TransportConfig::default()),
        };
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let endpoint = Endpoint::client(any, endpoint_config(), [1; 32]).expect("a port");
        let to = socket.local_addr().expect("a bound socket");
        let application = Application::client(&endpoint, &config, to);
        sleep(TURN).await;
        let mut first = [0; 2000];
        let len = socket.recv(&mut first).ok()?;
        let crypto = NullServer::new([ALPN_HTTP3]);
        let mut peer = RawPeer::server(&crypto, &Persona::default(), &first[..len], None);
        peer.open(&first[..len]);
        Some(Self::with(
            endpoint,
            application,
            peer,
            socket,
            Side::Client,
        ))
    }

    fn with(
        endpoint: Endpoint,
        application: Application,
        peer: RawPeer,
        socket: UdpSocket,
        engine: Side,
    ) -> Self {
        Self {
            victim: endpoint.local_addr(),
            endpoint,
            application,
            peer,
            socket,
            speaker: Speaker::new(engine),
            late: Vec::new(),
            withholds: false,
        }
    }

    async fn shake_hands(&mut self) -> Option<()> {
        let mut done = false;
        for _ in 0..20 {
            for datagram in self.peer.answers() {
                self.send(&datagram);
            }
            self.turn().await;
            if self.peer.is_complete() && !done {
                done = true;
                if self.victim_is_client() {
                    let datagram = self.peer.seal_payload(&encode(&[Frame::HandshakeDone]));
                    self.send(&datagram);
                }
            } else if done {
                return Some(());
            }
        }
        None
    }

    fn victim_is_client(&self) -> bool {
        self.application.side() == Side::Client
    }

    fn send(&self, datagram: &[u8]) {
        match self.socket.send_to(datagram, self.victim) {
            Ok(_) => {}
            // The victim may have ended.
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => panic!("loopback: {error}"),
        }
    }

    /// Lets all tasks process their events, and the peer read.
    async fn turn(&mut self) {
        if self.withholds {
            return;
        }
        for _ in 0..2 {
            sleep(TURN).await;
            let mut buf = [0; 2000];
            while let Ok(len) = self.socket.recv(&mut buf) {
                self.peer.open(&buf[..len]);
            }
        }
    }

    async fn flush(&mut self, fate: Fate) {
        let payload = self.speaker.take();
        if payload.is_empty() {
            return;
        }
        let datagram = self
            .peer
            .seal(&Packet::new(EncryptionLevel::OneRtt, &payload));
        match fate {
            Fate::Delivered => {
                self.send(&datagram);
                self.turn().await;
            }
            Fate::Lost => {}
            Fate::Late => self.late.push(datagram),
        }
    }

    async fn play(&mut self, op: Op) {
        match op {
            Op::Say(piece) => {
                self.speaker.say(piece);
                if self.speaker.is_full() {
                    self.flush(Fate::Delivered).await;
                }
            }
            Op::Flush(fate) => self.flush(fate).await,
            Op::Late => {
                if let Some(datagram) = self.late.pop() {
                    self.send(&datagram);
                    self.turn().await;
                }
            }
            Op::Answer => {
                for datagram in self.peer.answers() {
                    self.send(&datagram);
                }
                self.turn().await;
            }
            Op::Withhold(withhold) => {
                self.withholds = withhold;
                self.turn().await;
            }
            Op::Wait(time) => sleep(time).await,
            // The peer has no token here: its datagrams are lost instead until the connection times out.
            Op::StatelessReset | Op::IdleTimeout => sleep(IDLE).await,
            Op::Call(Call::Close) => self.endpoint.close(0x100, b""),
            Op::Call(call) => {
                self.application.call(call);
                self.turn().await;
            }
        }
    }

    /// Whatever happened, the connection ends, and so does all that waited on it.
    async fn end(mut self) {
        self.flush(Fate::Delivered).await;
        self.withholds = false;
        self.turn().await;
        self.endpoint.close(0x100, b"");
        self.turn().await;
        let ended = tokio::time::timeout(PATIENCE, self.application.join()).await;
        assert!(
            ended.is_ok(),
            "a task waits forever on a connection that is over: {}",
            self.application.waiting()
        );
    }
}

fn endpoint_config() -> EndpointConfig {
    EndpointConfig::new(Arc::new(EndpointSecrets::from_seed([1; 32])))
}
