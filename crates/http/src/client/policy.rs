//! Which protocols a request may use, and the decision that follows from what is known.

use super::why::{Hint, Why};

/// Which protocols may carry requests. Set for a client, or for one request by its extensions.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum Policy {
    /// HTTP/3 or an error; tried without a hint and whatever happened before.
    Http3Only,
    /// HTTP/3 even without a hint, unless it failed not long ago. TCP only once QUIC has failed.
    PreferHttp3,
    /// HTTP/3 where something says that the origin speaks it, with TCP starting a little later; what
    /// connects first is used.
    #[default]
    Race,
    /// HTTP/2 or HTTP/1.1.
    NoHttp3,
}

/// What is known when a request is to be sent.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Facts {
    /// The URI is `https`.
    pub(super) https: bool,
    /// The client has a QUIC endpoint.
    pub(super) quic: bool,
    /// A proxy stands between.
    pub(super) proxied: bool,
    /// QUIC failed on this network.
    pub(super) broken: bool,
    /// A QUIC handshake of an earlier request goes on.
    pub(super) pending: bool,
    /// What says that the origin speaks HTTP/3.
    pub(super) hint: Option<Hint>,
}

/// When TCP may start beside QUIC.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Tcp {
    Never,
    AfterFailure,
    AfterDelay,
}

/// What to do.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Decision {
    Http3 {
        why: Why,
        tcp: Tcp,
    },
    Tcp(Why),
    /// The policy wants HTTP/3, which this forbids.
    Impossible(Why),
}

/// Applies `policy` to what is known.
pub(super) fn decide(policy: Policy, facts: Facts) -> Decision {
    if policy == Policy::NoHttp3 {
        return Decision::Tcp(Why::Policy);
    }
    let obstacle = match facts {
        Facts { https: false, .. } => Some(Why::PlainText),
        Facts { quic: false, .. } => Some(Why::NoQuic),
        Facts { proxied: true, .. } => Some(Why::Proxy),
        _ => None,
    };
    match (policy, obstacle) {
        (Policy::Http3Only, Some(why)) => return Decision::Impossible(why),
        (Policy::Http3Only, None) => {
            return Decision::Http3 {
                why: Why::Policy,
                tcp: Tcp::Never,
            };
        }
        (_, Some(why)) => return Decision::Tcp(why),
        (_, None) => {}
    }
    let hint = match (facts.hint, policy) {
        (None, Policy::PreferHttp3) => Hint::Assumed,
        (None, _) => return Decision::Tcp(Why::NoHint),
        (Some(hint), _) => hint,
    };
    // A connection that stands proves that the memory is out of date.
    if hint != Hint::Connected {
        if facts.broken {
            return Decision::Tcp(Why::QuicBroken);
        }
        if facts.pending {
            return Decision::Tcp(Why::QuicPending);
        }
    }
    Decision::Http3 {
        why: Why::Hinted(hint),
        tcp: if policy == Policy::PreferHttp3 {
            Tcp::AfterFailure
        } else {
            Tcp::AfterDelay
        },
    }
}

#[cfg(test)]
mod tests;
