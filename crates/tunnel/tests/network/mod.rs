//! A network within the test, in the place of a TUN device.
#![allow(dead_code, unreachable_pub, reason = "every test crate uses its part")]
#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::io;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use swiftwater_tunnel::device::PacketDevice;
use swiftwater_tunnel::ip::IpHeader;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::packets::packet;

/// Clones are the same network.
#[derive(Clone)]
pub struct Network {
    /// Whether it sends packets back to their source.
    is_echo: bool,
    /// For the proxy; `None` makes it fail.
    deliver: UnboundedSender<Option<Vec<u8>>>,
    delivered: Arc<Mutex<UnboundedReceiver<Option<Vec<u8>>>>>,
    /// From the proxy.
    send: UnboundedSender<Vec<u8>>,
    sent: Arc<tokio::sync::Mutex<UnboundedReceiver<Vec<u8>>>>,
}

impl Network {
    /// Sends each packet back to its source, from its destination, with the hop limit that it has.
    pub fn echo() -> Self {
        Self::new(true)
    }

    /// Sends nothing but what the test delivers.
    pub fn silent() -> Self {
        Self::new(false)
    }

    fn new(is_echo: bool) -> Self {
        let (deliver, delivered) = unbounded_channel();
        let (send, sent) = unbounded_channel();
        Self {
            is_echo,
            deliver,
            delivered: Arc::new(Mutex::new(delivered)),
            send,
            sent: Arc::new(tokio::sync::Mutex::new(sent)),
        }
    }

    /// Hands a packet to the proxy.
    pub fn deliver(&self, packet: Vec<u8>) {
        self.deliver.send(Some(packet)).unwrap();
    }

    /// The next packet that the proxy sent.
    pub async fn sent(&self) -> Vec<u8> {
        self.sent.lock().await.recv().await.unwrap()
    }

    pub fn fail(&self) {
        self.deliver.send(None).unwrap();
    }
}

impl PacketDevice for Network {
    fn send(&self, sent: &[u8]) -> io::Result<()> {
        if self.is_echo {
            let header = IpHeader::parse(sent).unwrap();
            let (from, to) = (header.destination, header.source);
            let content = &sent[header.length..];
            self.deliver(packet(from, to, header.protocol, header.hop_limit, content));
        }
        self.send.send(sent.to_vec()).map_err(io::Error::other)
    }

    fn poll_receive(&self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        let mut delivered = self.delivered.lock().unwrap();
        delivered
            .poll_recv(cx)
            .map(|packet| match packet.flatten() {
                Some(packet) => {
                    buffer[..packet.len()].copy_from_slice(&packet);
                    Ok(packet.len())
                }
                None => Err(io::Error::other("the network is gone")),
            })
    }
}
