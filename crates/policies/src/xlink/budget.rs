//! The budget: copies are never more than a share of what was sent for the first time in the last ten seconds.
//!
//! Accounts are kept by tenths of a second. Of the one that is leaving the window, copies still count and new
//! data don't, so that the bound holds for the exact ten seconds, too.

use std::collections::VecDeque;
use std::time::Duration;

use swiftwater_units::Instant;

/// Time in which the share is kept.
const WINDOW: Duration = Duration::from_secs(10);
/// Time of one account.
const ACCOUNT: Duration = Duration::from_millis(100);

#[derive(Clone, Copy, Debug)]
struct Account {
    start: Instant,
    new: u64,
    copies: u64,
}

/// Accounts of the last ten seconds, at most 102.
#[derive(Clone, Debug, Default)]
pub(super) struct Budget {
    accounts: VecDeque<Account>,
}

impl Budget {
    /// `bytes` left for the first time.
    pub(super) fn on_new_data(&mut self, now: Instant, bytes: u64) {
        self.account(now).new += bytes;
    }

    /// A copy of `bytes` was asked for.
    pub(super) fn spend(&mut self, now: Instant, bytes: u64) {
        self.account(now).copies += bytes;
    }

    /// `bytes` of a copy that was asked for at `at` don't leave.
    pub(super) fn refund(&mut self, at: Instant, bytes: u64) {
        let start = start_of(at);
        if let Some(account) = self.accounts.iter_mut().find(|of| of.start == start) {
            account.copies = account.copies.saturating_sub(bytes);
        }
    }

    /// Bytes that may be copied now under a share of `share`.
    pub(super) fn room(&mut self, now: Instant, share: f64) -> u64 {
        self.expire(now);
        let (new, copies) = self.sums(now);
        ((share * new as f64) as u64).saturating_sub(copies)
    }

    /// Part of the share `share` that is used, 0 to 1, or more if data left the window since.
    pub(super) fn used(&self, share: f64) -> f64 {
        let Some(last) = self.accounts.back() else {
            return 0.0;
        };
        let (new, copies) = self.sums(last.start);
        let granted = share * new as f64;
        if granted > 0.0 {
            copies as f64 / granted
        } else {
            0.0
        }
    }

    /// New bytes and copies of the window that ends now.
    fn sums(&self, now: Instant) -> (u64, u64) {
        self.accounts.iter().fold((0, 0), |(new, copies), of| {
            let is_whole = of.start + WINDOW > now;
            (new + if is_whole { of.new } else { 0 }, copies + of.copies)
        })
    }

    fn account(&mut self, now: Instant) -> &mut Account {
        self.expire(now);
        let start = start_of(now);
        if self.accounts.back().is_none_or(|last| last.start < start) {
            self.accounts.push_back(Account {
                start,
                new: 0,
                copies: 0,
            });
        }
        let last = self.accounts.len() - 1;
        &mut self.accounts[last]
    }

    fn expire(&mut self, now: Instant) {
        while let Some(first) = self.accounts.front()
            && first.start + ACCOUNT + WINDOW <= now
        {
            self.accounts.pop_front();
        }
    }
}

/// The start of the account that `at` falls into.
fn start_of(at: Instant) -> Instant {
    let account = ACCOUNT.as_nanos();
    let nanos = at.saturating_since(Instant::ZERO).as_nanos() / account * account;
    Instant::ZERO + Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}
