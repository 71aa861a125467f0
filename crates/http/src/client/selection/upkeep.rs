//! What is due without a request: time limits of the selector, idle connections of arms that lost, and the
//! writing of the state file.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use swiftwater_select::Warm;
use swiftwater_units::Instant;
use tokio::time::sleep_until;

use super::chooser::{Core, Place, Selection, since_epoch};
use crate::client::state::lock;

/// Least time between two writings of the state file.
const SAVE_INTERVAL: Duration = Duration::from_secs(30);

/// Least time between two rounds.
const REST: Duration = Duration::from_millis(1);

/// Starts the task, which ends when the selection is dropped.
pub(super) fn start(selection: &Arc<Selection>) {
    let weak = Arc::downgrade(selection);
    let wake = Arc::clone(&selection.wake);
    tokio::spawn(async move {
        while let Some(selection) = weak.upgrade() {
            let due = selection.keep_up();
            let due = due.map(|due| selection.tokio_time(due));
            drop(selection);
            let sleep = async {
                match due {
                    Some(due) => sleep_until(due).await,
                    None => pending().await,
                }
            };
            tokio::select! {
                () = wake.notified() => {}
                () = sleep => {}
            }
        }
    });
}

impl Selection {
    /// Does what is due, and returns when the next round is due.
    fn keep_up(self: &Arc<Self>) -> Option<Instant> {
        let now = self.now();
        let mut core = lock(&self.core);
        let core = &mut *core;
        if core.selector.next_timeout().is_some_and(|due| due <= now) {
            core.selector.on_timeout(now);
        }
        self.drain(core);
        while let Some((network, origin)) = core.checks.take_due(now) {
            self.close_losers(core, Place { network, origin }, now);
        }
        let mut save_at = None;
        if self.file.is_some() && core.changed {
            let at = core.saved + SAVE_INTERVAL;
            if at <= now {
                core.saved = now;
                let selection = Arc::clone(self);
                tokio::task::spawn_blocking(move || selection.save_or_log());
            } else {
                save_at = Some(at);
            }
        }
        let first_check = core.checks.next();
        let next = [core.selector.next_timeout(), first_check, save_at];
        let next = next.into_iter().flatten().min()?;
        Some(next.max(now + REST))
    }

    /// Closes the connections of arms that are not in use any more.
    fn close_losers(&self, core: &mut Core, place: Place, now: Instant) {
        let Place { network, origin } = place;
        let Some(name) = core.names.get(&origin).cloned() else {
            return;
        };
        if core.network != Some(network) {
            // The connections are those of the present network.
            return;
        }
        for arm in &self.arms {
            match core.selector.warm(now, network, origin, &arm.arm) {
                Warm::InUse => {}
                Warm::For(Duration::ZERO) => {
                    tracing::debug!(origin = %name, arm = %arm.arm, "closing idle connections");
                    arm.drop_connections(&name);
                }
                Warm::For(left) => {
                    core.checks.set((network, origin), Some(now + left));
                }
            }
        }
    }

    /// Writes the state file if there is one and something was learned since the last time.
    pub(in crate::client) fn save(&self) -> std::io::Result<()> {
        let Some(file) = &self.file else {
            return Ok(());
        };
        let text = {
            let mut core = lock(&self.core);
            if !std::mem::take(&mut core.changed) {
                return Ok(());
            }
            core.selector.snapshot(self.now(), since_epoch())
        };
        let saved = file.save(&text);
        if saved.is_err() {
            lock(&self.core).changed = true;
        }
        saved
    }

    fn save_or_log(&self) {
        if let Err(error) = self.save() {
            let file = self.file.as_ref().map(|file| file.path().display());
            tracing::warn!(file = ?file, "the state of the selection was not written: {error}");
        }
    }
}

impl Drop for Selection {
    fn drop(&mut self) {
        self.save_or_log();
        self.wake.notify_one();
    }
}
