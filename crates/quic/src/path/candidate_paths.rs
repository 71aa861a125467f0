//! Candidate paths: those that are being probed, and the one that was in use before (RFC 9000, section
//! 9).
//!
//! They carry challenges and responses only. Each has its own connection ID, so that it can't be linked
//! to the path in use (section 9.5), its own validation and its own anti-amplification limit. None has
//! a packet number space: a connection that migrates has a single one.

use std::time::Duration;

use swiftwater_units::Instant;

use crate::recovery::PathRecovery;

use crate::datagram_size::MIN_PACKET_ROOM;

use super::cids::RemoteCid;
use super::{Address, Amplification, Answered, Ecn, Mtu, PathResponses, Validation};

/// Candidate paths of a connection at most.
const MAX_CANDIDATE_PATHS: usize = 4;
/// How long a path that the peer probed, and that answered, is kept in case that the peer moves there.
const STANDBY: Duration = Duration::from_secs(10);

/// Why there is a candidate path.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Role {
    /// The application asked to migrate there once it is validated.
    Chosen,
    /// The server prefers to be reached there; like `Chosen` else.
    Preferred,
    /// The peer probes from there.
    Probed,
    /// The peer has moved there; the path is taken into use once it is validated.
    PeerMoved,
    /// The peer's latest non-probing packet came from there, but path validation failed: the
    /// previous path is in use again (section 9.3.2), and this one is validated on, since the peer may
    /// have no other and nothing to send.
    Unanswered,
    /// The path in use before.
    Previous,
}

/// The state of a path when it was left, for the case that it is reverted to (section 9.3.2).
#[derive(Debug)]
pub(crate) struct Kept {
    pub(crate) recovery: PathRecovery,
    pub(crate) ecn: Ecn,
    pub(crate) mtu: Mtu,
}

/// A path besides the one in use.
#[derive(Debug)]
pub(crate) struct CandidatePath {
    pub(crate) address: Address,
    pub(crate) role: Role,
    /// The peer's connection ID for it; `None` if it shares that of the path in use, because the
    /// peer gave no other and didn't change its destination connection ID either.
    pub(crate) cid: Option<RemoteCid>,
    pub(crate) amplification: Amplification,
    pub(crate) validation: Validation,
    pub(crate) responses: PathResponses,
    /// When it is abandoned; `None` while it is being validated, or while this end may
    /// revert to it (section 9.3.2).
    pub(crate) expires_at: Option<Instant>,
    pub(crate) kept: Option<Box<Kept>>,
}

impl CandidatePath {
    pub(crate) fn new(
        address: Address,
        role: Role,
        cid: Option<RemoteCid>,
        amplification: Amplification,
    ) -> Self {
        Self {
            address,
            role,
            cid,
            amplification,
            validation: Validation::default(),
            responses: PathResponses::default(),
            expires_at: None,
            kept: None,
        }
    }

    /// True if something is to be sent there.
    pub(crate) fn has_something_to_send(&self) -> bool {
        !self.responses.is_empty() || self.validation.needs_challenge()
    }

    /// The path answered: the peer may move there for some time.
    pub(crate) fn stand_by(&mut self, now: Instant) {
        self.expires_at = Some(now + STANDBY);
    }

    /// True if a new path may take its place: it is validated, and neither end has chosen it.
    fn is_spare(&self) -> bool {
        self.role == Role::Probed && !self.validation.is_running()
    }
}

/// The candidate paths of a connection, oldest first.
#[derive(Debug, Default)]
pub(crate) struct CandidatePaths {
    paths: Vec<CandidatePath>,
}

impl CandidatePaths {
    pub(crate) fn iter(&self) -> impl Iterator<Item = &CandidatePath> + Clone {
        self.paths.iter()
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut CandidatePath> {
        self.paths.iter_mut()
    }

    /// Where the path with this address is.
    pub(crate) fn find(&self, address: &Address) -> Option<usize> {
        self.paths
            .iter()
            .position(|path| path.address.matches(address))
    }

    /// Where the first path in this role is.
    #[inline]
    pub(crate) fn in_role(&self, role: Role) -> Option<usize> {
        self.paths.iter().position(|path| path.role == role)
    }

    /// Where the path is whose validation failed, if it leads elsewhere than to `address`.
    pub(crate) fn unanswered_besides(&self, address: &Address) -> Option<usize> {
        let at = self.in_role(Role::Unanswered)?;
        (self.find(address) != Some(at)).then_some(at)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.paths.is_empty()
    }

    /// Starts the validation of path `at`, timed by `pto`.
    pub(crate) fn validate(&mut self, at: usize, pto: Duration) {
        if let Some(path) = self.get_mut(at) {
            path.validation.start(pto);
        }
    }

    /// The previous path will not be reverted to: it ends at `expiry`.
    pub(crate) fn expire_previous(&mut self, expiry: Instant) {
        let previous = self.iter_mut().filter(|path| path.role == Role::Previous);
        for path in previous {
            path.expires_at.get_or_insert(expiry);
        }
    }

    pub(crate) fn get(&self, at: usize) -> Option<&CandidatePath> {
        self.paths.get(at)
    }

    pub(crate) fn get_mut(&mut self, at: usize) -> Option<&mut CandidatePath> {
        self.paths.get_mut(at)
    }

    /// Which path must go before another can be added; `Err` if none may.
    pub(crate) fn place(&self) -> Result<Option<usize>, Full> {
        if self.paths.len() < MAX_CANDIDATE_PATHS {
            return Ok(None);
        }
        let spare = self.paths.iter().position(CandidatePath::is_spare);
        spare.map(Some).ok_or(Full)
    }

    pub(crate) fn push(&mut self, path: CandidatePath) {
        self.paths.push(path);
    }

    pub(crate) fn remove(&mut self, at: usize) -> CandidatePath {
        self.paths.remove(at)
    }

    /// A response arrived; which path it validates, if any.
    pub(crate) fn on_response(&mut self, now: Instant, data: [u8; 8]) -> Option<(usize, Answered)> {
        let mut paths = self.paths.iter_mut().enumerate();
        paths.find_map(|(at, path)| Some((at, path.validation.on_response(now, data)?)))
    }

    /// The first path that has something to send, and may.
    pub(crate) fn next_to_send(&self) -> Option<usize> {
        self.paths.iter().position(|path| {
            path.has_something_to_send() && path.amplification.budget() >= MIN_PACKET_ROOM as u64
        })
    }

    /// When something is to be done about one of them.
    pub(crate) fn timeout(&self) -> Option<Instant> {
        let times = |path: &CandidatePath| [path.validation.timeout(), path.expires_at];
        self.paths.iter().flat_map(times).flatten().min()
    }
}

/// There are as many candidate paths as there may be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Full;
