//! The packet number spaces of the handshake, while they exist.

use crate::idle_memory::IdleMemory;

use super::{Space, SpaceId};

/// The spaces of Initial and of Handshake packets. Each ends with its keys (RFC 9001, section 4.9).
#[derive(Debug)]
pub(crate) struct HandshakeSpaces {
    initial: Option<Box<Space>>,
    handshake: Option<Box<Space>>,
}

impl HandshakeSpaces {
    /// Both, empty.
    pub(crate) fn new() -> Self {
        Self {
            initial: Some(Box::new(Space::new())),
            handshake: Some(Box::new(Space::new())),
        }
    }

    /// The space, unless it is over or belongs to a path.
    pub(crate) fn get(&self, id: SpaceId) -> Option<&Space> {
        match id {
            SpaceId::Initial => self.initial.as_deref(),
            SpaceId::Handshake => self.handshake.as_deref(),
            SpaceId::Data(_) => None,
        }
    }

    /// The same, to be changed.
    pub(crate) fn get_mut(&mut self, id: SpaceId) -> Option<&mut Space> {
        match id {
            SpaceId::Initial => self.initial.as_deref_mut(),
            SpaceId::Handshake => self.handshake.as_deref_mut(),
            SpaceId::Data(_) => None,
        }
    }

    /// Takes a space that is over.
    pub(crate) fn take(&mut self, id: SpaceId) -> Option<Box<Space>> {
        match id {
            SpaceId::Initial => self.initial.take(),
            SpaceId::Handshake => self.handshake.take(),
            SpaceId::Data(_) => None,
        }
    }

    /// Those in use: Initial, then Handshake.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (SpaceId, &Space)> {
        [SpaceId::Initial, SpaceId::Handshake]
            .into_iter()
            .filter_map(|id| Some((id, self.get(id)?)))
    }
}

impl IdleMemory for HandshakeSpaces {
    fn release_idle_memory(&mut self) {
        let Self { initial, handshake } = self;
        for space in [initial, handshake].into_iter().flatten() {
            space.release_idle_memory();
        }
    }
}
