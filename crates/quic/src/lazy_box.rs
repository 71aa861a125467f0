//! Parts that exist only while they are needed.

/// A part that many owners hold and few need at a time: made when it is first needed, released when its
/// owner rests.
#[derive(Debug)]
pub(crate) struct LazyBox<T>(Option<Box<T>>);

impl<T> Default for LazyBox<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T: Default> LazyBox<T> {
    /// The part, if there is one.
    #[inline]
    pub(crate) fn get(&self) -> Option<&T> {
        self.0.as_deref()
    }

    /// The part, to be changed if there is one.
    #[inline]
    pub(crate) fn get_mut(&mut self) -> Option<&mut T> {
        self.0.as_deref_mut()
    }

    /// The part, made now if there is none.
    #[inline]
    pub(crate) fn need(&mut self) -> &mut T {
        self.0.get_or_insert_default()
    }

    /// Releases the part. What it held must be equivalent to a new one.
    pub(crate) fn release(&mut self) {
        self.0 = None;
    }
}
