//! A tunnel at the client.

use std::collections::VecDeque;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, response};
use swiftwater_http::h3::DatagramError;
use swiftwater_http::h3::capsule::{Capsule, CapsuleReader, capsule_type};
use swiftwater_http::udp::connect::{DatagramsEnded, HttpDatagrams, PendingConnect, SendContent};
use swiftwater_net::quic::SendDatagramError;
use tokio::sync::Mutex;

use super::capsule_stream::{self, CapsuleQueue, CapsuleSender};
use super::content::Content;
use super::error::{OpenError, TunnelError, check_answer, proxy_status_of};
use super::forwarding::Forwarding;
use super::tcp_link::UpgradedStream;
use crate::MAX_UDP_PAYLOAD;
use crate::context::{self, ContextId};
use crate::forwarding::{
    ForwardingOffer, PROXY_QUIC_FORWARDING, PROXY_QUIC_PORT_SHARING, port_sharing,
};
use crate::tecc::{Agreement, TECC, data};

/// A tunnel that the proxy has not answered yet. Dropping it cancels the request.
pub struct OpeningTunnel {
    pending: Pending,
    offer: Option<Agreement>,
    forwarding: Option<Forwarding>,
}

/// What a client offers beyond RFC 9298.
#[derive(Clone, Debug)]
pub(super) enum Offer {
    /// Repair of losses, with reports or without.
    Repair(Agreement),
    /// Forwarding of packets with short headers.
    Forwarding(ForwardingOffer),
}

impl Offer {
    /// Adds the offer to a request.
    pub(super) fn add_to(&self, headers: &mut HeaderMap) {
        match self {
            Self::Repair(agreement) => {
                headers.extend(agreement.field().map(|field| (TECC, field)));
            }
            Self::Forwarding(offer) => {
                if let Some(field) = offer.field() {
                    headers.insert(PROXY_QUIC_FORWARDING, field);
                    // IDs that this end can't read, such as those of later packets, would be lost on a shared port.
                    headers.insert(PROXY_QUIC_PORT_SHARING, port_sharing(false));
                }
            }
        }
    }
}

/// The answer of a proxy over TCP: the fields, and the stream of capsules.
pub(super) type TcpAnswer = Result<(response::Parts, UpgradedStream), OpenError>;

enum Pending {
    Http3(PendingConnect),
    Tcp {
        answer: Pin<Box<dyn Future<Output = TcpAnswer> + Send>>,
        sender: CapsuleSender,
        queue: CapsuleQueue,
    },
}

impl OpeningTunnel {
    pub(super) fn new(pending: PendingConnect, offer: Option<Offer>) -> Self {
        // The sizes of what passes are given, and what does not fit is lost.
        pending.datagrams().connection().seek_larger_datagrams();
        let (offer, forwarding) = match offer {
            Some(Offer::Repair(offer)) => (Some(offer), None),
            Some(Offer::Forwarding(offer)) => {
                let datagrams = pending.datagrams().clone();
                (None, Some(Forwarding::new(datagrams, offer)))
            }
            None => (None, None),
        };
        let pending = Pending::Http3(pending);
        Self {
            pending,
            offer,
            forwarding,
        }
    }

    /// A tunnel over HTTP/2 or HTTP/1.1.
    pub(super) fn over_tcp(answer: impl Future<Output = TcpAnswer> + Send + 'static) -> Self {
        let (sender, queue) = capsule_stream::queue();
        let pending = Pending::Tcp {
            answer: Box::pin(answer),
            sender,
            queue,
        };
        Self {
            pending,
            offer: None,
            forwarding: None,
        }
    }

    /// Sends a UDP payload before the proxy's answer, over TCP right after it; if it does not fit, it is dropped.
    pub fn send(&self, payload: &[u8]) {
        if let Some(forwarding) = &self.forwarding {
            forwarding.send(payload);
        }
        let datagram = context::encode(ContextId::UDP, payload);
        // As UDP does: the sender of the payload has no guarantee.
        match &self.pending {
            Pending::Http3(pending) => drop(pending.datagrams().try_send(&datagram)),
            Pending::Tcp { sender, .. } => drop(sender.try_send(datagram)),
        }
    }

    /// Waits for the proxy's answer.
    pub async fn opened(self) -> Result<UdpTunnel, OpenError> {
        let pending = match self.pending {
            Pending::Http3(pending) => pending,
            Pending::Tcp {
                answer,
                sender,
                queue,
            } => {
                let (head, stream) = answer.await?;
                let content = Content::Stream(queue.begin(stream));
                let sender = UdpSender(Way::Capsules(sender));
                return Ok(UdpTunnel {
                    sender,
                    datagrams: None,
                    content,
                    capsules: capsules(),
                    waiting: VecDeque::new(),
                    agreement: None,
                    forwarding: None,
                    proxy_status: proxy_status_of(&head.headers),
                });
            }
        };
        let datagrams = pending.datagrams().clone();
        let (head, content) = pending.response().await?.into_parts();
        let proxy_status = check_answer(head.status.is_success(), head.status, &head.headers)?;
        let agreement = head.headers.get(TECC).and_then(Agreement::parse);
        // What was not offered is no agreement.
        let agreement = agreement.zip(self.offer);
        let agreement = agreement.filter(|(agreement, offer)| agreement.answers(*offer));
        let agreement = agreement.map(|(agreement, _)| agreement);
        let send_content = Arc::new(Mutex::new(content.send));
        let forwarding = match self.forwarding {
            Some(forwarding) if forwarding.begin(&head.headers, &send_content)? => {
                Some(Arc::new(forwarding))
            }
            _ => None,
        };
        let sender = UdpSender(Way::Http3 {
            datagrams: datagrams.clone(),
            content: send_content,
            forwarding: forwarding.clone(),
        });
        Ok(UdpTunnel {
            sender,
            datagrams: Some(datagrams),
            content: Content::Http3(content.receive),
            capsules: capsules(),
            waiting: VecDeque::new(),
            agreement,
            forwarding,
            proxy_status,
        })
    }
}

/// Datagrams to and from one target. The tunnel ends when it and its senders are dropped.
#[derive(Debug)]
pub struct UdpTunnel {
    sender: UdpSender,
    /// `None` over TCP, where all are capsules.
    datagrams: Option<HttpDatagrams>,
    content: Content,
    capsules: CapsuleReader,
    /// Received in capsules, not read yet.
    waiting: VecDeque<FromTunnel>,
    /// What was agreed on, if the proxy repairs losses.
    agreement: Option<Agreement>,
    /// What passes beside the connection to the proxy, if that forwards packets.
    forwarding: Option<Arc<Forwarding>>,
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
pub struct UdpSender(Way);

#[derive(Clone, Debug)]
enum Way {
    Http3 {
        datagrams: HttpDatagrams,
        content: Arc<Mutex<SendContent>>,
        forwarding: Option<Arc<Forwarding>>,
    },
    Capsules(CapsuleSender),
}

/// Reads datagrams in capsules.
fn capsules() -> CapsuleReader {
    CapsuleReader::new((8 + MAX_UDP_PAYLOAD) as u64)
}

pub(super) async fn next_datagram(
    datagrams: Option<&HttpDatagrams>,
) -> Result<Bytes, DatagramsEnded> {
    match datagrams {
        Some(datagrams) => datagrams.recv().await,
        None => std::future::pending().await,
    }
}

/// The next packet that came beside the connection.
async fn next_forwarded(forwarding: Option<&Forwarding>) -> Bytes {
    match forwarding {
        Some(forwarding) => forwarding.recv().await,
        None => std::future::pending().await,
    }
}

impl UdpSender {
    /// Sends a UDP payload to the target, unreliably; waits while the queue to the proxy is full. If the
    /// connection has no datagrams, the payload leaves in a capsule. Over HTTP/2 and HTTP/1.1 it is dropped if the
    /// queue is full ([`TunnelError::Full`]), and after 300 ms in it.
    pub async fn send(&self, payload: &[u8]) -> Result<(), TunnelError> {
        if self.forwards(payload) {
            return Ok(());
        }
        let datagram = context::encode(ContextId::UDP, payload);
        let (datagrams, content) = match &self.0 {
            Way::Http3 {
                datagrams, content, ..
            } => (datagrams, content),
            Way::Capsules(sender) => return sender.try_send(datagram),
        };
        if datagrams.max_size().is_some() {
            return Ok(datagrams.send(&datagram).await?);
        }
        let mut capsule = Vec::with_capacity(datagram.len() + 8);
        Capsule::datagram(datagram.into()).encode(&mut capsule);
        let mut content = content.lock().await;
        Ok(content.write(capsule.into()).await?)
    }

    /// Sends a UDP payload to the target, unreliably, or fails at once if the queue to the proxy is full. If a
    /// connection with HTTP/3 has no datagrams, it always fails so.
    pub fn try_send(&self, payload: &[u8]) -> Result<(), TunnelError> {
        if self.forwards(payload) {
            return Ok(());
        }
        let datagram = context::encode(ContextId::UDP, payload);
        match &self.0 {
            Way::Capsules(sender) => sender.try_send(datagram),
            Way::Http3 { datagrams, .. } if datagrams.max_size().is_none() => {
                Err(DatagramError::Transport(SendDatagramError::Blocked).into())
            }
            Way::Http3 { datagrams, .. } => Ok(datagrams.try_send(&datagram)?),
        }
    }

    /// Sends a payload beside the connection to the proxy; false if it has to go through the tunnel.
    fn forwards(&self, payload: &[u8]) -> bool {
        match &self.0 {
            Way::Http3 {
                forwarding: Some(forwarding),
                ..
            } => forwarding.send(payload),
            _ => false,
        }
    }

    /// The same for several payloads one after the other, of `size` bytes each but for a shorter last one: all of them, or
    /// false.
    pub(super) fn forwards_run(&self, run: &[u8], size: usize) -> bool {
        match &self.0 {
            Way::Http3 {
                forwarding: Some(forwarding),
                ..
            } => forwarding.send_run(run, size),
            _ => false,
        }
    }

    /// The largest UDP payload that fits at present, bytes; it grows while the connection to the proxy finds out
    /// what its path carries.
    pub fn max_payload(&self) -> usize {
        let size = match &self.0 {
            Way::Http3 { datagrams, .. } => datagrams.max_size(),
            Way::Capsules(_) => None,
        };
        size.map_or(MAX_UDP_PAYLOAD, |size| {
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

    /// Whether packets of QUIC pass beside the connection to the proxy at present, in one direction or both
    /// ([`forwarding`](crate::forwarding)).
    pub fn is_forwarding(&self) -> bool {
        let forwarding = self.forwarding.as_ref();
        forwarding.is_some_and(|forwarding| forwarding.is_active())
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
                payload = next_forwarded(self.forwarding.as_deref()) => {
                    let number = None;
                    return Ok(FromTunnel::Payload { payload, number });
                }
                datagram = next_datagram(self.datagrams.as_ref()) => match datagram {
                    Ok(datagram) => {
                        if let Some(next) = self.content_of(datagram) {
                            return Ok(next);
                        }
                    }
                    // The content says why.
                    Err(_) => return Err(self.content.end().await),
                },
                piece = self.content.read() => {
                    let Some(piece) = piece? else {
                        let whole = self.capsules.finish();
                        return Err(whole.map_or(TunnelError::Malformed, |()| TunnelError::Ended));
                    };
                    self.take_capsules(piece)?;
                }
            }
        }
    }

    /// What a datagram holds; `None` in unknown contexts.
    fn content_of(&self, datagram: Bytes) -> Option<FromTunnel> {
        let (context, content) = context::decode(datagram)?;
        if context == ContextId::UDP {
            if let Some(forwarding) = &self.forwarding {
                forwarding.on_tunnelled(&content);
            }
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

    fn take_capsules(&mut self, mut piece: Bytes) -> Result<(), TunnelError> {
        while let Some(capsule) = self.capsules.next(&mut piece) {
            if capsule.capsule_type == capsule_type::DATAGRAM {
                let next = self.content_of(capsule.value);
                self.waiting.extend(next);
            } else if let Some(forwarding) = &self.forwarding {
                forwarding.on_capsule(&capsule)?;
            }
        }
        // A datagram that is no UDP payload (RFC 9298, section 5).
        if self.capsules.passed_over() == Some(capsule_type::DATAGRAM) {
            return Err(TunnelError::Malformed);
        }
        Ok(())
    }
}

impl fmt::Debug for OpeningTunnel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpeningTunnel")
            .field("offer", &self.offer)
            .finish_non_exhaustive()
    }
}
