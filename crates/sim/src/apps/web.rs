//! Requests over QUIC or TCP, whichever each of them is to take: [`WebClient`] and [`WebServer`].

use std::net::SocketAddr;

use swiftwater_quic::{ClientConfig, ConnectionHandle, Event};
use swiftwater_units::Instant;

use super::https::{HttpsClient, HttpsConfig, HttpsServer};
use super::request::{Exchange, Requester, Responder};
use crate::application::{Application, HostContext};
use crate::tcp;
use crate::tcp_table::TcpHandle;

/// What a request is sent over.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Protocol {
    /// A stream of a QUIC connection.
    Quic,
    /// HTTP/2 over TLS 1.3 over TCP.
    Tcp,
}

/// A request of a plan.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct WebRequest {
    /// When it is due.
    pub at: Instant,
    /// What it is sent over.
    pub protocol: Protocol,
    /// Bytes of its body.
    pub request_len: u64,
    /// Bytes of the response's body.
    pub response_len: u64,
}

/// Makes requests of one server, over one connection for each protocol, which is opened by the first
/// request and again after a failure.
#[derive(Debug)]
pub struct WebClient {
    quic: Requester,
    tcp: HttpsClient,
    heads: (u64, u64),
    plan: Vec<WebRequest>,
    made: Vec<(Protocol, usize)>,
}

impl WebClient {
    /// A client of `remote` that makes the requests of `plan`, and others that
    /// [`WebClient::request`] is called for.
    pub fn new(
        quic: ClientConfig,
        tcp: HttpsConfig,
        remote: SocketAddr,
        plan: Vec<WebRequest>,
    ) -> Self {
        Self {
            heads: (tcp.request_head as u64, tcp.response_head as u64),
            quic: Requester::on_demand(quic, remote),
            tcp: HttpsClient::new(tcp, remote),
            plan,
            made: Vec::new(),
        }
    }

    /// Makes a request now; `lengths` are those of the bodies of request and response. Returns its number
    /// among all that were made.
    pub fn request(
        &mut self,
        host: &mut HostContext<'_>,
        protocol: Protocol,
        lengths: (u64, u64),
    ) -> usize {
        let index = match protocol {
            Protocol::Tcp => self.tcp.request(host, lengths),
            Protocol::Quic => {
                // Field sections are part of the content there.
                let (up, down) = self.heads;
                let lengths = (lengths.0 + up, lengths.1 + down);
                self.quic.request_now(host, lengths)
            }
        };
        self.made.push((protocol, index));
        self.made.len() - 1
    }

    /// Ends a protocol's connection; requests on it without a response fail. The next request opens
    /// another.
    pub fn close(&mut self, host: &mut HostContext<'_>, protocol: Protocol) {
        match protocol {
            Protocol::Quic => self.quic.close(host),
            Protocol::Tcp => self.tcp.close(host),
        }
    }

    /// What became of a request.
    pub fn exchange(&self, request: usize) -> Option<Exchange> {
        let (protocol, index) = self.made.get(request)?;
        let exchanges = match protocol {
            Protocol::Quic => self.quic.exchanges(),
            Protocol::Tcp => self.tcp.exchanges(),
        };
        exchanges.get(*index).copied()
    }

    /// What became of all requests that were made, in order.
    pub fn exchanges(&self) -> impl Iterator<Item = (Protocol, Exchange)> {
        let all = self.made.iter().enumerate();
        all.filter_map(|(nth, (protocol, _))| Some((*protocol, self.exchange(nth)?)))
    }

    /// The half that uses QUIC.
    pub fn quic(&self) -> &Requester {
        &self.quic
    }

    /// The half that uses TCP.
    pub fn tcp(&self) -> &HttpsClient {
        &self.tcp
    }
}

impl Application for WebClient {
    fn on_start(&mut self, host: &mut HostContext<'_>) {
        for (nth, request) in self.plan.iter().enumerate() {
            host.set_timer(request.at, nth as u64);
        }
    }

    fn on_timer(&mut self, host: &mut HostContext<'_>, token: u64) {
        if let Some(request) = self.plan.get(token as usize).copied() {
            let lengths = (request.request_len, request.response_len);
            self.request(host, request.protocol, lengths);
        }
    }

    fn on_event(&mut self, host: &mut HostContext<'_>, handle: ConnectionHandle, event: Event) {
        self.quic.on_event(host, handle, event);
    }

    fn on_tcp(&mut self, host: &mut HostContext<'_>, handle: TcpHandle, event: tcp::Event) {
        self.tcp.on_tcp(host, handle, event);
    }
}

/// Answers requests over QUIC and TCP.
#[derive(Debug, Default)]
pub struct WebServer {
    quic: Responder,
    tcp: HttpsServer,
}

impl WebServer {
    /// A server; its host must accept connections of both kinds
    /// ([`HostConfig::server`](crate::HostConfig), [`Network::set_tcp_server`](crate::Network::set_tcp_server)).
    pub fn new(tcp: HttpsConfig) -> Self {
        Self {
            quic: if tcp.in_order {
                Responder::in_order()
            } else {
                Responder::new()
            },
            tcp: HttpsServer::new(tcp),
        }
    }

    /// The half that answers over QUIC.
    pub fn quic(&self) -> &Responder {
        &self.quic
    }

    /// The half that answers over TCP.
    pub fn tcp(&self) -> &HttpsServer {
        &self.tcp
    }
}

impl Application for WebServer {
    fn on_event(&mut self, host: &mut HostContext<'_>, handle: ConnectionHandle, event: Event) {
        self.quic.on_event(host, handle, event);
    }

    fn on_tcp(&mut self, host: &mut HostContext<'_>, handle: TcpHandle, event: tcp::Event) {
        self.tcp.on_tcp(host, handle, event);
    }
}
