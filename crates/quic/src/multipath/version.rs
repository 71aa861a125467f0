//! What depends on the version of the extension that both ends speak: how it is agreed on, its error codes,
//! and which of its frames exist. The types of frames are in `swiftwater_wire`.

use swiftwater_units::PathId;
use swiftwater_wire::{ErrorCode, MultipathVersion, TransportParameters};

use super::ack_path::AckPath;
use crate::config::MultipathVersions;
use crate::path::PathState;

/// A version that both ends have declared, and the largest path identifier that the peer accepts.
///
/// An end that declares both versions uses that of the RFC if the peer declares it, too.
pub(crate) fn agreed(
    offered: MultipathVersions,
    peer: &TransportParameters,
) -> Option<(MultipathVersion, u32)> {
    let rfc = (peer.initial_max_path_id).map(|max| (MultipathVersion::Rfc10069, max));
    let draft = (peer.initial_max_path_id_draft10).map(|max| (MultipathVersion::Draft10, max));
    let is_offered = |(version, _): &(MultipathVersion, u32)| offered.includes(*version);
    rfc.filter(is_offered).or_else(|| draft.filter(is_offered))
}

/// The code for violations of the extension that have no code of their own (draft-ietf-quic-multipath-21,
/// section 4; -10, section 8).
pub(crate) fn violation_code(version: MultipathVersion) -> ErrorCode {
    match version {
        MultipathVersion::Rfc10069 => ErrorCode::PROTOCOL_VIOLATION,
        MultipathVersion::Draft10 => ErrorCode::MP_PROTOCOL_VIOLATION,
    }
}

/// The code that PATH_ABANDON has for `error`. Draft 10 defines none for it: what the RFC calls an
/// abandonment by the application is no error there, and the other causes are that the path is not viable.
pub(crate) fn abandon_code(version: MultipathVersion, error: ErrorCode) -> ErrorCode {
    match (version, error) {
        (MultipathVersion::Draft10, ErrorCode::APPLICATION_ABANDON_PATH) => ErrorCode::NO_ERROR,
        (
            MultipathVersion::Draft10,
            ErrorCode::PATH_RESOURCE_LIMIT_REACHED
            | ErrorCode::PATH_UNSTABLE_OR_POOR
            | ErrorCode::NO_CID_AVAILABLE_FOR_PATH,
        ) => ErrorCode::NO_VIABLE_PATH,
        (_, error) => error,
    }
}

/// True if PATHS_BLOCKED and PATH_CIDS_BLOCKED exist.
pub(crate) fn has_blocked_frames(version: MultipathVersion) -> bool {
    version == MultipathVersion::Rfc10069
}

/// Which path carries the acknowledgements of 1-RTT packets of a path.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum AckRoute {
    /// One path carries those of all.
    One {
        /// The path.
        carrier: PathId,
        /// A path that carries its own nevertheless.
        except: Option<PathId>,
    },
    /// Each path carries its own; those of paths that are being closed leave on this one
    /// (draft-ietf-quic-multipath-10, section 6.4, permits either). Peers of that age take round-trip times
    /// only from acknowledgements that come back on the path itself.
    Own {
        /// The path for those of paths that are being closed.
        closing: PathId,
    },
}

impl AckRoute {
    pub(crate) fn new(version: MultipathVersion, chosen: &AckPath) -> Self {
        let carrier = chosen.get();
        match version {
            MultipathVersion::Rfc10069 => Self::One {
                carrier,
                except: chosen.exception(),
            },
            MultipathVersion::Draft10 => Self::Own { closing: carrier },
        }
    }

    /// The path that carries the acknowledgements of `path`.
    pub(crate) fn carrier(self, path: &PathState) -> PathId {
        match self {
            Self::One { except, .. } if except == Some(path.id) => path.id,
            Self::One { carrier, .. } => carrier,
            Self::Own { closing } if path.is_closing() => closing,
            Self::Own { .. } => path.id,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(rfc: Option<u32>, draft: Option<u32>) -> TransportParameters {
        TransportParameters {
            initial_max_path_id: rfc,
            initial_max_path_id_draft10: draft,
            ..TransportParameters::default()
        }
    }

    #[test]
    fn the_version_is_one_that_both_declare_and_the_rfc_goes_first() {
        use MultipathVersion::{Draft10, Rfc10069};
        use MultipathVersions as Offer;
        let all = [
            (Offer::Rfc10069, Some(1), Some(2), Some((Rfc10069, 1))),
            (Offer::Draft10, Some(1), Some(2), Some((Draft10, 2))),
            (Offer::Both, Some(1), Some(2), Some((Rfc10069, 1))),
            (Offer::Both, None, Some(0), Some((Draft10, 0))),
            (Offer::Rfc10069, None, Some(2), None),
            (Offer::Draft10, Some(1), None, None),
            (Offer::Both, None, None, None),
        ];
        for (offered, rfc, draft, expected) in all {
            assert_eq!(agreed(offered, &peer(rfc, draft)), expected, "{offered:?}");
        }
    }

    #[test]
    fn codes_of_the_rfc_do_not_appear_in_frames_of_the_draft() {
        let codes = [
            (ErrorCode::APPLICATION_ABANDON_PATH, ErrorCode::NO_ERROR),
            (ErrorCode::PATH_UNSTABLE_OR_POOR, ErrorCode::NO_VIABLE_PATH),
            (ErrorCode(77), ErrorCode(77)),
        ];
        for (code, in_draft) in codes {
            assert_eq!(abandon_code(MultipathVersion::Rfc10069, code), code);
            assert_eq!(abandon_code(MultipathVersion::Draft10, code), in_draft);
        }
    }
}
