//! When a request is sent again: only if it is certain that the server did nothing with it or that twice is
//! as good as once, and if its content is still there to be sent.

/// Times that a request is sent at most.
const MAX_SENT: u32 = 4;

/// How sending a request failed, or what was answered instead.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Fate {
    /// The server certainly did nothing with it: it was never sent, or the server says so (RFC 9114,
    /// section 4.1.1; RFC 9113, section 8.7).
    Unprocessed,
    /// It was early data, and the answer is 425 (RFC 8470, section 5.2).
    TooEarly,
    /// An alternative service answered 421: the origin itself may do better (RFC 7838, section 6).
    Misdirected,
    /// The connection is gone: the server reset it, having lost its state, or is silent. It may have done
    /// something with the request.
    ConnectionGone,
    /// Anything else.
    Unknown,
}

/// Whether to send it again. `sent` counts the times so far; `whole` says that the content can be sent
/// from its beginning, `stale` that the method is idempotent and the connection an older one: then that it is
/// gone says nothing against a new one (RFC 9110, section 9.2.2).
pub(super) fn again(fate: Fate, whole: bool, stale: bool, sent: u32) -> bool {
    let permitted = match fate {
        Fate::Unprocessed | Fate::TooEarly | Fate::Misdirected => true,
        Fate::ConnectionGone => stale,
        Fate::Unknown => false,
    };
    permitted && whole && sent < MAX_SENT
}

#[cfg(test)]
mod tests;
