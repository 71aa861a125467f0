//! Connection ID capsules (draft-ietf-masque-quic-proxy, section 5), with the provisional types of section 11.4.

use bytes::Bytes;
use swiftwater_http::h3::capsule::Capsule;
use swiftwater_wire::{DecodeError, Reader, VarInt};
use thiserror::Error;

const REGISTER_CLIENT_CID: u64 = 0xff_e600;
const REGISTER_TARGET_CID: u64 = 0xff_e601;
const ACK_CLIENT_CID: u64 = 0xff_e602;
const ACK_CLIENT_VCID: u64 = 0xff_e603;
const ACK_TARGET_CID: u64 = 0xff_e604;
const CLOSE_CLIENT_CID: u64 = 0xff_e605;
const CLOSE_TARGET_CID: u64 = 0xff_e606;
const MAX_CONNECTION_IDS: u64 = 0xff_e607;

/// The longest connection ID of any version of QUIC, bytes (RFC 8999, section 5.1).
const MAX_CID: usize = 255;

/// What client and proxy say of connection IDs. IDs have up to 255 bytes; reset tokens are empty if there is none.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum CidCapsule {
    /// The client has this ID: packets from the target go there (section 5.1).
    RegisterClientCid(Bytes),
    /// The target has this ID: packets from the client go there (section 5.2).
    RegisterTargetCid {
        /// The ID.
        cid: Bytes,
        /// The token with which the target resets the connection.
        reset_token: Bytes,
    },
    /// The proxy knows the client's ID (section 5.3).
    AckClientCid {
        /// The ID.
        cid: Bytes,
        /// The virtual ID in forwarded packets to the client; empty without forwarding.
        vcid: Bytes,
    },
    /// The client takes packets with this virtual ID (section 5.5).
    AckClientVcid {
        /// The ID that it stands for.
        cid: Bytes,
        /// The virtual ID.
        vcid: Bytes,
        /// The token with which the client ends forwarding to it.
        reset_token: Bytes,
    },
    /// The proxy knows the target's ID (section 5.4).
    AckTargetCid {
        /// The ID.
        cid: Bytes,
        /// The virtual ID in forwarded packets of the client; empty without forwarding.
        vcid: Bytes,
        /// The token with which the proxy ends forwarding.
        reset_token: Bytes,
    },
    /// An ID of the client is refused, or no longer in use (section 5.6).
    CloseClientCid(Bytes),
    /// An ID of the target is refused, or no longer in use (section 5.6).
    CloseTargetCid(Bytes),
    /// Registrations up to this sequence number are permitted (section 5.7).
    MaxConnectionIds(u64),
}

/// A connection ID capsule that is malformed.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum CidCapsuleError {
    /// It ends within a field, or goes on after the last one.
    #[error("a connection ID capsule does not have the length of its fields")]
    Length,
    /// An ID has more than 255 bytes.
    #[error("a connection ID of {0} bytes")]
    LongCid(usize),
}

impl CidCapsule {
    /// Reads a capsule; `None` if it is of another type.
    ///
    /// # Errors
    ///
    /// See [`CidCapsuleError`]: the content of the stream is malformed.
    pub fn decode(capsule: &Capsule) -> Result<Option<Self>, CidCapsuleError> {
        let mut fields = Fields {
            value: &capsule.value,
            reader: Reader::new(&capsule.value),
        };
        let read = match capsule.capsule_type {
            REGISTER_CLIENT_CID => Self::RegisterClientCid(fields.rest()?),
            CLOSE_CLIENT_CID => Self::CloseClientCid(fields.rest()?),
            CLOSE_TARGET_CID => Self::CloseTargetCid(fields.rest()?),
            REGISTER_TARGET_CID => Self::RegisterTargetCid {
                cid: fields.bytes()?,
                reset_token: fields.bytes()?,
            },
            ACK_CLIENT_CID => Self::AckClientCid {
                cid: fields.bytes()?,
                vcid: fields.bytes()?,
            },
            ACK_CLIENT_VCID => Self::AckClientVcid {
                cid: fields.bytes()?,
                vcid: fields.bytes()?,
                reset_token: fields.bytes()?,
            },
            ACK_TARGET_CID => Self::AckTargetCid {
                cid: fields.bytes()?,
                vcid: fields.bytes()?,
                reset_token: fields.bytes()?,
            },
            MAX_CONNECTION_IDS => Self::MaxConnectionIds(fields.number()?),
            _ => return Ok(None),
        };
        if fields.reader.is_empty() {
            Ok(Some(read))
        } else {
            Err(CidCapsuleError::Length)
        }
    }

    /// The capsule. Numbers from 2^62 become the largest that there is; that IDs are not too long is the caller's concern.
    pub fn encode(&self) -> Capsule {
        let mut value = Vec::new();
        let mut put = |fields: &[&Bytes]| {
            for field in fields {
                put_number(&mut value, field.len() as u64);
                value.extend_from_slice(field);
            }
        };
        let capsule_type = match self {
            Self::RegisterClientCid(cid) => return plain(REGISTER_CLIENT_CID, cid),
            Self::CloseClientCid(cid) => return plain(CLOSE_CLIENT_CID, cid),
            Self::CloseTargetCid(cid) => return plain(CLOSE_TARGET_CID, cid),
            Self::RegisterTargetCid { cid, reset_token } => {
                put(&[cid, reset_token]);
                REGISTER_TARGET_CID
            }
            Self::AckClientCid { cid, vcid } => {
                put(&[cid, vcid]);
                ACK_CLIENT_CID
            }
            Self::AckClientVcid {
                cid,
                vcid,
                reset_token,
            } => {
                put(&[cid, vcid, reset_token]);
                ACK_CLIENT_VCID
            }
            Self::AckTargetCid {
                cid,
                vcid,
                reset_token,
            } => {
                put(&[cid, vcid, reset_token]);
                ACK_TARGET_CID
            }
            Self::MaxConnectionIds(number) => {
                put_number(&mut value, *number);
                MAX_CONNECTION_IDS
            }
        };
        let value = value.into();
        Capsule {
            capsule_type,
            value,
        }
    }

    /// The bytes of the capsule, with its type and length.
    pub fn to_bytes(&self) -> Bytes {
        let mut out = Vec::new();
        self.encode().encode(&mut out);
        out.into()
    }
}

fn put_number(out: &mut Vec<u8>, number: u64) {
    out.extend_from_slice(VarInt::saturating(number).encode().as_bytes());
}

fn plain(capsule_type: u64, cid: &Bytes) -> Capsule {
    let value = cid.clone();
    Capsule {
        capsule_type,
        value,
    }
}

/// What is left of the value of a capsule.
struct Fields<'a> {
    value: &'a Bytes,
    reader: Reader<'a>,
}

impl Fields<'_> {
    /// All that is left, an ID.
    fn rest(&mut self) -> Result<Bytes, CidCapsuleError> {
        let len = self.reader.remaining();
        self.cid(len)
    }

    /// Bytes after their number.
    fn bytes(&mut self) -> Result<Bytes, CidCapsuleError> {
        let len = usize::try_from(self.number()?).map_err(|_| CidCapsuleError::Length)?;
        self.cid(len)
    }

    fn cid(&mut self, len: usize) -> Result<Bytes, CidCapsuleError> {
        if len > MAX_CID {
            return Err(CidCapsuleError::LongCid(len));
        }
        let bytes = self.reader.bytes(len).map_err(length)?;
        Ok(self.value.slice_ref(bytes))
    }

    fn number(&mut self) -> Result<u64, CidCapsuleError> {
        self.reader.varint().map_err(length)
    }
}

fn length(_: DecodeError) -> CidCapsuleError {
    CidCapsuleError::Length
}
