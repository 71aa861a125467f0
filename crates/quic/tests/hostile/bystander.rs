//! Another client of the endpoint under attack, whose connection must not suffer.

#![allow(
    clippy::unwrap_used,
    dead_code,
    reason = "each user takes a part; a failed unwrap is a failed test"
)]

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use swiftwater_quic::{
    ClientConfig, Connection, ConnectionHandle, DatagramMeta, Endpoint, EndpointConfig, Event,
    ReadOutcome, Routed, SocketId, TransportConfig, WriteError,
};
use swiftwater_tls::EndpointSecrets;
use swiftwater_tls::null::NullClient;
use swiftwater_units::{Dir, Instant, StreamId};

/// One way over its network.
const DELAY: Duration = Duration::from_millis(1);
/// Bytes that it sends at a time.
const TALK: usize = 500;

/// The client, and its connection at the endpoint under attack.
pub(crate) struct Bystander {
    pub(crate) handle: ConnectionHandle,
    served: Connection,
    endpoint: Endpoint,
    own_handle: ConnectionHandle,
    own: Connection,
    /// Its clock runs ahead of the attack's when it talks.
    now: Instant,
    stream: Option<StreamId>,
    /// Bytes that went to the server and back.
    pub(crate) echoed: usize,
    buf: Vec<u8>,
}

fn meta(remote: SocketAddr) -> DatagramMeta {
    DatagramMeta {
        remote,
        local_ip: None,
        socket: SocketId::default(),
        ecn: None,
    }
}

/// Where the bystander sends from.
pub(crate) fn address() -> SocketAddr {
    "203.0.113.1:1111".parse().unwrap()
}

fn server_address() -> SocketAddr {
    "192.0.2.2:443".parse().unwrap()
}

impl Bystander {
    /// Connects to `server`, which uses the null cipher.
    pub(crate) fn join(server: &mut Endpoint, now: Instant) -> Self {
        let key = EndpointSecrets::from_seed([77; 32]);
        let mut endpoint = Endpoint::new(EndpointConfig::new(Arc::new(key)), None, [77; 32]);
        let config = ClientConfig {
            crypto: Arc::new(NullClient::new(["test"])),
            transport: Arc::new(TransportConfig::default()),
        };
        let connecting = endpoint.connect(now, &config, server_address(), "localhost");
        let (own_handle, mut own) = connecting.unwrap();
        let mut buf = vec![0; 15_000];
        let hello = own.poll_transmit(now, 1, &mut buf).unwrap();
        let mut hello = buf[..hello.size].to_vec();
        let mut out = [0; 1500];
        let routed = server.route(now, &meta(address()), &hello, &mut out);
        let Routed::NewConnection { handle, connection } = routed else {
            panic!("the bystander is not let in: {routed:?}");
        };
        let mut served = *connection;
        served.handle_datagram(now, &meta(address()), &mut hello);
        let mut bystander = Self {
            handle,
            served,
            endpoint,
            own_handle,
            own,
            now,
            stream: None,
            echoed: 0,
            buf,
        };
        bystander.exchange(server);
        assert!(bystander.stream.is_some(), "the bystander is connected");
        bystander
    }

    /// A datagram for its connection at the server came in.
    pub(crate) fn receive(&mut self, now: Instant, meta: &DatagramMeta, datagram: &[u8]) {
        self.served
            .handle_datagram(now, meta, &mut datagram.to_vec());
    }

    /// Has bytes echoed. Panics if they don't come back.
    pub(crate) fn talk(&mut self, server: &mut Endpoint, now: Instant) {
        self.now = self.now.max(now);
        let stream = self.stream.unwrap();
        let before = self.echoed;
        let written = self.own.send_stream(stream).write(&[5; TALK]);
        assert_eq!(written, Ok::<_, WriteError>(TALK));
        self.exchange(server);
        assert_eq!(self.echoed - before, TALK, "the bystander is not served");
    }

    /// Both ends talk until they have nothing more to say.
    fn exchange(&mut self, server: &mut Endpoint) {
        let mut quiet = 0;
        while quiet < 40 {
            let sent = self.send_all(server) | self.answer_all();
            self.now += DELAY;
            for connection in [&mut self.served, &mut self.own] {
                if connection.poll_timeout().is_some_and(|at| at <= self.now) {
                    connection.handle_timeout(self.now);
                }
            }
            self.echo();
            self.announce(server);
            // Acknowledgements may be delayed by 25 ms.
            quiet = if sent { 0 } else { quiet + 1 };
        }
    }

    fn send_all(&mut self, server: &mut Endpoint) -> bool {
        let mut any = false;
        while let Some(transmit) = self.own.poll_transmit(self.now, 1, &mut self.buf) {
            any = true;
            let datagram = &mut self.buf[..transmit.size];
            let mut out = [0; 1500];
            match server.route(self.now, &meta(address()), datagram, &mut out) {
                Routed::Connection(handle) => assert_eq!(handle, self.handle),
                routed => panic!("the bystander's packets go astray: {routed:?}"),
            }
            self.served
                .handle_datagram(self.now, &meta(address()), datagram);
        }
        while let Some(event) = self.own.poll_event() {
            assert!(!matches!(event, Event::Closed { .. }), "{event:?}");
            if event == Event::Connected {
                self.stream = self.own.open(Dir::Bi);
            }
        }
        while let Some(event) = self.own.poll_endpoint_event() {
            self.endpoint.handle_event(self.own_handle, event);
        }
        any
    }

    fn answer_all(&mut self) -> bool {
        let mut any = false;
        while let Some(transmit) = self.served.poll_transmit(self.now, 1, &mut self.buf) {
            any = true;
            assert_eq!(transmit.destination, address());
            let datagram = &mut self.buf[..transmit.size];
            self.own
                .handle_datagram(self.now, &meta(server_address()), datagram);
        }
        while let Some(event) = self.served.poll_event() {
            assert!(!matches!(event, Event::Closed { .. }), "{event:?}");
        }
        any
    }

    /// Sends back what came, and takes what came back.
    fn echo(&mut self) {
        let Some(stream) = self.stream else {
            return;
        };
        let mut bytes = [0; TALK];
        self.served.accept(Dir::Bi);
        if let Ok(ReadOutcome::Data(n)) = self.served.recv_stream(stream).read(&mut bytes) {
            let written = self.served.send_stream(stream).write(&bytes[..n]);
            assert_eq!(written, Ok::<_, WriteError>(n));
        }
        if let Ok(ReadOutcome::Data(n)) = self.own.recv_stream(stream).read(&mut bytes) {
            self.echoed += n;
        }
    }

    /// Passes what its connection announces to the endpoint.
    fn announce(&mut self, server: &mut Endpoint) {
        while let Some(event) = self.served.poll_endpoint_event() {
            server.handle_event(self.handle, event);
        }
    }
}
