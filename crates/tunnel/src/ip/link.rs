//! The link that a tunnel is: IPv6 needs one that carries packets of 1280 bytes (RFC 9484, section 7.2; RFC 8200,
//! section 5).
//!
//! A connection finds out what its path carries while data passes that fills its packets. An end that has IPv6 and
//! does not know yet sends padding until it does, or gives up.

use std::time::Duration;

use swiftwater_wire::VarInt;

use crate::context::{self, ContextId};

/// How long a connection may take to find out that it carries packets of 1280 bytes.
pub(crate) const LINK_PROBING: Duration = Duration::from_secs(5);

/// How often padding is sent meanwhile.
pub(crate) const LINK_PROBE_INTERVAL: Duration = Duration::from_millis(50);

/// Datagrams of padding at once: one that fills a packet, and one that waits behind it.
pub(crate) const LINK_PROBE_DATAGRAMS: usize = 2;

/// The context of the client's padding. It is not registered: receivers drop what comes in it (RFC 9484, section 6).
pub(crate) const PADDING_OF_CLIENT: ContextId = ContextId::new(VarInt::from_u32(2));

/// The same of the proxy.
pub(crate) const PADDING_OF_PROXY: ContextId = ContextId::new(VarInt::from_u32(1));

/// A datagram of padding, `size` bytes long.
pub(crate) fn padding(context: ContextId, size: usize) -> Vec<u8> {
    context::encode(context, &vec![0; size.saturating_sub(context.size())])
}
