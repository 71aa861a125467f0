//! `--migrate-after` over HTTP/3: each server's connection migrates once.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use swiftwater::Endpoint;
use swiftwater_http::client::{HttpClient, Origin};
use tokio::task::JoinSet;

use crate::migrate::{MigrateAfter, Odometer, migrate};
use crate::progress::Progress;

/// Migrations that are planned or in progress.
pub(super) struct Migrations {
    plan: MigrateAfter,
    endpoint: Endpoint,
    progress: Progress,
    verbose: bool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    odometers: BTreeMap<Origin, Arc<Odometer>>,
    movers: JoinSet<()>,
}

impl Migrations {
    /// Results are printed on `progress`: failures always, success if `verbose`.
    pub(super) fn new(
        plan: MigrateAfter,
        endpoint: Endpoint,
        progress: Progress,
        verbose: bool,
    ) -> Self {
        Self {
            plan,
            endpoint,
            progress,
            verbose,
            state: Mutex::default(),
        }
    }

    /// Counts content from `origin`; its HTTP/3 connection will migrate.
    pub(super) fn odometer(&self, client: &HttpClient, origin: &Origin) -> Option<Arc<Odometer>> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(odometer) = state.odometers.get(origin) {
            return Some(Arc::clone(odometer));
        }
        let connection = client.http3_connection(origin)?;
        let odometer = Odometer::new(self.plan.bytes);
        let moved = migrate(
            self.endpoint.clone(),
            connection,
            Arc::clone(&odometer),
            self.plan.to,
        );
        let (progress, verbose) = (self.progress.clone(), self.verbose);
        state.movers.spawn(async move {
            match moved.await {
                Ok(text) if verbose => progress.note(&format!("* {text}")),
                Ok(_) => {}
                Err(text) => progress.note(&format!("warning: {text}")),
            }
        });
        state
            .odometers
            .insert(origin.clone(), Arc::clone(&odometer));
        Some(odometer)
    }

    /// Waits for the migrations in progress: their result must be reported.
    pub(super) async fn finish(&self) {
        let (begun, mut movers) = {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            let movers = std::mem::take(&mut state.movers);
            let mut odometers = state.odometers.values();
            (odometers.all(|odometer| odometer.has_reached()), movers)
        };
        if begun {
            while movers.join_next().await.is_some() {}
        }
    }
}
