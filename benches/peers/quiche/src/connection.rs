//! One connection.

use std::net::SocketAddr;
use std::time::Instant;

use bytes::Bytes;
use datagrams::Socket;
use polled::{Failure, Streams};
use quiche::{BufFactory, Error, RecvInfo};

/// Has quiche keep what is to be sent as [`Bytes`], so that nothing is copied before it is encrypted.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shares;

impl BufFactory for Shares {
    type Buf = Bytes;
    type DgramBuf = Vec<u8>;

    fn buf_from_slice(slice: &[u8]) -> Bytes {
        Bytes::copy_from_slice(slice)
    }

    fn dgram_buf_from_slice(slice: &[u8]) -> Vec<u8> {
        slice.to_vec()
    }
}

/// One of our connection IDs.
pub(crate) type Id = [u8; 8];

/// A connection with the program's state.
#[allow(
    clippy::struct_excessive_bools,
    reason = "they change independently of each other"
)]
pub(crate) struct Connection {
    pub(crate) library: quiche::Connection<Shares>,
    peer: SocketAddr,
    /// Our connection ID.
    pub(crate) id: Id,
    /// The client's random connection ID, until it uses the server's.
    pub(crate) guess: Option<Box<[u8]>>,
    /// Something has happened that is not dealt with.
    pub(crate) touched: bool,
    /// The stream to open next.
    next: u64,
    /// Its handshake was reported.
    pub(crate) told: bool,
    /// The role requests its close.
    closing: bool,
    /// Datagrams wait for the time at which the library releases them.
    paced: bool,
}

impl Connection {
    pub(crate) fn new(
        library: quiche::Connection<Shares>,
        peer: SocketAddr,
        id: Id,
        paced: bool,
    ) -> Self {
        Self {
            library,
            peer,
            id,
            guess: None,
            touched: false,
            next: 0,
            told: false,
            closing: false,
            paced,
        }
    }

    /// Takes a datagram. What is wrong with it, the connection says itself.
    pub(crate) fn receive(&mut self, datagram: &mut [u8], info: RecvInfo) {
        let _ = self.library.recv(datagram, info);
    }

    /// Looks after timers if one has expired.
    pub(crate) fn expire(&mut self, now: Instant) {
        let timeout = self.library.timeout_instant();
        if timeout.is_some_and(|timeout| timeout <= now) {
            self.library.on_timeout();
        }
    }

    /// Time of the next timer, or of the next release.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        let timers = [self.library.timeout_instant(), self.release()];
        timers.into_iter().flatten().min()
    }

    /// When the next datagram may be sent; `None`: now.
    fn release(&self) -> Option<Instant> {
        let release = self.library.get_next_release_time();
        let release = release.filter(|release| self.paced && !release.can_burst())?;
        release.time(Instant::now())
    }

    /// True if nothing more happens on it.
    pub(crate) fn is_over(&self) -> bool {
        self.library.is_closed()
    }

    /// True after the handshake.
    pub(crate) fn is_established(&self) -> bool {
        self.library.is_established()
    }

    /// Sends pending data, in bursts of equal datagrams of at most `size` bytes each, through `room`.
    pub(crate) fn flush(
        &mut self,
        socket: &Socket,
        size: usize,
        room: &mut [u8],
    ) -> Result<(), Failure> {
        self.send(socket, size, room)?;
        if self.closing {
            self.closing = false;
            let _ = self.library.close(true, 0, b"");
            self.send(socket, size, room)?;
        }
        Ok(())
    }

    fn send(&mut self, socket: &Socket, size: usize, room: &mut [u8]) -> Result<(), Failure> {
        let most = socket.max_burst(size) * size;
        loop {
            let mut len = 0;
            let mut segment = 0;
            while len + size <= most && self.release().is_none() {
                let Ok((written, _)) = self.library.send(&mut room[len..len + size]) else {
                    break;
                };
                if written > segment && len > 0 {
                    // Longer than the others: a separate burst.
                    socket.send(self.peer, &room[..len], segment)?;
                    room.copy_within(len..len + written, 0);
                    len = 0;
                }
                if len == 0 {
                    segment = written;
                }
                len += written;
                if written < segment {
                    break;
                }
            }
            if len == 0 {
                return Ok(());
            }
            socket.send(self.peer, &room[..len], segment)?;
        }
    }
}

impl Streams for Connection {
    fn open(&mut self) -> Result<u64, Failure> {
        let stream = self.next;
        self.next += 4;
        Ok(stream)
    }

    fn read(&mut self, stream: u64, room: &mut [u8]) -> Result<Option<(usize, bool)>, Failure> {
        match self.library.stream_recv(stream, room) {
            Ok(read) => Ok(Some(read)),
            Err(Error::Done) => Ok(None),
            Err(error) => Err(Failure::library(error)),
        }
    }

    fn write(&mut self, stream: u64, bytes: Bytes, finish: bool) -> Result<usize, Failure> {
        match self.library.stream_send_zc(stream, bytes, finish) {
            Ok((taken, _)) => Ok(taken),
            Err(Error::Done) => Ok(0),
            Err(error) => Err(Failure::library(error)),
        }
    }

    fn close(&mut self) {
        self.closing = true;
    }
}
