//! A server: answers each request once it is complete.

use std::collections::BTreeMap;

use super::client::HttpsConfig;
use super::frame::{self, DATA, END_STREAM, Frame, HEADERS, PREFACE, SETTINGS, SETTINGS_LEN};
use super::multiplexer::Multiplexer;
use super::session::TlsSession;
use crate::application::HostContext;
use crate::pattern::Pattern;
use crate::tcp;
use crate::tcp_table::TcpHandle;

#[derive(Debug)]
struct Request {
    response_len: u64,
    pattern: u64,
    received: u64,
}

#[derive(Debug)]
struct Link {
    tls: TlsSession,
    multiplexer: Multiplexer,
    has_preface: bool,
    requests: BTreeMap<u32, Request>,
}

/// Answers requests over TCP. Not an application by itself: a part of
/// [`WebServer`](super::super::WebServer), or of an application of yours that passes on its calls.
#[derive(Debug, Default)]
pub struct HttpsServer {
    config: HttpsConfig,
    links: BTreeMap<TcpHandle, Link>,
    answered: u64,
    damaged: u64,
}

impl HttpsServer {
    /// A server; its host must accept TCP connections
    /// ([`Network::set_tcp_server`](crate::Network::set_tcp_server)).
    pub fn new(config: HttpsConfig) -> Self {
        Self {
            config,
            links: BTreeMap::new(),
            answered: 0,
            damaged: 0,
        }
    }

    /// Requests answered so far; responses may be in flight.
    pub fn answered(&self) -> u64 {
        self.answered
    }

    /// Requests with incorrect content; they are answered nevertheless.
    pub fn damaged(&self) -> u64 {
        self.damaged
    }

    /// An event of a TCP connection.
    pub fn on_tcp(&mut self, host: &mut HostContext<'_>, handle: TcpHandle, event: tcp::Event) {
        match event {
            tcp::Event::Connected => {}
            tcp::Event::Readable => self.read(host, handle),
            tcp::Event::Writable => self.pump(host, handle),
            tcp::Event::PeerFinished => {
                if let Some(connection) = host.tcp(handle) {
                    connection.finish();
                }
            }
            tcp::Event::Closed | tcp::Event::Failed(_) => {
                self.links.remove(&handle);
            }
        }
    }

    fn pump(&mut self, host: &mut HostContext<'_>, handle: TcpHandle) {
        if let Some(link) = self.links.get_mut(&handle)
            && let Some(connection) = host.tcp(handle)
        {
            link.multiplexer.pump(&mut link.tls, connection);
        }
    }

    fn read(&mut self, host: &mut HostContext<'_>, handle: TcpHandle) {
        let now = host.now();
        let Some(connection) = host.tcp(handle) else {
            return;
        };
        let mut bytes = Vec::new();
        connection.read(now, usize::MAX, &mut bytes);
        let sizes = self.config.tls;
        let link = self.links.entry(handle).or_insert_with(|| Link {
            tls: TlsSession::server(sizes),
            multiplexer: Multiplexer::new(self.config.in_order),
            has_preface: false,
            requests: BTreeMap::new(),
        });
        link.tls.on_bytes(&bytes);
        let mut plaintext = std::mem::take(link.tls.plaintext());
        let mut used = 0;
        if !link.has_preface && plaintext.len() >= PREFACE.len() {
            link.has_preface = true;
            used = PREFACE.len();
            let settings = Frame {
                kind: SETTINGS,
                flags: 0,
                stream: 0,
                payload: &[0; SETTINGS_LEN],
            };
            let mut out = Vec::new();
            settings.write(&mut out);
            link.tls.write(&out);
        }
        while link.has_preface
            && let Some((frame, len)) = frame::first(&plaintext[used..])
        {
            used += len;
            let Some(request) = link.on_frame(&frame, &mut self.damaged) else {
                continue;
            };
            self.answered += 1;
            let head = vec![0; self.config.response_head];
            let body = (request.pattern, request.response_len);
            link.multiplexer.push(frame.stream, head, body);
        }
        plaintext.drain(..used);
        *link.tls.plaintext() = plaintext;
        self.pump(host, handle);
    }
}

impl Link {
    /// The request, if the frame completes one.
    fn on_frame(&mut self, frame: &Frame<'_>, damaged: &mut u64) -> Option<Request> {
        match frame.kind {
            HEADERS => {
                let (response_len, pattern) = frame::parse_request(frame.payload)?;
                let request = Request {
                    response_len,
                    pattern,
                    received: 0,
                };
                self.requests.insert(frame.stream, request);
            }
            DATA => {
                let request = self.requests.get_mut(&frame.stream)?;
                let pattern = Pattern::new(request.pattern);
                let is_intact = pattern.matches(request.received, frame.payload);
                *damaged += u64::from(!is_intact);
                request.received += frame.payload.len() as u64;
            }
            _ => return None,
        }
        if frame.flags & END_STREAM == 0 {
            return None;
        }
        self.requests.remove(&frame.stream)
    }
}
