//! Answers requests.

use job::{HttpAnswer, Outgoing};
use polled::Failure;
use quiche::h3::{Error, Event, Header, NameValue};
use rustc_hash::FxHashMap;

use super::exchanges::{Layers, Part};

/// Bytes read from a stream at a time.
const ROOM: usize = 64 * 1024;

/// Answers on streams.
pub(crate) struct Server {
    /// Requests that are not answered completely, by connection and stream.
    exchanges: FxHashMap<(u64, u64), Exchange>,
    room: Vec<u8>,
}

enum Exchange {
    /// `None`: not a request of a client of this comparison.
    Receiving(Option<HttpAnswer>),
    /// An answer whose head was not accepted.
    Waiting(Option<Outgoing>),
    /// The rest of an answer.
    Sending(Outgoing),
}

impl Default for Server {
    fn default() -> Self {
        Self {
            exchanges: FxHashMap::default(),
            room: vec![0; ROOM],
        }
    }
}

impl Server {
    /// Begins an answer: to wrong requests with 400.
    fn respond(&mut self, key: (u64, u64), content: Option<Outgoing>, layers: Layers<'_>) {
        let Layers { http3, quic } = layers;
        let left = content.map_or(0, |content| content.left());
        let status: &[u8] = if content.is_some() { b"200" } else { b"400" };
        let head = [
            Header::new(b":status", status),
            Header::new(b"content-length", left.to_string().as_bytes()),
        ];
        match http3.send_response(quic, key.1, &head, left == 0) {
            Ok(()) => {
                if let Some(content) = content.filter(|_| left > 0) {
                    self.send(key, content, Layers { http3, quic });
                }
            }
            Err(Error::StreamBlocked) => {
                self.exchanges.insert(key, Exchange::Waiting(content));
            }
            // The client broke off.
            Err(_) => {}
        }
    }

    /// Sends as much as is accepted.
    fn send(&mut self, key: (u64, u64), mut content: Outgoing, layers: Layers<'_>) {
        let Layers { http3, quic } = layers;
        while content.left() > 0 {
            let mut piece = content.next_bytes();
            let len = piece.len();
            let last = len as u64 == content.left();
            match http3.send_body_zc(quic, key.1, &mut piece, last) {
                Ok(taken) => {
                    content.advance(taken);
                    if taken < len {
                        break;
                    }
                }
                Err(Error::Done) => break,
                // The client broke off.
                Err(_) => return,
            }
        }
        if content.left() > 0 {
            self.exchanges.insert(key, Exchange::Sending(content));
        }
    }
}

impl Part for Server {
    fn connected(&mut self, _: Layers<'_>) -> Result<(), Failure> {
        Ok(())
    }

    fn on_event(
        &mut self,
        connection: u64,
        stream: u64,
        event: Event,
        layers: Layers<'_>,
    ) -> Result<(), Failure> {
        let key = (connection, stream);
        match event {
            Event::Headers { list, .. } => {
                let path = list.iter().find(|header| header.name() == b":path");
                let path = path.and_then(|path| std::str::from_utf8(path.value()).ok());
                let answer = path.and_then(HttpAnswer::new);
                self.exchanges.insert(key, Exchange::Receiving(answer));
            }
            Event::Data => {
                let Layers { http3, quic } = layers;
                while let Ok(len) = http3.recv_body(quic, stream, &mut self.room) {
                    if let Some(Exchange::Receiving(Some(answer))) = self.exchanges.get_mut(&key) {
                        answer.receive(&self.room[..len]);
                    }
                }
            }
            Event::Finished => {
                if let Some(Exchange::Receiving(answer)) = self.exchanges.remove(&key) {
                    self.respond(key, answer.and_then(HttpAnswer::finish), layers);
                }
            }
            Event::Reset(_) => {
                self.exchanges.remove(&key);
            }
            Event::PriorityUpdate | Event::GoAway => {}
        }
        Ok(())
    }

    fn writable(
        &mut self,
        connection: u64,
        stream: u64,
        layers: Layers<'_>,
    ) -> Result<(), Failure> {
        let key = (connection, stream);
        match self.exchanges.remove(&key) {
            Some(Exchange::Waiting(content)) => self.respond(key, content, layers),
            Some(Exchange::Sending(content)) => self.send(key, content, layers),
            Some(receiving) => {
                self.exchanges.insert(key, receiving);
            }
            None => {}
        }
        Ok(())
    }

    fn closed(&mut self, connection: u64) -> Result<(), Failure> {
        self.exchanges.retain(|key, _| key.0 != connection);
        Ok(())
    }
}
