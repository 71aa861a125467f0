//! The plan of a race over addresses and protocols (RFC 8305; the protocols as in
//! draft-ietf-happy-happyeyeballs-v3): the order and the start times of the attempts. No I/O, no
//! clock.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use tokio::time::Instant;

use super::policy::Tcp;

/// Addresses tried with each protocol; further ones of the DNS are not used.
const MAX_ADDRESSES: usize = 8;

/// AttemptTransport of an attempt.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum AttemptTransport {
    /// UDP.
    Quic,
    /// TCP, and TLS for `https`.
    Tcp,
}

/// One attempt of the plan.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Candidate {
    pub(super) transport: AttemptTransport,
    pub(super) address: SocketAddr,
}

/// State of a race.
#[derive(Debug)]
pub(super) struct Race {
    waiting: VecDeque<Candidate>,
    stagger: Duration,
    /// From the first attempt to that of TCP, if it is the second.
    first_tcp_after: Duration,
    tcp: Tcp,
    next: Instant,
    running_quic: usize,
    running_tcp: usize,
    started: u32,
}

impl Race {
    /// A race that starts at `now`. Address families alternate, starting with that of the first
    /// address (RFC 8305, section 4). With [`Tcp::AfterDelay`] each address is tried by QUIC and then
    /// by TCP; otherwise all of QUIC comes before TCP.
    pub(super) fn new(
        quic: &[SocketAddr],
        tcp: &[SocketAddr],
        mode: Tcp,
        stagger: Duration,
        now: Instant,
    ) -> Self {
        let of = |transport| move |address| Candidate { transport, address };
        let mut quic: VecDeque<_> = interleave(quic).map(of(AttemptTransport::Quic)).collect();
        let mut tcp_side: VecDeque<_> = interleave(tcp).map(of(AttemptTransport::Tcp)).collect();
        let mut waiting = VecDeque::with_capacity(quic.len() + tcp_side.len());
        match mode {
            Tcp::Never => waiting = quic,
            Tcp::AfterFailure => {
                waiting.append(&mut quic);
                waiting.append(&mut tcp_side);
            }
            Tcp::AfterDelay => {
                while !(quic.is_empty() && tcp_side.is_empty()) {
                    waiting.extend(quic.pop_front());
                    waiting.extend(tcp_side.pop_front());
                }
            }
        }
        Self {
            waiting,
            stagger,
            first_tcp_after: stagger,
            tcp: mode,
            next: now,
            running_quic: 0,
            running_tcp: 0,
            started: 0,
        }
    }

    /// The same race with another interval between the first attempt, if it is of QUIC, and the first of TCP.
    #[must_use]
    pub(super) fn first_tcp_after(mut self, interval: Duration) -> Self {
        self.first_tcp_after = interval;
        self
    }

    /// The attempt that is due at `now`, if any; it is counted as running.
    pub(super) fn start(&mut self, now: Instant) -> Option<Candidate> {
        if self.is_held_back() || now < self.next {
            return None;
        }
        let candidate = self.waiting.pop_front()?;
        *self.running(candidate.transport) += 1;
        self.started += 1;
        let is_tcp = |it: &Candidate| it.transport == AttemptTransport::Tcp;
        let is_first_tcp =
            self.started == 1 && !is_tcp(&candidate) && self.waiting.front().is_some_and(is_tcp);
        self.next = now
            + if is_first_tcp {
                self.first_tcp_after
            } else {
                self.stagger
            };
        Some(candidate)
    }

    /// When the next attempt is due, if none fails before.
    pub(super) fn wake_at(&self) -> Option<Instant> {
        let waits = !self.waiting.is_empty() && !self.is_held_back();
        waits.then_some(self.next)
    }

    /// Records that a running attempt failed: the next one is due at once.
    pub(super) fn failed(&mut self, now: Instant, transport: AttemptTransport) {
        let running = self.running(transport);
        *running = running.saturating_sub(1);
        self.next = now;
    }

    /// True if no attempt runs or waits: the race is lost.
    pub(super) fn is_over(&self) -> bool {
        self.waiting.is_empty() && self.running_quic == 0 && self.running_tcp == 0
    }

    /// True if QUIC attempts are running.
    pub(super) fn quic_runs(&self) -> bool {
        self.running_quic > 0
    }

    /// True if no QUIC attempt is running or waiting.
    pub(super) fn quic_is_over(&self) -> bool {
        let mut waiting = self.waiting.iter();
        !self.quic_runs() && !waiting.any(|candidate| candidate.transport == AttemptTransport::Quic)
    }

    /// Attempts started so far.
    pub(super) fn started(&self) -> u32 {
        self.started
    }

    fn is_held_back(&self) -> bool {
        self.tcp == Tcp::AfterFailure
            && self.running_quic > 0
            && self
                .waiting
                .front()
                .is_some_and(|candidate| candidate.transport == AttemptTransport::Tcp)
    }

    fn running(&mut self, transport: AttemptTransport) -> &mut usize {
        match transport {
            AttemptTransport::Quic => &mut self.running_quic,
            AttemptTransport::Tcp => &mut self.running_tcp,
        }
    }
}

/// The addresses with alternating families, each family in its given order.
fn interleave(addresses: &[SocketAddr]) -> impl Iterator<Item = SocketAddr> {
    let first_is_v6 = addresses.first().is_some_and(SocketAddr::is_ipv6);
    let of = |v6: bool| {
        let some = addresses.iter().copied();
        some.filter(move |address| matches!(address.ip(), IpAddr::V6(_)) == v6)
    };
    let (mut first, mut second) = (of(first_is_v6), of(!first_is_v6));
    let mut sorted = Vec::with_capacity(addresses.len());
    loop {
        let pair = [first.next(), second.next()];
        if pair == [None, None] {
            break;
        }
        sorted.extend(pair.into_iter().flatten());
    }
    sorted.truncate(MAX_ADDRESSES);
    sorted.into_iter()
}

#[cfg(test)]
mod tests;
