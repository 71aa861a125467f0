//! The version information of an endpoint (RFC 9368, section 3).

/// Most versions stored from a peer's list.
const MAX_AVAILABLE: usize = 16;

/// The version information of one endpoint.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct VersionInformation {
    /// The version that the sender uses for this connection; not 0.
    pub chosen: u32,
    available: [u32; MAX_AVAILABLE],
    len: u8,
}

impl VersionInformation {
    /// The chosen version and those available: for a client all that its first flight is compatible
    /// with, in order of preference and `chosen` among them, for a server all that it supports. Reserved
    /// ones may be among them; none is 0. Those beyond the first 16 are left out, except the chosen one,
    /// which takes the last place.
    pub fn new(chosen: u32, available: impl IntoIterator<Item = u32>) -> Self {
        let mut information = Self {
            chosen,
            available: [0; MAX_AVAILABLE],
            len: 0,
        };
        for version in available {
            let len = usize::from(information.len);
            if let Some(slot) = information.available.get_mut(len) {
                *slot = version;
                information.len += 1;
            } else if version == chosen && !information.available.contains(&chosen) {
                information.available[MAX_AVAILABLE - 1] = chosen;
            }
        }
        information
    }

    /// The versions that the sender offers.
    pub fn available(&self) -> &[u32] {
        &self.available[..usize::from(self.len)]
    }
}
