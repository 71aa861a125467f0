//! Activity of one connection and the limits on it: idle time, responses that the client does not read,
//! abandoned requests. hyper has no limits for these.
//!
//! Requests report through their [`Exchange`]; the connection's task evaluates the limits.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use super::exchange::{Exchange, Standing};
use super::limits::TcpLimits;
use super::metered::Meter;

/// Why a connection must end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Expiry {
    /// Idle timeout: no request for too long.
    Idle,
    /// The client does not read a response that can't be reset alone.
    Stalled,
    /// The client abandons requests faster than the limits grant.
    Abused,
}

#[derive(Debug)]
struct State {
    /// Requests so far.
    requests: u64,
    /// Requests between their head and the last written byte of their response.
    open: BTreeMap<u64, Weak<Exchange>>,
    /// The last time a request started or ended.
    changed: Instant,
    /// The request that was started last, or accepted as a tunnel, until the task of its stream has taken it.
    begun: Weak<Exchange>,
    abandoned: u32,
    abandon_start: Instant,
    abused: bool,
    /// Another protocol follows the messages.
    has_left_http: bool,
}

/// The shared record of one connection.
#[derive(Debug)]
pub(super) struct Activity {
    state: Mutex<State>,
    abuse: Notify,
    limits: Arc<TcpLimits>,
    meter: Arc<Meter>,
}

impl Activity {
    pub(super) fn new(limits: Arc<TcpLimits>, meter: Arc<Meter>) -> Arc<Self> {
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
                has_left_http: false,
            }),
            abuse: Notify::new(),
            limits,
            meter,
        })
    }

    /// Records the start of a request.
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

    /// Returns the request that was started last, once.
    pub(super) fn take_begun(&self) -> Option<Arc<Exchange>> {
        std::mem::take(&mut self.lock().begun).upgrade()
    }

    /// The next task is another one of this request.
    pub(super) fn continues(&self, exchange: &Arc<Exchange>) {
        self.lock().begun = Arc::downgrade(exchange);
    }

    /// Another protocol follows the messages.
    pub(super) fn leave_http(&self) {
        self.lock().has_left_http = true;
    }

    /// Whether another protocol follows the messages.
    pub(super) fn has_left_http(&self) -> bool {
        self.lock().has_left_http
    }

    /// Records the end of request `number`. A request that is not `complete` counts as abandoned.
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

    /// Bytes written to the socket so far.
    pub(super) fn sent(&self) -> u64 {
        self.meter.sent.load(Ordering::Relaxed)
    }

    /// Restarts the idle time.
    pub(super) fn start(&self) {
        self.lock().changed = Instant::now();
    }

    /// Requests started so far.
    pub(super) fn requests(&self) -> u64 {
        self.lock().requests
    }

    /// Waits until the connection must end; meanwhile resets responses that the client does not
    /// read.
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

    /// Why the connection must end now; otherwise when to check again. Requests start and end
    /// without waking this task, so the interval between checks is short.
    fn judge(&self) -> Result<Expiry, Instant> {
        let limits = &self.limits;
        let now = Instant::now();
        let mut look = now + limits.idle_timeout.min(limits.send_timeout) / 2;
        // The last reference to an exchange must not be dropped while the state is locked.
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
