//! A tunnel at the client.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use swiftwater_http::h3::capsule::{Capsule, CapsuleReader, capsule_type};
use swiftwater_http::udp::connect::{HttpDatagrams, PendingConnect, RecvContent, SendContent};
use tokio::sync::Mutex;

use super::error::{OpenError, TunnelError, check_answer};
use crate::MAX_UDP_PAYLOAD;
use crate::context::{self, ContextId};
use crate::tecc::{Agreement, TECC, data};

/// A tunnel that the proxy has not answered yet. Dropping it cancels the request.
#[derive(Debug)]
pub struct OpeningTunnel {
    pending: PendingConnect,
    offer: Option<Agreement>,
}

impl OpeningTunnel {
    pub(super) fn new(pending: PendingConnect, offer: Option<Agreement>) -> Self {
        Self { pending, offer }
    }

    /// Sends a UDP payload before the proxy's answer; without datagrams below HTTP, or if it does not fit, it is
    /// dropped.
    pub fn send(&self, payload: &[u8]) {
        let datagram = context::encode(ContextId::UDP, payload);
        // As UDP does: the sender of the payload has no guarantee.
        let _ = self.pending.datagrams().try_send(&datagram);
    }

    /// Waits for the proxy's answer.
    pub async fn opened(self) -> Result<UdpTunnel, OpenError> {
        let datagrams = self.pending.datagrams().clone();
        let (head, content) = self.pending.response().await?.into_parts();
        let proxy_status = check_answer(head.status, &head.headers)?;
        let agreement = head.headers.get(TECC).and_then(Agreement::parse);
        // What was not offered is no agreement.
        let agreement = agreement.zip(self.offer);
        let agreement = agreement.filter(|(agreement, offer)| agreement.answers(*offer));
        let agreement = agreement.map(|(agreement, _)| agreement);
        let sender = UdpSender {
            datagrams: datagrams.clone(),
            content: Arc::new(Mutex::new(content.send)),
        };
        Ok(UdpTunnel {
            sender,
            datagrams,
            content: content.receive,
            capsules: CapsuleReader::new((8 + MAX_UDP_PAYLOAD) as u64),
            waiting: VecDeque::new(),
            agreement,
            proxy_status,
        })
    }
}

/// Datagrams to and from one target. The tunnel ends when it and its senders are dropped.
#[derive(Debug)]
pub struct UdpTunnel {
    sender: UdpSender,
    datagrams: HttpDatagrams,
    content: RecvContent,
    capsules: CapsuleReader,
    /// Received in capsules, not read yet.
    waiting: VecDeque<FromTunnel>,
    /// What was agreed on, if the proxy repairs losses.
    agreement: Option<Agreement>,
    proxy_status: Option<String>,
}

/// What comes out of a tunnel.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum FromTunnel {
    /// A UDP payload of the target.
    Payload {
        /// The payload.
        payload: Bytes,
        /// Its number in a tunnel that repairs losses; QUIC packets with long headers have none. For
        /// `Connection::handle_tagged_datagram` of `swiftwater-quic`.
        number: Option<u64>,
    },
    /// A report of the proxy ([`TunnelReport`](crate::tecc::TunnelReport)), encoded. For the QUIC connections in the
    /// tunnel.
    Report(Bytes),
}

/// Sends into a tunnel. Clones share it.
#[derive(Clone, Debug)]
pub struct UdpSender {
    datagrams: HttpDatagrams,
    content: Arc<Mutex<SendContent>>,
}

impl UdpSender {
    /// Sends a UDP payload to the target, unreliably; waits while the queue to the proxy is full. If the
    /// connection has no datagrams, the payload leaves in a capsule.
    pub async fn send(&self, payload: &[u8]) -> Result<(), TunnelError> {
        let datagram = context::encode(ContextId::UDP, payload);
        if self.datagrams.max_size().is_some() {
            return Ok(self.datagrams.send(&datagram).await?);
        }
        let mut capsule = Vec::with_capacity(datagram.len() + 8);
        Capsule::datagram(datagram.into()).encode(&mut capsule);
        let mut content = self.content.lock().await;
        Ok(content.write(capsule.into()).await?)
    }

    /// The largest UDP payload that fits at present, bytes; it grows while the connection to the proxy finds out
    /// what its path carries.
    pub fn max_payload(&self) -> usize {
        self.datagrams.max_size().map_or(MAX_UDP_PAYLOAD, |size| {
            size.saturating_sub(ContextId::UDP.size())
        })
    }
}

impl UdpTunnel {
    /// A handle that sends.
    pub fn sender(&self) -> UdpSender {
        self.sender.clone()
    }

    /// Sends a UDP payload to the target: see [`UdpSender::send`].
    pub async fn send(&self, payload: &[u8]) -> Result<(), TunnelError> {
        self.sender.send(payload).await
    }

    /// What the proxy says of its way to the target: the Proxy-Status field of its answer.
    pub fn proxy_status(&self) -> Option<&str> {
        self.proxy_status.as_deref()
    }

    /// Whether the proxy repairs losses on its way to the client.
    pub fn is_repaired(&self) -> bool {
        self.agreement.is_some()
    }

    /// Whether the proxy sends reports.
    pub fn has_reports(&self) -> bool {
        self.agreement
            .is_some_and(|agreement| agreement.reports().is_some())
    }

    /// The next UDP payload of the target. Dropping the future loses nothing.
    pub async fn recv(&mut self) -> Result<Bytes, TunnelError> {
        loop {
            if let FromTunnel::Payload { payload, .. } = self.recv_any().await? {
                return Ok(payload);
            }
        }
    }

    /// The next UDP payload of the target with its number, or report of the proxy. Dropping the future loses nothing.
    pub async fn recv_any(&mut self) -> Result<FromTunnel, TunnelError> {
        loop {
            if let Some(next) = self.waiting.pop_front() {
                return Ok(next);
            }
            tokio::select! {
                biased;
                datagram = self.datagrams.recv() => match datagram {
                    Ok(datagram) => {
                        if let Some(next) = self.content_of(datagram) {
                            return Ok(next);
                        }
                    }
                    // The content says why.
                    Err(_) => return Err(self.content_end().await),
                },
                piece = self.content.read() => {
                    let Some(piece) = piece? else {
                        let whole = self.capsules.finish();
                        return Err(whole.map_or(TunnelError::Malformed, |()| TunnelError::Ended));
                    };
                    self.take_capsules(piece);
                }
            }
        }
    }

    /// What a datagram holds; `None` in unknown contexts.
    fn content_of(&self, datagram: Bytes) -> Option<FromTunnel> {
        let (context, content) = context::decode(datagram)?;
        if context == ContextId::UDP {
            let (payload, number) = (content, None);
            return Some(FromTunnel::Payload { payload, number });
        }
        let agreement = self.agreement?;
        if context == agreement.data() {
            let (number, payload) = data::decode(content)?;
            let number = Some(number);
            return Some(FromTunnel::Payload { payload, number });
        }
        (agreement.reports() == Some(context)).then_some(FromTunnel::Report(content))
    }

    fn take_capsules(&mut self, mut piece: Bytes) {
        while let Some(capsule) = self.capsules.next(&mut piece) {
            if capsule.capsule_type == capsule_type::DATAGRAM
                && let Some(next) = self.content_of(capsule.value)
            {
                self.waiting.push_back(next);
            }
        }
    }

    async fn content_end(&mut self) -> TunnelError {
        loop {
            match self.content.read().await {
                Ok(Some(_)) => {}
                Ok(None) => return TunnelError::Ended,
                Err(error) => return error.into(),
            }
        }
    }
}
