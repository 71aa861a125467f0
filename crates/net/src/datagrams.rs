//! Unreliable datagrams of the application (RFC 9221): sending with options, reading, and their fates.

use bytes::Bytes;
use swiftwater_quic::{ConnectionError, DatagramFate, DatagramOptions, SendDatagramError};

use crate::connection::Connection;

impl Connection {
    /// Queues a datagram for sending; waits while the queue is full. Datagrams may be lost, are
    /// never sent twice, and must fit [`Connection::max_datagram_size`].
    pub async fn send_datagram(&self, data: Bytes) -> Result<(), SendDatagramError> {
        let options = DatagramOptions::default();
        self.send_datagram_with(data, options).await
    }

    /// Like [`Connection::send_datagram`], with a place among other data, a deadline on the clock of
    /// [`Connection::now`], and a key: [`Connection::read_datagram_fate`] reports what became of a
    /// datagram with a key.
    pub async fn send_datagram_with(
        &self,
        data: Bytes,
        options: DatagramOptions,
    ) -> Result<(), SendDatagramError> {
        let signal = self.handle.signals.datagram_room();
        self.handle
            .wait_for(signal, |state| {
                let connection = &mut state.connection;
                match connection.send_datagram_with(data.clone(), options) {
                    Err(SendDatagramError::Blocked) => None,
                    other => Some(other),
                }
            })
            .await?;
        self.handle.touch();
        Ok(())
    }

    /// Queues a datagram for sending, or fails with [`SendDatagramError::Blocked`] if the queue is
    /// full.
    pub fn try_send_datagram(&self, data: Bytes) -> Result<(), SendDatagramError> {
        self.try_send_datagram_with(data, DatagramOptions::default())
    }

    /// Like [`Connection::try_send_datagram`], with the options of
    /// [`Connection::send_datagram_with`].
    pub fn try_send_datagram_with(
        &self,
        data: Bytes,
        options: DatagramOptions,
    ) -> Result<(), SendDatagramError> {
        let mut state = self.handle.lock();
        state.connection.send_datagram_with(data, options)?;
        drop(state);
        self.handle.touch();
        Ok(())
    }

    /// Waits for the fate of a datagram that was sent with a key, and returns both. The 4096 newest
    /// unread fates are kept; those known before the end of the connection can be read after it.
    pub async fn read_datagram_fate(&self) -> Result<(u64, DatagramFate), ConnectionError> {
        let signal = self.handle.signals.datagram_fate();
        self.handle
            .wait_for(signal, |state| {
                let fates = state.datagram_fates.as_mut();
                match fates.and_then(|fates| fates.pop()) {
                    Some(fate) => Some(Ok(fate)),
                    None => state.close_reason().map(Err),
                }
            })
            .await
    }

    /// Waits for a datagram of the peer. The queue is bounded: a reader that is too slow loses the
    /// oldest.
    pub async fn read_datagram(&self) -> Result<Bytes, ConnectionError> {
        let signal = self.handle.signals.datagram_received();
        self.handle
            .wait_for(signal, |state| match state.connection.recv_datagram() {
                Some(data) => Some(Ok(data)),
                None => state.close_reason().map(Err),
            })
            .await
    }

    /// The largest datagram that can be sent now, bytes; `None` if the peer accepts none. It changes
    /// with the path.
    pub fn max_datagram_size(&self) -> Option<usize> {
        self.handle.lock().connection.max_datagram_size()
    }

    /// Searches the largest size of packets soon, if that is not known: see
    /// [`swiftwater_quic::Connection::seek_larger_datagrams`].
    pub fn seek_larger_datagrams(&self) {
        self.handle.lock().connection.seek_larger_datagrams();
        self.handle.touch();
    }
}
