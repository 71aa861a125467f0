//! Protocol selection for one request: a pure function of the policy and the state known at that
//! time.

use std::time::Duration;

use super::protocol_choice::{Hint, Why};

/// Which protocols may carry requests. Set for a client, or for one request by its extensions.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum Policy {
    /// HTTP/3 or an error; attempted without a hint and regardless of earlier failures.
    Http3Only,
    /// HTTP/3 even without a hint, unless it failed recently. TCP only once QUIC has failed.
    PreferHttp3,
    /// HTTP/3 where a hint exists, with TCP starting a little later; the connection that is
    /// established first is used.
    #[default]
    Race,
    /// HTTP/2 or HTTP/1.1.
    NoHttp3,
}

/// What decides on the protocol of a request.
#[derive(Clone, Copy, Debug)]
pub(super) enum Way {
    /// A policy.
    Policy(Policy),
    /// [`Policy::Race`], for a selection that compares HTTP/3 with TCP later, whichever connects first: TCP starts 10 ms after QUIC
    /// unless QUIC is known to work.
    Compared,
    /// HTTP/3 was selected for this request; TCP is the alternative.
    Http3 {
        /// When TCP may start.
        tcp: Tcp,
        /// Interval between the starts of connection attempts.
        stagger: Duration,
    },
}

impl Way {
    /// The policy that comes closest.
    pub(super) fn policy(self) -> Policy {
        match self {
            Self::Policy(policy) => policy,
            Self::Compared => Policy::Race,
            Self::Http3 { .. } => Policy::PreferHttp3,
        }
    }
}

/// Inputs of the decision when a request is to be sent.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Facts {
    /// The URI is `https`.
    pub(super) https: bool,
    /// The client has a QUIC endpoint.
    pub(super) quic: bool,
    /// The origin is reached through a proxy.
    pub(super) proxied: bool,
    /// QUIC failed recently on this network.
    pub(super) broken: bool,
    /// A QUIC handshake of an earlier request is in progress.
    pub(super) pending: bool,
    /// The hint that the origin offers HTTP/3.
    pub(super) hint: Option<Hint>,
}

/// When TCP may start relative to QUIC.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Tcp {
    Never,
    AfterFailure,
    AfterDelay,
}

/// The decision.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Decision {
    Http3 {
        why: Why,
        tcp: Tcp,
    },
    Tcp(Why),
    /// The policy requires HTTP/3, which is impossible for this reason.
    Impossible(Why),
}

/// Applies `policy` to the inputs.
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
    // An open connection proves that the record of failures is out of date.
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
