//! The server's role.

use job::{Answer, Outgoing};
use rustc_hash::FxHashMap;

use crate::role::Role;
use crate::streams::{Failure, Streams, supply};

/// Bytes read from a stream at a time.
const ROOM: usize = 64 * 1024;

/// Answers on streams.
#[derive(Debug)]
pub(crate) struct Server {
    /// The streams that are neither read nor answered to their end, by connection.
    connections: FxHashMap<u64, FxHashMap<u64, Stream>>,
    room: Vec<u8>,
}

/// What is still to be done about a stream.
#[derive(Debug)]
enum Stream {
    Receiving(Answer),
    /// An answer that was not accepted completely; with the stream's state if the client has not
    /// finished.
    Sending(Outgoing, Option<Answer>),
}

impl Default for Server {
    fn default() -> Self {
        Self {
            connections: FxHashMap::default(),
            room: vec![0; ROOM],
        }
    }
}

impl Server {
    fn take(&mut self, connection: u64, stream: u64) -> Option<Stream> {
        self.connections.get_mut(&connection)?.remove(&stream)
    }

    fn keep(&mut self, connection: u64, stream: u64, state: Stream) {
        self.connections
            .entry(connection)
            .or_default()
            .insert(stream, state);
    }

    fn try_read(
        &mut self,
        connection: u64,
        stream: u64,
        streams: &mut impl Streams,
    ) -> Result<(), Failure> {
        let mut answer = match self.take(connection, stream) {
            Some(Stream::Receiving(answer)) => answer,
            // The rest is read when the reply has been sent: a client echoes one message at a time.
            Some(sending) => {
                self.keep(connection, stream, sending);
                return Ok(());
            }
            None => Answer::default(),
        };
        while let Some((len, finished)) = streams.read(stream, &mut self.room)? {
            let reply = answer.receive(&self.room[..len]);
            if finished {
                return self.send(connection, stream, answer.finish(), None, streams);
            }
            if let Some(reply) = reply {
                return self.send(connection, stream, reply, Some(answer), streams);
            }
        }
        self.keep(connection, stream, Stream::Receiving(answer));
        Ok(())
    }

    fn send(
        &mut self,
        connection: u64,
        stream: u64,
        mut outgoing: Outgoing,
        answer: Option<Answer>,
        streams: &mut impl Streams,
    ) -> Result<(), Failure> {
        if !supply(streams, stream, &mut outgoing)? {
            self.keep(connection, stream, Stream::Sending(outgoing, answer));
        } else if let Some(answer) = answer {
            self.keep(connection, stream, Stream::Receiving(answer));
        }
        Ok(())
    }
}

/// A stream that fails is one whose client broke off; it has its reasons and reports them.
impl Role for Server {
    fn established(&mut self, _: u64, _: &mut impl Streams) -> Result<(), Failure> {
        Ok(())
    }

    fn readable(
        &mut self,
        connection: u64,
        stream: u64,
        streams: &mut impl Streams,
    ) -> Result<(), Failure> {
        let _ = self.try_read(connection, stream, streams);
        Ok(())
    }

    fn writable(
        &mut self,
        connection: u64,
        stream: u64,
        streams: &mut impl Streams,
    ) -> Result<(), Failure> {
        match self.take(connection, stream) {
            Some(Stream::Sending(outgoing, answer)) => {
                let _ = self.send(connection, stream, outgoing, answer, streams);
            }
            Some(receiving) => self.keep(connection, stream, receiving),
            None => {}
        }
        Ok(())
    }

    fn closed(&mut self, connection: u64) -> Result<(), Failure> {
        self.connections.remove(&connection);
        Ok(())
    }
}
