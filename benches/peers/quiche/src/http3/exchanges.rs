//! Requests and responses on connections.

use polled::{Failure, Shared};
use quiche::h3::{self, Event};
use rustc_hash::FxHashMap;

use crate::connection::{Connection, Shares};
use crate::events::Events;

/// Both layers of a connection, which quiche's functions need together.
pub(crate) struct Layers<'a> {
    pub(crate) http3: &'a mut h3::Connection,
    pub(crate) quic: &'a mut quiche::Connection<Shares>,
}

/// A server's or client's part in them.
pub(crate) trait Part {
    /// Requests may be sent.
    fn connected(&mut self, layers: Layers<'_>) -> Result<(), Failure>;

    /// Something was received on a stream.
    fn on_event(
        &mut self,
        connection: u64,
        stream: u64,
        event: Event,
        layers: Layers<'_>,
    ) -> Result<(), Failure>;

    /// Something may be written on a stream that did not take everything.
    fn writable(&mut self, connection: u64, stream: u64, layers: Layers<'_>)
    -> Result<(), Failure>;

    /// The connection is over.
    fn closed(&mut self, connection: u64) -> Result<(), Failure>;
}

/// The events of connections as those of requests.
pub(crate) struct Exchanges<P> {
    part: Shared<P>,
    config: h3::Config,
    connections: FxHashMap<u64, h3::Connection>,
}

impl<P: Part> Exchanges<P> {
    pub(crate) fn new(part: Shared<P>) -> Result<Self, Failure> {
        Ok(Self {
            part,
            config: h3::Config::new().map_err(Failure::library)?,
            connections: FxHashMap::default(),
        })
    }
}

impl<P: Part> Events for Exchanges<P> {
    fn progress(&mut self, number: u64, connection: &mut Connection) -> Result<(), Failure> {
        let quic = &mut connection.library;
        let mut part = self.part.borrow_mut();
        if !connection.told {
            connection.told = true;
            let mut http3 =
                h3::Connection::with_transport(quic, &self.config).map_err(Failure::library)?;
            part.connected(Layers {
                http3: &mut http3,
                quic,
            })?;
            self.connections.insert(number, http3);
        }
        let Some(http3) = self.connections.get_mut(&number) else {
            return Ok(());
        };
        loop {
            match http3.poll(quic) {
                Ok((stream, event)) => {
                    part.on_event(number, stream, event, Layers { http3, quic })?;
                }
                Err(h3::Error::Done) => break,
                // The connection closes, and says why.
                Err(_) => return Ok(()),
            }
        }
        while let Some(stream) = quic.stream_writable_next() {
            part.writable(number, stream, Layers { http3, quic })?;
        }
        Ok(())
    }

    fn closed(&mut self, number: u64) -> Result<(), Failure> {
        self.connections.remove(&number);
        self.part.borrow_mut().closed(number)
    }
}
