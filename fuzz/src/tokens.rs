//! A client that presents a token to a server, as it got it or not.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use arbitrary::Arbitrary;
use swiftwater_quic::crypto::EndpointKey;
use swiftwater_quic::wire::{ConnectionId, PacketType, PartialHeader, ResetToken};
use swiftwater_quic::{
    ClientConfig, DatagramMeta, Endpoint, EndpointConfig, RetryPolicy, Routed, ServerConfig,
    SocketId, TransportConfig,
};
use swiftwater_tls::EndpointSecrets;
use swiftwater_tls::null::{NullClient, NullServer};
use swiftwater_units::Instant;

/// Length of the server's connection IDs.
const CID_LEN: usize = 8;

/// A token and when it is presented.
#[derive(Arbitrary, Debug)]
pub struct Presented {
    /// The server's key neither hides nor authenticates: the decoded content is the presented one.
    open: bool,
    /// The server validates every address.
    strict: bool,
    token: Token,
    /// Seconds since the server gave one.
    later: u16,
}

#[derive(Arbitrary, Debug)]
enum Token {
    Any(Vec<u8>),
    /// That of a Retry with some bytes changed (position, exclusive or), then cut or made longer.
    Damaged {
        changes: Vec<(u8, u8)>,
        cut: u8,
        more: Vec<u8>,
    },
}

/// Seals by writing a nonce before.
#[derive(Debug)]
struct OpenKey;

impl EndpointKey for OpenKey {
    fn reset_token(&self, _: &ConnectionId) -> ResetToken {
        ResetToken([7; 16])
    }

    fn seal_token(&self, nonce: [u8; 12], plaintext: &[u8]) -> Vec<u8> {
        [&nonce[..], plaintext].concat()
    }

    fn open_token(&self, token: &[u8]) -> Option<Vec<u8>> {
        token.get(12..).map(<[u8]>::to_vec)
    }

    fn mask(&self, _: &[u8; 16]) -> [u8; 4] {
        [0; 4]
    }
}

fn at(from: SocketAddr) -> DatagramMeta {
    DatagramMeta {
        remote: from,
        local_ip: None,
        socket: SocketId::default(),
        ecn: None,
    }
}

/// A server's answer to a client's first datagram.
enum Answer {
    Connection,
    Retry(Vec<u8>),
    Other,
}

struct Ends {
    client: Endpoint,
    server: Endpoint,
    config: ClientConfig,
}

impl Ends {
    fn new(open: bool, retry: RetryPolicy) -> Self {
        let key: Arc<dyn EndpointKey> = if open {
            Arc::new(OpenKey)
        } else {
            Arc::new(EndpointSecrets::from_seed([9; 32]))
        };
        let transport = Arc::new(TransportConfig::default());
        let server = ServerConfig {
            retry,
            ..ServerConfig::new(Arc::new(NullServer::new(["fuzz"])), transport.clone())
        };
        let of_client = EndpointConfig::new(Arc::new(OpenKey));
        let of_server = EndpointConfig::new(key);
        Self {
            client: Endpoint::new(of_client, None, [1; 32]),
            server: Endpoint::new(of_server, Some(Arc::new(server)), [2; 32]),
            config: ClientConfig {
                crypto: Arc::new(NullClient::new(["fuzz"])),
                transport,
            },
        }
    }

    /// A new client presents `token`.
    fn visit(&mut self, now: Instant, token: Vec<u8>) -> Answer {
        let address = |host: u8, port: u16| SocketAddr::from(([192, 0, 2, host], port));
        let (config, to) = (&self.config, address(1, 443));
        let opened = self
            .client
            .connect_with_token(now, config, to, "localhost", token);
        let (_, mut connection) = opened.expect("a connection can be started");
        let mut buf = vec![0; 1500];
        let Some(transmit) = connection.poll_transmit(now, 1, &mut buf) else {
            // The token leaves no room for anything else.
            return Answer::Other;
        };
        let mut out = [0; 1500];
        let meta = at(address(2, 50_000));
        let initial = &buf[..transmit.size];
        match self.server.route(now, &meta, initial, &mut out) {
            Routed::NewConnection { .. } => Answer::Connection,
            Routed::Response(response) => {
                let answer = &out[..response.size];
                let header = PartialHeader::parse(answer, CID_LEN).expect("an answer has a header");
                if header.packet_type == PacketType::Retry {
                    Answer::Retry(answer[header.token].to_vec())
                } else {
                    Answer::Other
                }
            }
            _ => Answer::Other,
        }
    }
}

impl Presented {
    /// Presents it.
    pub fn run(self) {
        let retry = if self.strict {
            RetryPolicy::Always
        } else {
            RetryPolicy::Never
        };
        let mut ends = Ends::new(self.open, retry);
        let start = Instant::from_millis(5_000);
        let token = match self.token {
            Token::Any(bytes) => bytes,
            Token::Damaged { changes, cut, more } => {
                let mut giver = Ends::new(self.open, RetryPolicy::Always);
                let Answer::Retry(mut token) = giver.visit(start, Vec::new()) else {
                    panic!("a client without a token was not asked for one");
                };
                for (at, mask) in changes {
                    let at = usize::from(at) % token.len();
                    token[at] ^= mask;
                }
                token.truncate(token.len().saturating_sub(cut.into()));
                token.extend(more);
                token
            }
        };
        let token = token[..token.len().min(1_000)].to_vec();
        let now = start + Duration::from_secs(self.later.into());
        // Every Initial has its own destination, which the token of a Retry is about: even a genuine
        // one is good for nothing here.
        let is_taken = matches!(ends.visit(now, token), Answer::Connection);
        assert!(
            !is_taken || self.open || !self.strict,
            "a forged token was taken"
        );
    }
}
