//! Heap memory of the victim: what its endpoint and connections hold, without what the test holds.
//!
//! The tests run with an allocator that counts for each thread. Only calls into the library are
//! measured, so what they allocate and do not free is what the library keeps.

#![allow(dead_code, reason = "each user takes a part")]

/// Counts what calls into the library leave behind.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Meter {
    held: i64,
    peak: i64,
}

impl Meter {
    /// Makes a call into the library.
    pub(crate) fn measure<T>(&mut self, call: impl FnOnce() -> T) -> T {
        let mut result = None;
        let info = allocation_counter::measure(|| result = Some(call()));
        let peak = self.held + i64::try_from(info.bytes_max).unwrap_or(i64::MAX);
        self.peak = self.peak.max(peak);
        self.held += info.bytes_current;
        result.unwrap_or_else(|| unreachable!("the call was made"))
    }

    /// Bytes of heap that the library holds now.
    pub(crate) fn held(&self) -> i64 {
        self.held
    }

    /// The most that it held since [`Meter::restart`], also in the middle of a call.
    pub(crate) fn peak(&self) -> i64 {
        self.peak
    }

    /// Looks for the peak anew.
    pub(crate) fn restart(&mut self) {
        self.peak = self.held;
    }
}
