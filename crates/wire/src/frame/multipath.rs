//! The frames of the multipath extension: their types in its versions, and how they are read and written
//! (draft-ietf-quic-multipath-21, section 4; -10, section 7).

use swiftwater_units::PathId;

use super::ack::Ack;
use super::decode::read_new_cid;
use super::encode::Tail;
use super::types::{self, draft10};
use super::{Frame, NewConnectionId};
use crate::coding::Reader;
use crate::error::{DecodeError, ErrorCode};
use crate::multipath_version::MultipathVersion;

/// A frame of the extension, by the names of RFC 10069.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum PathFrame {
    Ack,
    AckEcn,
    Abandon,
    StatusBackup,
    StatusAvailable,
    NewConnectionId,
    RetireConnectionId,
    MaxPathId,
    PathsBlocked,
    PathCidsBlocked,
}

impl PathFrame {
    /// The type on the wire. Draft 10 has no PATHS_BLOCKED and no PATH_CIDS_BLOCKED: they have the types of
    /// RFC 10069 in both versions.
    pub(super) const fn type_in(self, version: MultipathVersion) -> u64 {
        let is_rfc = matches!(version, MultipathVersion::Rfc10069);
        let (rfc, draft) = match self {
            Self::Ack => (types::PATH_ACK, draft10::PATH_ACK),
            Self::AckEcn => (types::PATH_ACK_ECN, draft10::PATH_ACK_ECN),
            Self::Abandon => (types::PATH_ABANDON, draft10::PATH_ABANDON),
            Self::StatusBackup => (types::PATH_STATUS_BACKUP, draft10::PATH_STATUS_BACKUP),
            Self::StatusAvailable => (types::PATH_STATUS_AVAILABLE, draft10::PATH_STATUS_AVAILABLE),
            Self::NewConnectionId => (
                types::PATH_NEW_CONNECTION_ID,
                draft10::PATH_NEW_CONNECTION_ID,
            ),
            Self::RetireConnectionId => (
                types::PATH_RETIRE_CONNECTION_ID,
                draft10::PATH_RETIRE_CONNECTION_ID,
            ),
            Self::MaxPathId => (types::MAX_PATH_ID, draft10::MAX_PATH_ID),
            Self::PathsBlocked => (types::PATHS_BLOCKED, types::PATHS_BLOCKED),
            Self::PathCidsBlocked => (types::PATH_CIDS_BLOCKED, types::PATH_CIDS_BLOCKED),
        };
        if is_rfc { rfc } else { draft }
    }

    /// The frame of a type, and the version that defines it.
    pub(super) const fn of(frame_type: u64) -> Option<(MultipathVersion, Self)> {
        let frame = match frame_type {
            types::PATH_ACK | draft10::PATH_ACK => Self::Ack,
            types::PATH_ACK_ECN | draft10::PATH_ACK_ECN => Self::AckEcn,
            types::PATH_ABANDON | draft10::PATH_ABANDON => Self::Abandon,
            types::PATH_STATUS_BACKUP | draft10::PATH_STATUS_BACKUP => Self::StatusBackup,
            types::PATH_STATUS_AVAILABLE | draft10::PATH_STATUS_AVAILABLE => Self::StatusAvailable,
            types::PATH_NEW_CONNECTION_ID | draft10::PATH_NEW_CONNECTION_ID => {
                Self::NewConnectionId
            }
            types::PATH_RETIRE_CONNECTION_ID | draft10::PATH_RETIRE_CONNECTION_ID => {
                Self::RetireConnectionId
            }
            types::MAX_PATH_ID | draft10::MAX_PATH_ID => Self::MaxPathId,
            types::PATHS_BLOCKED => Self::PathsBlocked,
            types::PATH_CIDS_BLOCKED => Self::PathCidsBlocked,
            _ => return None,
        };
        let version = if frame_type >= draft10::PATH_ACK {
            MultipathVersion::Draft10
        } else {
            MultipathVersion::Rfc10069
        };
        Some((version, frame))
    }
}

impl MultipathVersion {
    /// The version that defines frames of type `frame_type`; `None` if the extension doesn't.
    pub const fn of_frame(frame_type: u64) -> Option<Self> {
        // Most frames of most connections.
        if frame_type < types::PATH_ACK {
            return None;
        }
        match PathFrame::of(frame_type) {
            Some((version, _)) => Some(version),
            None => None,
        }
    }
}

/// Reads the fields after the type.
pub(super) fn read<'a>(
    r: &mut Reader<'a>,
    version: MultipathVersion,
    frame: PathFrame,
) -> Result<Frame<'a>, DecodeError> {
    let path = read_path(r)?;
    Ok(match frame {
        PathFrame::Ack => Frame::Ack(Ack::read(r, Some(path), false)?),
        PathFrame::AckEcn => Frame::Ack(Ack::read(r, Some(path), true)?),
        PathFrame::Abandon => Frame::PathAbandon {
            path,
            error: ErrorCode(r.varint()?),
            reason: match version {
                MultipathVersion::Rfc10069 => &[],
                MultipathVersion::Draft10 => r.length_prefixed()?,
            },
        },
        PathFrame::StatusBackup | PathFrame::StatusAvailable => Frame::PathStatus {
            path,
            sequence: r.varint()?,
            backup: frame == PathFrame::StatusBackup,
        },
        PathFrame::NewConnectionId => Frame::NewConnectionId(read_new_cid(r, Some(path))?),
        PathFrame::RetireConnectionId => Frame::RetireConnectionId {
            path: Some(path),
            sequence: r.varint()?,
        },
        PathFrame::MaxPathId => Frame::MaxPathId { max: path },
        PathFrame::PathsBlocked => Frame::PathsBlocked { max: path },
        PathFrame::PathCidsBlocked => Frame::PathCidsBlocked {
            path,
            next_sequence: r.varint()?,
        },
    })
}

fn read_path(r: &mut Reader<'_>) -> Result<PathId, DecodeError> {
    let id = r.varint()?;
    u32::try_from(id)
        .map(PathId::new)
        .map_err(|_| DecodeError::PathIdTooLarge(id))
}

impl Frame<'_> {
    /// The rows of [`Frame::with_layout`] for connection IDs and paths.
    pub(super) fn with_path_layout<T>(
        &self,
        version: MultipathVersion,
        f: impl FnOnce(&[u64], Tail<'_>) -> T,
    ) -> T {
        let frame_type = |frame: PathFrame| frame.type_in(version);
        let number = |path: PathId| u64::from(path.get());
        let (fields, tail) = match *self {
            Frame::RetireConnectionId {
                path: None,
                sequence,
            } => return f(&[types::RETIRE_CONNECTION_ID, sequence], Tail::Nothing),
            Frame::RetireConnectionId {
                path: Some(path),
                sequence,
            } => {
                let frame_type = frame_type(PathFrame::RetireConnectionId);
                ([frame_type, number(path), sequence], Tail::Nothing)
            }
            Frame::PathAbandon {
                path,
                error,
                reason,
            } => {
                let tail = match version {
                    MultipathVersion::Rfc10069 => Tail::Nothing,
                    MultipathVersion::Draft10 => Tail::Prefixed(reason),
                };
                let frame_type = frame_type(PathFrame::Abandon);
                ([frame_type, number(path), error.0], tail)
            }
            Frame::PathStatus {
                path,
                sequence,
                backup,
            } => {
                let frame = if backup {
                    PathFrame::StatusBackup
                } else {
                    PathFrame::StatusAvailable
                };
                ([frame_type(frame), number(path), sequence], Tail::Nothing)
            }
            Frame::MaxPathId { max } => {
                let fields = [frame_type(PathFrame::MaxPathId), number(max)];
                return f(&fields, Tail::Nothing);
            }
            Frame::PathsBlocked { max } => {
                let fields = [frame_type(PathFrame::PathsBlocked), number(max)];
                return f(&fields, Tail::Nothing);
            }
            Frame::PathCidsBlocked {
                path,
                next_sequence,
            } => {
                let frame_type = frame_type(PathFrame::PathCidsBlocked);
                ([frame_type, number(path), next_sequence], Tail::Nothing)
            }
            _ => unreachable!("with_layout sends only path frames here"),
        };
        f(&fields, tail)
    }
}

impl NewConnectionId {
    /// See [`Frame::with_layout`].
    pub(super) fn with_layout<T>(
        &self,
        version: MultipathVersion,
        f: impl FnOnce(&[u64], Tail<'_>) -> T,
    ) -> T {
        let (sequence, retire_prior_to) = (self.sequence, self.retire_prior_to);
        let tail = Tail::NewCid(self);
        match self.path {
            None => f(&[types::NEW_CONNECTION_ID, sequence, retire_prior_to], tail),
            Some(path) => {
                let frame_type = PathFrame::NewConnectionId.type_in(version);
                let path = u64::from(path.get());
                f(&[frame_type, path, sequence, retire_prior_to], tail)
            }
        }
    }
}
