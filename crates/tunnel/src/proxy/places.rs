//! How many tunnels there are, in total and by user.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::config::Limits;
use super::refusal::Refusal;

/// The tunnels at present. Clones share the counts.
#[derive(Clone, Debug)]
pub(super) struct Places {
    limits: Limits,
    taken: Arc<Mutex<Taken>>,
}

#[derive(Debug, Default)]
struct Taken {
    total: usize,
    /// By user; only users with tunnels.
    by_user: HashMap<Option<Arc<str>>, usize>,
}

/// The place of one tunnel, free again when it is dropped.
#[derive(Debug)]
pub(super) struct Place {
    user: Option<Arc<str>>,
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
        let of_user = taken.by_user.get(&user).copied().unwrap_or(0);
        if of_user >= self.limits.tunnels_per_user {
            return Err(Refusal::TooMany);
        }
        taken.total += 1;
        taken.by_user.insert(user.clone(), of_user + 1);
        drop(taken);
        Ok(Place {
            user,
            taken: Arc::clone(&self.taken),
        })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = lock(&self.taken);
        taken.total -= 1;
        if let Some(of_user) = taken.by_user.get_mut(&self.user) {
            *of_user -= 1;
            if *of_user == 0 {
                taken.by_user.remove(&self.user);
            }
        }
    }
}

fn lock(taken: &Mutex<Taken>) -> MutexGuard<'_, Taken> {
    taken.lock().unwrap_or_else(PoisonError::into_inner)
}
