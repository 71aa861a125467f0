//! Where the datagrams of targets are received: memory of the thread, which all its tunnels use in turn.

use std::cell::RefCell;
use std::io::{self, IoSliceMut};

use quinn_udp::{BATCH_SIZE, EcnCodepoint, RecvMeta};

/// Room for one message, which may be several datagrams that the system joined, bytes.
const MESSAGE: usize = 65_535;

/// Messages that one call receives, at most.
const MESSAGES: usize = if BATCH_SIZE < 4 { BATCH_SIZE } else { 4 };

/// Whether a call that yields less than there is room for leaves nothing behind, and the runtime gets an event for what
/// comes then.
const IS_EMPTIED: bool = cfg!(any(target_os = "linux", target_os = "android"));

thread_local! {
    static BUFFERS: RefCell<ReceiveBuffers> = RefCell::new(ReceiveBuffers::new());
}

/// Datagrams that were received at once.
pub(super) struct ReceiveBuffers {
    data: Box<[u8]>,
    metas: [RecvMeta; MESSAGES],
    filled: usize,
}

impl ReceiveBuffers {
    fn new() -> Self {
        Self {
            data: vec![0; MESSAGES * MESSAGE].into_boxed_slice(),
            metas: [RecvMeta::default(); MESSAGES],
            filled: 0,
        }
    }

    /// Lends the buffers of this thread, without content, to `user`, which must not ask for them again.
    pub(super) fn lend<R>(user: impl FnOnce(&mut Self) -> R) -> R {
        BUFFERS.with_borrow_mut(|buffers| {
            buffers.filled = 0;
            user(buffers)
        })
    }

    /// Fills the buffers by `receive`, which returns the number of messages.
    pub(super) fn fill(
        &mut self,
        receive: impl FnOnce(&mut [IoSliceMut<'_>], &mut [RecvMeta]) -> io::Result<usize>,
    ) -> io::Result<()> {
        self.filled = 0;
        let mut slots = self.data.chunks_exact_mut(MESSAGE);
        let mut slots: [IoSliceMut<'_>; MESSAGES] =
            std::array::from_fn(|_| IoSliceMut::new(slots.next().unwrap_or_default()));
        self.filled = receive(&mut slots, &mut self.metas)?.min(MESSAGES);
        Ok(())
    }

    /// True if the system has no more for now, as far as it said.
    pub(super) fn took_all(&self) -> bool {
        IS_EMPTIED && self.filled < MESSAGES
    }

    /// True if nothing was received.
    pub(super) fn is_empty(&self) -> bool {
        self.filled == 0
    }

    /// The datagrams, in the order of their arrival, each with its ECN mark.
    pub(super) fn datagrams(&self) -> impl Iterator<Item = (&[u8], Option<EcnCodepoint>)> {
        let messages = self.data.chunks_exact(MESSAGE).zip(&self.metas);
        messages.take(self.filled).flat_map(|(data, meta)| {
            let data = &data[..meta.len.min(data.len())];
            let empty = data.is_empty().then_some(data);
            let datagrams = empty.into_iter().chain(data.chunks(meta.stride.max(1)));
            datagrams.map(|datagram| (datagram, meta.ecn))
        })
    }
}
