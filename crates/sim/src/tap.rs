//! Taps: hooks that see every datagram offered to a link, before the link does.

use std::cell::RefCell;
use std::fmt;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use swiftwater_link::Ecn;
use swiftwater_units::Instant;

/// A datagram that is about to enter a link.
#[derive(Debug)]
pub struct TapDatagram<'a> {
    /// The time.
    pub now: Instant,
    /// How many datagrams were offered to the link before this one.
    pub index: u64,
    /// Sender, as the receiver will see it.
    pub source: SocketAddr,
    /// Receiver.
    pub destination: SocketAddr,
    /// ECN field; may be changed.
    pub ecn: &'a mut Ecn,
    /// UDP payload; may be changed, also in length.
    pub data: &'a mut Vec<u8>,
}

/// What a tap wants done with a datagram.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Verdict {
    /// It goes on, perhaps changed.
    Pass,
    /// It disappears.
    Drop,
    /// It enters the link this much later; others pass it meanwhile.
    Delay(Duration),
}

/// A hook on a link.
pub(crate) struct Tap(pub(crate) Box<dyn FnMut(&mut TapDatagram<'_>) -> Verdict>);

impl fmt::Debug for Tap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tap(..)")
    }
}

/// A datagram that a [`Recording`] saw.
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

/// Copies of all datagrams offered to a link since the recording was started. Clones show the same
/// recording.
#[derive(Clone, Debug, Default)]
pub struct Recording(Rc<RefCell<Vec<Captured>>>);

impl Recording {
    /// The datagrams so far.
    pub fn datagrams(&self) -> Vec<Captured> {
        self.0.borrow().clone()
    }

    /// How many there are.
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
