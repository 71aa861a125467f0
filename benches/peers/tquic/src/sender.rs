//! Sends tquic's datagrams.

use std::io::IoSlice;
use std::net::SocketAddr;
use std::rc::Rc;

use datagrams::Socket;
use tquic::{Error, PacketInfo, PacketSendHandler, Result};

/// A datagram and where it goes.
type Packet = (Vec<u8>, PacketInfo);

/// Sends datagrams in bursts: as many as have the same size and destination, and a shorter one behind them.
pub(crate) struct Sender(pub(crate) Rc<Socket>);

impl PacketSendHandler for Sender {
    fn on_packets_send(&self, packets: &[Packet]) -> Result<usize> {
        let mut rest = packets;
        while let Some((first, info)) = rest.first() {
            let count = burst(rest, self.0.max_burst(first.len()));
            self.send(info.dst, &rest[..count], first.len())
                .map_err(|error| Error::IoError(error.to_string()))?;
            rest = &rest[count..];
        }
        Ok(packets.len())
    }
}

impl Sender {
    fn send(&self, to: SocketAddr, packets: &[Packet], size: usize) -> std::io::Result<()> {
        let slices: Vec<IoSlice<'_>> = packets
            .iter()
            .map(|(datagram, _)| IoSlice::new(datagram))
            .collect();
        self.0.send_gathered(to, &slices, size)
    }
}

/// How many of the packets, at most `most`, make a burst.
fn burst(packets: &[Packet], most: usize) -> usize {
    let (first, to) = (packets[0].0.len(), packets[0].1.dst);
    let mut count = 1;
    for (datagram, info) in packets.iter().take(most).skip(1) {
        if info.dst != to || datagram.len() > first {
            break;
        }
        count += 1;
        if datagram.len() < first {
            break;
        }
    }
    count
}
