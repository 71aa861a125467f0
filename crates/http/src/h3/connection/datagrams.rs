//! HTTP datagrams of requests (RFC 9297, section 2).

use swiftwater_quic::{self as quic, DatagramOptions};
use swiftwater_units::{Dir, Instant, StreamId};

use super::Connection;
use crate::h3::code::Code;
use crate::h3::datagram;
use crate::h3::error::{DatagramError, Fault};
use crate::h3::event::Event;

impl Connection {
    /// Sends a datagram of the request of stream `id`, unreliably.
    pub fn send_datagram(
        &mut self,
        quic: &mut quic::Connection,
        id: StreamId,
        payload: &[u8],
    ) -> Result<(), DatagramError> {
        self.send_datagram_with(quic, id, payload, DatagramOptions::default())
    }

    /// The same with options; [`Event::DatagramFate`] reports the fate of a datagram with a key.
    pub fn send_datagram_with(
        &mut self,
        quic: &mut quic::Connection,
        id: StreamId,
        payload: &[u8],
        options: DatagramOptions,
    ) -> Result<(), DatagramError> {
        self.send_datagram_parts(quic, id, [&[], payload], options)
    }

    /// The same for a payload in two parts, such as an extension's header and what follows it. Datagrams of different
    /// requests take turns: the group of `options` has no meaning here.
    pub fn send_datagram_parts(
        &mut self,
        quic: &mut quic::Connection,
        id: StreamId,
        [head, rest]: [&[u8]; 2],
        mut options: DatagramOptions,
    ) -> Result<(), DatagramError> {
        if !self.datagrams_negotiated() {
            return Err(DatagramError::NotNegotiated);
        }
        let request = self.requests.get(id).ok_or(DatagramError::Closed)?;
        // RFC 9297, section 2.1: not once our side of the stream is closed.
        if request.sending.is_complete() {
            return Err(DatagramError::Closed);
        }
        options.group = id.get();
        options.key = options.key.map(|key| self.datagram_keys.insert(id, key));
        let prefix = datagram::Prefix::of(id);
        let sent = quic.send_datagram_parts(&[prefix.as_slice(), head, rest], options);
        if let (Err(_), Some(key)) = (&sent, options.key) {
            self.datagram_keys.remove(key);
        }
        sent?;
        self.reports.stats.datagrams_sent += 1;
        Ok(())
    }

    /// The largest payload of a datagram of the request of stream `id` at present; `None` if
    /// datagrams can't be sent.
    pub fn max_datagram_size(&self, quic: &quic::Connection, id: StreamId) -> Option<usize> {
        if !self.datagrams_negotiated() {
            return None;
        }
        let prefix = datagram::Prefix::of(id).as_slice().len();
        quic.max_datagram_size()?.checked_sub(prefix)
    }

    /// True if both ends have negotiated HTTP datagrams. A client may use remembered settings in
    /// early data (RFC 9297, section 2.1.1).
    fn datagrams_negotiated(&self) -> bool {
        self.config.datagrams && self.server_settings().h3_datagram
    }

    pub(super) fn on_datagrams(&mut self, now: Instant, quic: &mut quic::Connection) {
        while self.reports.fault.is_none()
            && let Some(data) = quic.recv_shared_datagram()
        {
            match datagram::decode(data) {
                Err(fault) => self.fail(now, quic, fault),
                Ok((id, _)) if !self.can_exist(quic, id) => {
                    let reason = "datagram of a stream beyond the limit";
                    self.fail(now, quic, Fault::connection(Code::ID_ERROR, reason));
                }
                Ok((id, payload)) => self.on_datagram(id, payload),
            }
        }
    }

    /// False for a request that exceeds the client's stream limit (RFC 9297, section 2.1).
    fn can_exist(&self, quic: &quic::Connection, id: StreamId) -> bool {
        self.side.is_client() || id.index() < quic.permitted_streams(Dir::Bi)
    }

    fn on_datagram(&mut self, id: StreamId, payload: bytes::Bytes) {
        let request = self.requests.get(id);
        match request.map(|request| (request.reported, request.receiving.is_over())) {
            Some((true, false)) if self.config.datagrams => {
                self.reports.stats.datagrams_received += 1;
                self.report(Event::Datagram { id, payload });
            }
            // The request may still arrive.
            None | Some((false, _))
                if self.side.is_server()
                    && self.config.datagrams
                    && (request.is_some() || !self.shutdown.has_come(id)) =>
            {
                let limit = self.config.limits.max_early_datagrams;
                if !self.early_datagrams.keep(id, &payload, limit) {
                    self.reports.stats.datagrams_dropped += 1;
                }
            }
            _ => self.reports.stats.datagrams_dropped += 1,
        }
    }
}
