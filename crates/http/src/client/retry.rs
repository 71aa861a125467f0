//! Decides whether a request is sent again: only if the server certainly did not process it or its method
//! is idempotent, and if its content is still complete.

/// Most times that a request is sent.
const MAX_SENT: u32 = 4;

/// Why a request must be sent again, or why sending it failed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Fate {
    /// The server certainly did not process it: it was never sent, or the server states so (RFC
    /// 9114, section 4.1.1; RFC 9113, section 8.7).
    Unprocessed,
    /// It was sent as early data, and the response is 425 (RFC 8470, section 5.2).
    TooEarly,
    /// An alternative service answered 421 (Misdirected Request): the origin itself may be able to
    /// answer (RFC 7838, section 6).
    Misdirected,
    /// The connection is lost: the server sent a stateless reset, does not answer, or has closed it. It
    /// may have processed the request.
    ConnectionGone,
    /// Anything else.
    Unknown,
}

/// Whether to send it again. `sent` counts the times so far; with `whole` the content can be sent from its
/// beginning; with `stale` the method is idempotent and the connection was reused, so its loss does not
/// predict the failure of a new one (RFC 9110, section 9.2.2).
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
