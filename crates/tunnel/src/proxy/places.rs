//! How many tunnels there are, in total and by user.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::config::Limits;
use super::refusal::Refusal;
use super::user_budget::UserBudget;

/// The tunnels at present. Clones share the counts.
#[derive(Clone, Debug)]
pub(super) struct Places {
    limits: Limits,
    taken: Arc<Mutex<Taken>>,
}

#[derive(Debug, Default)]
struct Taken {
    total: usize,
    /// By user; only users with tunnels, or with a budget, which must not be new for who comes again.
    by_user: HashMap<Option<Arc<str>>, OfUser>,
}

#[derive(Debug)]
struct OfUser {
    tunnels: usize,
    budget: Option<Arc<UserBudget>>,
}

/// The place of one tunnel, free again when it is dropped.
#[derive(Debug)]
pub(super) struct Place {
    user: Option<Arc<str>>,
    budget: Option<Arc<UserBudget>>,
    taken: Arc<Mutex<Taken>>,
}

impl Places {
    pub(super) fn new(limits: Limits) -> Self {
        Self {
            limits,
            taken: Arc::default(),
        }
    }

    /// A place for a tunnel of `user`.
    pub(super) fn take(&self, user: Option<&str>) -> Result<Place, Refusal> {
        let mut taken = lock(&self.taken);
        if taken.total >= self.limits.tunnels {
            return Err(Refusal::Full);
        }
        let user: Option<Arc<str>> = user.map(Arc::from);
        let limits = self.limits;
        let of_user = taken.by_user.entry(user.clone());
        let of_user = of_user.or_insert_with(|| OfUser {
            tunnels: 0,
            budget: UserBudget::new(limits.user).map(Arc::new),
        });
        if of_user.tunnels >= limits.tunnels_per_user {
            return Err(Refusal::TooMany);
        }
        of_user.tunnels += 1;
        let budget = of_user.budget.clone();
        taken.total += 1;
        drop(taken);
        Ok(Place {
            user,
            budget,
            taken: Arc::clone(&self.taken),
        })
    }
}

impl Place {
    /// What its user may pass; `None` without a limit.
    pub(super) fn budget(&self) -> Option<Arc<UserBudget>> {
        self.budget.clone()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = lock(&self.taken);
        taken.total -= 1;
        if let Some(of_user) = taken.by_user.get_mut(&self.user) {
            of_user.tunnels -= 1;
            if of_user.tunnels == 0 && of_user.budget.is_none() {
                taken.by_user.remove(&self.user);
            }
        }
    }
}

fn lock(taken: &Mutex<Taken>) -> MutexGuard<'_, Taken> {
    taken.lock().unwrap_or_else(PoisonError::into_inner)
}
