//! Memory that an idle connection gives back.

/// A part of a connection that holds buffers, keys or tables which it can give back while the
/// connection is idle, and allocate or derive again when it is used next.
///
/// An implementation destructures `Self` without `..`, so that a new field does not compile until it
/// is decided what becomes of it.
pub(crate) trait IdleMemory {
    /// Gives back what the present state doesn't need. Changes nothing that can be observed but the
    /// memory in use.
    fn release_idle_memory(&mut self);
}
