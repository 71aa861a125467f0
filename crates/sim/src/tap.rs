//! Taps: hooks that process every datagram offered to a link, before the link.

use std::cell::RefCell;
use std::fmt;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use swiftwater_link::Ecn;
use swiftwater_units::Instant;

/// A datagram offered to a link.
#[derive(Debug)]
pub struct TapDatagram<'a> {
    /// The time.
    pub now: Instant,
    /// Number of datagrams offered to the link before this one.
    pub index: u64,
    /// Sender address, as seen by the receiver.
    pub source: SocketAddr,
    /// Receiver.
    pub destination: SocketAddr,
    /// The client's port if this is a TCP segment, `None` if it is a UDP datagram. Interfaces have one
    /// port only, in their address; connections of TCP differ by this one.
    pub tcp_port: Option<u16>,
    /// ECN field; may be changed.
    pub ecn: &'a mut Ecn,
    /// UDP payload, or a TCP segment ([`Segment::decode`](crate::tcp::Segment::decode)); may be changed,
    /// also in length.
    pub data: &'a mut Vec<u8>,
}

/// Decision of a tap.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Verdict {
    /// The datagram enters the link, possibly changed.
    Pass,
    /// It is dropped.
    Drop,
    /// It enters the link with this delay; later datagrams overtake it.
    Delay(Duration),
}

/// A hook on a link.
pub(crate) struct Tap(pub(crate) Box<dyn FnMut(&mut TapDatagram<'_>) -> Verdict>);

impl fmt::Debug for Tap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tap(..)")
    }
}

/// A datagram in a [`Recording`].
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Captured {
    /// When it was offered to the link.
    pub at: Instant,
    /// Sender.
    pub source: SocketAddr,
    /// Receiver.
    pub destination: SocketAddr,
    /// UDP payload.
    pub data: Vec<u8>,
}

/// Copies of all datagrams offered to a link since the recording was started. Clones share the
/// recording.
#[derive(Clone, Debug, Default)]
pub struct Recording(Rc<RefCell<Vec<Captured>>>);

impl Recording {
    /// The datagrams so far.
    pub fn datagrams(&self) -> Vec<Captured> {
        self.0.borrow().clone()
    }

    /// Number of datagrams.
    pub fn len(&self) -> usize {
        self.0.borrow().len()
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.0.borrow().is_empty()
    }

    /// UDP payload bytes in all of them.
    pub fn bytes(&self) -> u64 {
        let captured = self.0.borrow();
        captured
            .iter()
            .map(|datagram| datagram.data.len() as u64)
            .sum()
    }

    pub(crate) fn tap(&self) -> impl FnMut(&mut TapDatagram<'_>) -> Verdict + 'static {
        let captured = Rc::clone(&self.0);
        move |datagram| {
            captured.borrow_mut().push(Captured {
                at: datagram.now,
                source: datagram.source,
                destination: datagram.destination,
                data: datagram.data.clone(),
            });
            Verdict::Pass
        }
    }
}
