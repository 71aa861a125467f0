//! Both ends of the comparison's protocol inside the workers: without a task, channel or lock per stream. For
//! the best-known settings.

use std::sync::{Arc, Mutex, PoisonError};
use std::task::Waker;
use std::time::{Duration, Instant};

use bytes::Bytes;
use job::{Answer, Failure, Incoming, Latencies, Outgoing, Wanted, events};
use swiftwater::net::Application;
use swiftwater::quic::{Connection as Core, Event, ReadChunk, StreamEvent, StreamMap};
use swiftwater::units::{Dir, StreamId};
use swiftwater::{Connection, ReadError, WriteError};
use tokio::sync::Notify;

/// Passes received data to `take`; true at the stream's end.
fn read(core: &mut Core, id: StreamId, mut take: impl FnMut(&[u8])) -> Result<bool, ReadError> {
    let mut stream = core.recv_stream(id);
    loop {
        match stream.read_chunk()? {
            ReadChunk::Data(chunk) => {
                let data = chunk.data();
                take(data);
                let len = data.len();
                chunk.consume(len);
            }
            ReadChunk::Finished => return Ok(true),
            ReadChunk::Blocked => return Ok(false),
        }
    }
}

/// Answers.
#[derive(Default)]
pub(crate) struct Responder {
    /// Streams that wait for something.
    waiting: Mutex<StreamMap<Exchange>>,
}

/// A stream that the client opened.
#[derive(Default)]
struct Exchange {
    answer: Answer,
    reply: Option<Outgoing>,
    /// The request has been read to its end.
    is_read: bool,
}

impl Exchange {
    fn read(&mut self, core: &mut Core, id: StreamId) -> Result<(), ReadError> {
        if self.is_read {
            return Ok(());
        }
        let Self { answer, reply, .. } = self;
        self.is_read = read(core, id, |data| {
            if let Some(early) = answer.receive(data) {
                *reply = Some(early);
            }
        })?;
        if self.is_read {
            *reply = Some(std::mem::take(answer).finish());
        }
        Ok(())
    }

    /// Sends as much as fits; true when nothing follows.
    fn write(&mut self, core: &mut Core, id: StreamId) -> Result<bool, WriteError> {
        let Some(reply) = &mut self.reply else {
            return Ok(false);
        };
        let mut stream = core.send_stream(id);
        while reply.left() > 0 {
            match stream.write_chunk(&mut reply.next_bytes())? {
                0 => return Ok(false),
                written => reply.advance(written),
            }
        }
        let finishes = reply.finishes();
        if finishes {
            stream.finish()?;
        }
        self.reply = None;
        Ok(finishes)
    }
}

impl Responder {
    /// Goes on with a stream. One that the client broke off is forgotten.
    fn serve(&self, core: &mut Core, id: StreamId, mut exchange: Exchange, readable: bool) {
        if readable && exchange.read(core, id).is_err() {
            let _ = core.send_stream(id).reset(0);
            return;
        }
        if let Ok(false) = exchange.write(core, id) {
            let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
            waiting.insert(id, exchange);
        }
    }

    fn take(&self, id: StreamId) -> Option<Exchange> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.remove(&id)
    }
}

impl Application for Responder {
    fn on_event(
        &self,
        _: swiftwater::units::Instant,
        core: &mut Core,
        event: &Event,
        _: &mut Vec<Waker>,
    ) {
        match *event {
            Event::Stream(StreamEvent::Opened { dir: Dir::Bi }) => {
                // Each reports when it can be read.
                while core.accept(Dir::Bi).is_some() {}
            }
            Event::Stream(StreamEvent::Readable { id }) => {
                let exchange = self.take(id).unwrap_or_default();
                self.serve(core, id, exchange, true);
            }
            Event::Stream(StreamEvent::Writable { id }) => {
                if let Some(exchange) = self.take(id) {
                    self.serve(core, id, exchange, false);
                }
            }
            _ => {}
        }
    }
}

/// Asks again whenever an answer is complete.
struct Requester {
    message: Bytes,
    expected: Incoming,
    until: Instant,
    state: Mutex<State>,
    over: Notify,
}

#[derive(Default)]
struct State {
    open: StreamMap<(Instant, Incoming)>,
    /// Requests that wait until the server permits another stream.
    held: u32,
    latencies: Latencies,
    failure: Option<Failure>,
}

impl Requester {
    fn ask(&self, now: Instant, core: &mut Core, state: &mut State) -> Result<(), WriteError> {
        let Some(id) = core.open(Dir::Bi) else {
            state.held += 1;
            return Ok(());
        };
        let mut stream = core.send_stream(id);
        // Windows are larger than a request.
        stream.write(&self.message)?;
        stream.finish()?;
        state.open.insert(id, (now, self.expected.clone()));
        Ok(())
    }

    fn on_readable(&self, core: &mut Core, id: StreamId, state: &mut State) -> Result<(), Failure> {
        let Some((_, incoming)) = state.open.get_mut(&id) else {
            return Ok(());
        };
        if !read(core, id, |data| incoming.receive(data))? {
            return Ok(());
        }
        let Some((begun, incoming)) = state.open.remove(&id) else {
            return Ok(());
        };
        incoming.check()?;
        let now = Instant::now();
        state.latencies.record(now.duration_since(begun));
        if now < self.until {
            self.ask(now, core, state)?;
        } else if state.open.is_empty() {
            self.over.notify_one();
        }
        Ok(())
    }
}

impl Application for Requester {
    fn on_event(
        &self,
        _: swiftwater::units::Instant,
        core: &mut Core,
        event: &Event,
        _: &mut Vec<Waker>,
    ) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let outcome = match event {
            Event::Stream(StreamEvent::Readable { id }) => self.on_readable(core, *id, &mut state),
            Event::Stream(StreamEvent::Available { dir: Dir::Bi }) => {
                let now = Instant::now();
                (0..std::mem::take(&mut state.held))
                    .try_for_each(|_| self.ask(now, core, &mut state))
                    .map_err(Failure::from)
            }
            Event::Closed { reason } => Err(reason.clone().into()),
            _ => Ok(()),
        };
        if let Err(failure) = outcome {
            state.failure.get_or_insert(failure);
            self.over.notify_one();
        }
    }
}

/// The same as [`requests::run`](crate::requests::run).
pub(crate) async fn requests(
    connection: &Connection,
    duration: Duration,
    in_flight: u32,
    (up, down): (u64, u64),
) -> Result<(), Failure> {
    let wanted = Wanted::Payload(down);
    let message = Outgoing::request(wanted, up).to_bytes();
    let expected = Incoming::new(wanted, up);
    events::start();
    let start = Instant::now();
    let requester = Arc::new(Requester {
        message,
        expected,
        until: start + duration,
        state: Mutex::default(),
        over: Notify::new(),
    });
    connection.host(requester.clone());
    connection.with_core(|_, core| {
        let mut state = requester
            .state
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        (0..in_flight).try_for_each(|_| requester.ask(start, core, &mut state))
    })?;
    requester.over.notified().await;
    let took = start.elapsed();
    let mut state = requester
        .state
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    if let Some(failure) = state.failure.take() {
        return Err(failure);
    }
    events::requests_done(std::mem::take(&mut state.latencies), took);
    Ok(())
}
