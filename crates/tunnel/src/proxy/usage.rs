//! What the tunnels of a proxy use of its limits: how many there are in total and by user, what users may still pass, new
//! tunnels by target, and lookups of names.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::config::Limits;
use super::new_tunnels::NewTunnels;
use super::refusal::Refusal;
use super::user_budget::UserBudget;

/// Lookups of names at once. Each occupies a thread of the runtime until the system's resolver gives up, also when nobody
/// waits for it any more; tokio has 512 by default, which serve files, too.
const LOOKUPS: usize = 128;

/// Those of one user, so that slow names of his do not keep others waiting.
const LOOKUPS_OF_USER: usize = 16;

/// Users without tunnels that are remembered because they have used something of their limit; those who have earned it
/// back are forgotten when there are more.
const MOST_USERS: usize = 4096;

/// What the tunnels of a proxy use of its limits at present. Clones share it: a proxy that replaces another takes over
/// that of the one before, since its tunnels go on. After a change of what a user may pass, his open tunnels keep the
/// limit from before, and new ones have the other.
#[derive(Clone, Debug, Default)]
pub struct TunnelUsage(Arc<Usage>);

#[derive(Debug)]
struct Usage {
    tunnels: Mutex<Tunnels>,
    new_tunnels: NewTunnels,
    lookups: Arc<Semaphore>,
}

#[derive(Debug, Default)]
struct Tunnels {
    total: usize,
    /// By user; only users with tunnels, or with a budget, which must not be new for who comes again.
    by_user: HashMap<Option<Arc<str>>, OfUser>,
}

#[derive(Debug)]
struct OfUser {
    tunnels: usize,
    budget: Option<Arc<UserBudget>>,
    lookups: Arc<Semaphore>,
}

/// The permit of one tunnel, which counts until this is dropped.
#[derive(Debug)]
pub(super) struct TunnelPermit {
    user: Option<Arc<str>>,
    budget: Option<Arc<UserBudget>>,
    lookups: Arc<Semaphore>,
    usage: Arc<Usage>,
}

/// The permit of a lookup.
pub(super) struct LookupPermit {
    _of_user: Option<OwnedSemaphorePermit>,
    _of_all: Option<OwnedSemaphorePermit>,
}

impl Default for Usage {
    fn default() -> Self {
        Self {
            tunnels: Mutex::default(),
            new_tunnels: NewTunnels::default(),
            lookups: Arc::new(Semaphore::new(LOOKUPS)),
        }
    }
}

impl TunnelUsage {
    /// Another one, whose lookups of names are limited together with these: for a further proxy of the same process.
    #[must_use]
    pub fn with_its_lookups(&self) -> Self {
        Self(Arc::new(Usage {
            lookups: Arc::clone(&self.0.lookups),
            ..Usage::default()
        }))
    }

    /// Permits a tunnel of `user` within `limits`.
    pub(super) fn permit(
        &self,
        limits: &Limits,
        user: Option<&str>,
    ) -> Result<TunnelPermit, Refusal> {
        let mut tunnels = lock(&self.0.tunnels);
        if tunnels.total >= limits.tunnels {
            return Err(Refusal::Full);
        }
        if tunnels.by_user.len() >= MOST_USERS {
            tunnels.by_user.retain(|_, of_user| !of_user.is_unused());
        }
        let user: Option<Arc<str>> = user.map(Arc::from);
        let of_user = tunnels.by_user.entry(user.clone());
        let of_user = of_user.or_insert_with(|| OfUser {
            tunnels: 0,
            budget: None,
            lookups: Arc::new(Semaphore::new(LOOKUPS_OF_USER)),
        });
        if of_user.tunnels >= limits.tunnels_per_user {
            return Err(Refusal::TooMany);
        }
        let limit = of_user.budget.as_ref().map(|budget| budget.limit());
        if limit.unwrap_or_default() != limits.user {
            of_user.budget = UserBudget::new(limits.user).map(Arc::new);
        }
        of_user.tunnels += 1;
        let (budget, lookups) = (of_user.budget.clone(), Arc::clone(&of_user.lookups));
        tunnels.total += 1;
        drop(tunnels);
        Ok(TunnelPermit {
            user,
            budget,
            lookups,
            usage: Arc::clone(&self.0),
        })
    }

    /// New tunnels by target.
    pub(super) fn new_tunnels(&self) -> &NewTunnels {
        &self.0.new_tunnels
    }
}

impl TunnelPermit {
    /// What its user may pass; `None` without a limit.
    pub(super) fn budget(&self) -> Option<Arc<UserBudget>> {
        self.budget.clone()
    }

    /// Waits until the user may look up a name.
    pub(super) async fn lookup(&self) -> LookupPermit {
        // Neither is ever closed.
        let of_user = Arc::clone(&self.lookups).acquire_owned().await.ok();
        let of_all = Arc::clone(&self.usage.lookups).acquire_owned().await.ok();
        LookupPermit {
            _of_user: of_user,
            _of_all: of_all,
        }
    }
}

impl OfUser {
    /// True if it is as that of a user who is new.
    fn is_unused(&self) -> bool {
        let budget = self.budget.as_ref();
        self.tunnels == 0 && budget.is_none_or(|budget| budget.is_unused())
    }
}

impl Drop for TunnelPermit {
    fn drop(&mut self) {
        let mut tunnels = lock(&self.usage.tunnels);
        tunnels.total -= 1;
        if let Some(of_user) = tunnels.by_user.get_mut(&self.user) {
            of_user.tunnels -= 1;
            if of_user.is_unused() {
                tunnels.by_user.remove(&self.user);
            }
        }
    }
}

fn lock(tunnels: &Mutex<Tunnels>) -> MutexGuard<'_, Tunnels> {
    tunnels.lock().unwrap_or_else(PoisonError::into_inner)
}
