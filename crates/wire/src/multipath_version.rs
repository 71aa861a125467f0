//! Versions of the multipath extension that differ on the wire.

/// A version of the multipath extension: it decides under which transport parameter the extension is
/// declared and which types its frames have. What the frames say is the same, but for the reason phrase of
/// PATH_ABANDON, and PATHS_BLOCKED and PATH_CIDS_BLOCKED, which draft 10 does not have.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum MultipathVersion {
    /// RFC 10069 (text of draft-ietf-quic-multipath-21): the parameter 0x3e and frames of that family.
    #[default]
    Rfc10069,
    /// draft-ietf-quic-multipath-10: the parameter 0x0f739bbc1b666d09 and frames from 0x15228c00 on.
    Draft10,
}
