//! QUIC-aware proxying without I/O (draft-ietf-masque-quic-proxy): packets with short headers pass between client and
//! proxy beside the connection that carries the tunnel, with virtual connection IDs, without its encryption, congestion
//! control and loss recovery ("forwarded mode"). Packets with long headers, and all whose connection IDs are not
//! registered, stay in the tunnel.
//!
//! - [`ForwardingOffer`], [`ForwardingAnswer`]: the fields with which the ends agree.
//! - [`CidCapsule`]: the capsules that register connection IDs.
//! - [`PacketTransform`]: what hides from observers which packets of the two sides of a proxy are the same.
//! - [`ProxyIds`]: the IDs that a proxy has for a tunnel; [`ClientIds`]: those of a client, which it reads from the
//!   packets that pass.
//!
//! Addresses to the target are not shared between tunnels (section 4): each has its own, so that IDs conflict only with
//! those of the same tunnel.

mod capsules;
mod client_ids;
mod fields;
mod liveness;
mod packets;
mod proxy_ids;
mod transform;

pub use capsules::{CidCapsule, CidCapsuleError};
pub use client_ids::{ClientIds, TargetVcid, ZeroLimit};
pub use fields::{
    ForwardingAnswer, ForwardingOffer, NotOffered, PROXY_QUIC_FORWARDING, PROXY_QUIC_PORT_SHARING,
    port_sharing,
};
pub use liveness::{Liveness, SILENCE};
pub use packets::replace_cid;
pub use proxy_ids::{ClientVcid, ProxyIds, TooManyRegistrations};
pub use transform::{PacketTransform, ScrambleKey, Transform};

/// The shortest virtual connection ID, bytes: a shorter one can be guessed, and might be the beginning of another ID.
pub(crate) const MIN_VCID_LEN: usize = 8;

/// Registrations that a client may make before the proxy permits more: the largest sequence number (section 5.7).
const INITIAL_MAX_SEQUENCE: u64 = 1;
