//! What happens on one connection, and when that is reason to end it or one of its responses: no request
//! for too long, a response that is not taken, too many requests abandoned. hyper has no limits for these.
//!
//! Requests report through their [`Exchange`]; the task of the connection asks.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use super::exchange::{Exchange, Standing};
use super::limits::Limits;
use super::metered::Meter;

/// Why a connection should end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Expiry {
    /// No request for the idle time.
    Idle,
    /// The client takes nothing of a response that can't be given up alone.
    Stalled,
    /// The client abandons requests faster than the limits grant.
    Abused,
}

#[derive(Debug)]
struct State {
    /// Requests so far.
    requests: u64,
    /// Requests between their head and the moment when all of their response is written.
    open: BTreeMap<u64, Weak<Exchange>>,
    /// The last time a request came or went.
    changed: Instant,
    /// The request that was begun last, until the task of its stream has taken it.
    begun: Weak<Exchange>,
    abandoned: u32,
    abandon_start: Instant,
    abused: bool,
}

/// The shared record of one connection.
#[derive(Debug)]
pub(super) struct Activity {
    state: Mutex<State>,
    abuse: Notify,
    limits: Arc<Limits>,
    meter: Arc<Meter>,
}

impl Activity {
    pub(super) fn new(limits: Arc<Limits>, meter: Arc<Meter>) -> Arc<Self> {
        let now = Instant::now();
        Arc::new(Self {
            state: Mutex::new(State {
                requests: 0,
                open: BTreeMap::new(),
                changed: now,
                begun: Weak::new(),
                abandoned: 0,
                abandon_start: now,
                abused: false,
            }),
            abuse: Notify::new(),
            limits,
            meter,
        })
    }

    /// Notes the begin of a request.
    pub(super) fn begin(self: &Arc<Self>) -> Arc<Exchange> {
        let mut state = self.lock();
        let number = state.requests;
        let exchange = Arc::new(Exchange::new(Arc::clone(self), number));
        state.requests += 1;
        state.changed = Instant::now();
        state.begun = Arc::downgrade(&exchange);
        state.open.insert(number, Arc::downgrade(&exchange));
        exchange
    }

    /// The request that was begun last, once.
    pub(super) fn take_begun(&self) -> Option<Arc<Exchange>> {
        std::mem::take(&mut self.lock().begun).upgrade()
    }

    /// Notes that nothing of request `number` is left. Requests that were not `complete` count as abandoned.
    pub(super) fn end(&self, number: u64, complete: bool) {
        let mut state = self.lock();
        state.open.remove(&number);
        let now = Instant::now();
        state.changed = now;
        if complete {
            return;
        }
        if now.duration_since(state.abandon_start) > self.limits.abandon_window {
            state.abandon_start = now;
            state.abandoned = 0;
        }
        state.abandoned += 1;
        if state.abandoned > self.limits.abandoned {
            state.abused = true;
            self.abuse.notify_one();
        }
    }

    /// Bytes that the socket has taken so far.
    pub(super) fn sent(&self) -> u64 {
        self.meter.sent.load(Ordering::Relaxed)
    }

    /// Counts idle time from now on.
    pub(super) fn start(&self) {
        self.lock().changed = Instant::now();
    }

    /// Requests that began so far.
    pub(super) fn requests(&self) -> u64 {
        self.lock().requests
    }

    /// Waits until the connection should end; gives up responses meanwhile that are not taken.
    pub(super) async fn expired(&self) -> Expiry {
        loop {
            let look = match self.judge() {
                Ok(expiry) => return expiry,
                Err(look) => look,
            };
            tokio::select! {
                () = sleep_until(look) => {}
                () = self.abuse.notified() => {}
            }
        }
    }

    /// Why the connection should end now; if it should not, when to look again. Requests come and
    /// go without waking anybody, so that a look is never far away.
    fn judge(&self) -> Result<Expiry, Instant> {
        let limits = &self.limits;
        let now = Instant::now();
        let mut look = now + limits.idle_timeout.min(limits.send_timeout) / 2;
        // The last reference to an exchange must not go while the state is locked.
        let open: Vec<Arc<Exchange>> = {
            let state = self.lock();
            if state.abused {
                return Ok(Expiry::Abused);
            }
            if state.open.is_empty() {
                let deadline = state.changed + limits.idle_timeout;
                return if deadline <= now {
                    Ok(Expiry::Idle)
                } else {
                    Err(deadline.min(look))
                };
            }
            state.open.values().filter_map(Weak::upgrade).collect()
        };
        for exchange in &open {
            match exchange.standing(now, limits.send_timeout) {
                Standing::Moving => {}
                Standing::Waits(deadline) => look = look.min(deadline),
                Standing::Stalled if exchange.give_up() => {}
                Standing::Stalled => return Ok(Expiry::Stalled),
            }
        }
        Err(look)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
