//! Does the jobs.

use std::time::{Duration, Instant};

use bytes::Bytes;
use job::{
    ClientArguments, Direction, HttpRequest, Incoming, Job, Latencies, NOT_OVER_HTTP, SERVER_NAME,
    Wanted, events,
};
use polled::Failure;
use quiche::h3::{Event, Header, NameValue};
use rustc_hash::FxHashMap;

use super::exchanges::{Layers, Part};

/// Bytes read from a stream at a time.
const ROOM: usize = 64 * 1024;

/// One download, or requests for some time.
pub(crate) struct Client {
    /// Requests at any time.
    in_flight: u32,
    /// `None`: each request once.
    duration: Option<Duration>,
    /// Bytes of an answer.
    down: u64,
    first: Request,
    request: Request,
    waiting: FxHashMap<u64, (Instant, Incoming)>,
    latencies: Latencies,
    room: Vec<u8>,
    start: Option<Instant>,
    connecting: bool,
    done: bool,
}

/// A request that can be sent often, and what the answer must be.
#[derive(Clone)]
struct Request {
    head: Vec<Header>,
    content: Bytes,
    expected: Incoming,
}

impl Request {
    fn new(arguments: &ClientArguments, down: u64, up: u64) -> Self {
        let request = HttpRequest::new(down, up);
        let authority = format!("{SERVER_NAME}:{}", arguments.connect.port());
        let method: &[u8] = if up > 0 { b"POST" } else { b"GET" };
        let mut head = vec![
            Header::new(b":method", method),
            Header::new(b":scheme", b"https"),
            Header::new(b":authority", authority.as_bytes()),
            Header::new(b":path", request.path().as_bytes()),
        ];
        if up > 0 {
            head.push(Header::new(b"content-length", up.to_string().as_bytes()));
        }
        Self {
            head,
            content: request.content().to_bytes(),
            expected: Incoming::new(Wanted::Payload(down), 0),
        }
    }

    /// Sends it; windows are larger. Returns the stream.
    fn send(&self, layers: &mut Layers<'_>) -> Result<u64, Failure> {
        let Layers { http3, quic } = layers;
        let bare = self.content.is_empty();
        let stream = http3.send_request(quic, &self.head, bare);
        let stream = stream.map_err(Failure::library)?;
        if !bare {
            let mut content = self.content.clone();
            let taken = http3.send_body_zc(quic, stream, &mut content, true);
            if taken.map_err(Failure::library)? < self.content.len() {
                return Err(Failure::Library("a request was not accepted".to_owned()));
            }
        }
        Ok(stream)
    }
}

impl Client {
    pub(crate) fn new(arguments: &ClientArguments) -> Result<Self, Failure> {
        let (in_flight, duration, down, up) = match arguments.job {
            Job::Bulk {
                bytes,
                direction: Direction::Download,
            } => (1, None, bytes, 0),
            Job::Requests {
                seconds,
                in_flight,
                up,
                down,
            } => (in_flight, Some(Duration::from_secs_f64(seconds)), down, up),
            _ => return Err(Failure::library(NOT_OVER_HTTP)),
        };
        Ok(Self {
            in_flight,
            duration,
            down,
            first: Request::new(arguments, 0, 0),
            request: Request::new(arguments, down, up),
            waiting: FxHashMap::default(),
            latencies: Latencies::default(),
            room: vec![0; ROOM],
            start: None,
            connecting: false,
            done: false,
        })
    }

    fn ask(&mut self, now: Instant, layers: &mut Layers<'_>) -> Result<(), Failure> {
        let stream = self.request.send(layers)?;
        let expected = self.request.expected.clone();
        self.waiting.insert(stream, (now, expected));
        Ok(())
    }

    fn on_answer(&mut self, stream: u64, mut layers: Layers<'_>) -> Result<(), Failure> {
        let Some((begun, incoming)) = self.waiting.remove(&stream) else {
            return Ok(());
        };
        incoming.check()?;
        let now = Instant::now();
        let Some(start) = self.start else {
            events::start();
            let start = Instant::now();
            self.start = Some(start);
            for _ in 0..self.in_flight {
                self.ask(start, &mut layers)?;
            }
            return Ok(());
        };
        self.latencies.record(now - begun);
        let took = now - start;
        if self.duration.is_some_and(|duration| took < duration) {
            return self.ask(now, &mut layers);
        }
        if self.waiting.is_empty() {
            if self.duration.is_some() {
                events::requests_done(std::mem::take(&mut self.latencies), took);
            } else {
                events::bulk_done(self.down, took);
            }
            self.done = true;
        }
        Ok(())
    }
}

impl polled::Client for Client {
    fn wants_connection(&mut self) -> bool {
        !std::mem::replace(&mut self.connecting, true)
    }

    fn is_done(&self) -> bool {
        self.done
    }
}

impl Part for Client {
    fn connected(&mut self, mut layers: Layers<'_>) -> Result<(), Failure> {
        let stream = self.first.send(&mut layers)?;
        let expected = self.first.expected.clone();
        self.waiting.insert(stream, (Instant::now(), expected));
        Ok(())
    }

    fn on_event(
        &mut self,
        _: u64,
        stream: u64,
        event: Event,
        layers: Layers<'_>,
    ) -> Result<(), Failure> {
        match event {
            Event::Headers { list, .. } => {
                let status = list.iter().find(|header| header.name() == b":status");
                if status.is_none_or(|status| status.value() != b"200") {
                    return Err(Failure::Library("an answer's status is not 200".to_owned()));
                }
                Ok(())
            }
            Event::Data => {
                let Layers { http3, quic } = layers;
                let Some((_, incoming)) = self.waiting.get_mut(&stream) else {
                    return Ok(());
                };
                while let Ok(len) = http3.recv_body(quic, stream, &mut self.room) {
                    incoming.receive(&self.room[..len]);
                }
                Ok(())
            }
            Event::Finished => self.on_answer(stream, layers),
            Event::Reset(_) => Err(Failure::Lost),
            Event::PriorityUpdate | Event::GoAway => Ok(()),
        }
    }

    fn writable(&mut self, _: u64, _: u64, _: Layers<'_>) -> Result<(), Failure> {
        Ok(())
    }

    fn closed(&mut self, _: u64) -> Result<(), Failure> {
        if self.done {
            Ok(())
        } else {
            Err(Failure::Lost)
        }
    }
}
