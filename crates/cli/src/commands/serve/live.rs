//! State that may change while the server runs: content, reports, certificates.

use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use swiftwater::tls::ClientAuthorities;
use swiftwater_acme::Progress;
use swiftwater_http::tcp::Certificates;
use tokio::sync::watch;

use super::args::ServeArgs;
use super::certificates::{StateFiles, certificates, identities};
use super::client_authorities::authorities;
use super::config::{Config, effective};
use super::content::{Shared, content};
use super::log;
use super::metrics::{count_certificate, count_reload};
use super::reports::Reports;
use crate::exit::{Exit, Failure, plain_io_error};
use crate::logging::Logging;
use crate::web_content::Content;

/// Content for new requests.
#[derive(Clone)]
pub(super) struct Live {
    pub(super) content: Content,
    pub(super) reports: Reports,
}

impl Live {
    /// Applies `config`. The access log is reopened.
    pub(super) fn new(config: &Config, shared: &Shared, json: bool) -> Result<Self, Failure> {
        let reports = Reports::open(&config.log, json).map_err(|error| {
            let path = config.log.access.as_deref().unwrap_or("-".as_ref());
            access_log_failure(path, &error)
        })?;
        Ok(Self {
            content: content(config, shared, &reports)?,
            reports,
        })
    }
}

/// Adds the path of the access log to an error.
pub(super) fn access_log_failure(path: &Path, error: &io::Error) -> Failure {
    let (path, why) = (path.display(), plain_io_error(error));
    Failure::new(Exit::LocalFile, format_args!("access log {path}: {why}"))
}

/// Reloads the configuration on request.
pub(super) struct Reloader<'a> {
    pub(super) args: &'a ServeArgs,
    /// The configuration at the start of the server.
    pub(super) started: &'a Config,
    /// The configuration in use: that of the start, or of the last reload that succeeded.
    pub(super) applied: Mutex<Config>,
    pub(super) live: watch::Sender<Live>,
    pub(super) certificates: Arc<Certificates>,
    /// Whose certificates clients may have, if they are asked for one.
    pub(super) clients: Option<Arc<ClientAuthorities>>,
    pub(super) logging: &'a Logging,
    pub(super) shared: Shared,
}

impl Reloader<'_> {
    /// Reads the file and the certificates. After an error everything stays unchanged. Blocks for
    /// the time of reading a few small files.
    pub(super) fn reload(&self) {
        let json = self.args.json;
        match self.try_reload() {
            Ok(config) => {
                count_reload(true);
                let reports = self.live.borrow().reports.clone();
                log::announce_reload(&needs_restart(self.started, &config), &reports, json);
            }
            Err(failure) => {
                count_reload(false);
                let reports = self.live.borrow().reports.clone();
                log::announce_failed_reload(&failure, &reports);
            }
        }
    }

    /// The certificate of the authority was renewed, or could not be.
    pub(super) fn on_progress(&self, progress: &Progress<'_>) {
        let reports = self.live.borrow().reports.clone();
        match progress {
            Progress::Obtained(certificate) => {
                // Changes of the file wait for a reload.
                let applied = self.applied.lock().unwrap_or_else(PoisonError::into_inner);
                let next =
                    identities(&applied, StateFiles::Created).and_then(|all| certificates(&all));
                drop(applied);
                match next {
                    Ok(next) => self.certificates.replace_with(&next),
                    Err(failure) => return log::announce_failed_reload(&failure, &reports),
                }
                count_certificate(true);
                log::announce_obtained(certificate, &reports, self.args.json);
            }
            Progress::Failed { error, again_in } => {
                count_certificate(false);
                log::announce_failed_certificate(error, *again_in, &reports);
            }
        }
    }

    fn try_reload(&self) -> Result<Config, Failure> {
        let config = effective(self.args)?;
        let next = certificates(&identities(&config, StateFiles::Created)?)?;
        let clients = authorities(&config)?;
        let live = Live::new(&config, &self.shared, self.args.json)?;
        // No step can fail from here on.
        self.certificates.replace_with(&next);
        if let (Some(used), Some(next)) = (&self.clients, &clients) {
            used.replace_with(next);
        }
        self.live.send_replace(live);
        self.logging
            .set_level(config.log.level.map(super::args::LogLevel::as_str));
        let mut applied = self.applied.lock().unwrap_or_else(PoisonError::into_inner);
        applied.clone_from(&config);
        drop(applied);
        Ok(config)
    }
}

/// Changed settings that can't be applied without a restart.
fn needs_restart(started: &Config, now: &Config) -> Vec<&'static str> {
    let differs = [
        ("listen", started.listen != now.listen),
        ("tcp", started.tcp != now.tcp),
        (
            "preferred_addresses",
            started.preferred_addresses != now.preferred_addresses,
        ),
        ("also_listen", started.also_listen != now.also_listen),
        ("hq", started.hq != now.hq),
        ("workers", started.workers != now.workers),
        ("grace", started.grace != now.grace),
        (
            "tls.min_version",
            started.tls.min_version != now.tls.min_version,
        ),
        // Other authorities, but not whether there are some.
        (
            "tls.client_ca",
            started.tls.client_ca.is_some() != now.tls.client_ca.is_some(),
        ),
        ("limits", started.limits != now.limits),
        ("acme", started.acme != now.acme),
        ("http", started.http != now.http),
        ("metrics", started.metrics != now.metrics),
        ("transport", started.transport != now.transport),
    ];
    let differing = differs.into_iter().filter(|(_, differs)| *differs);
    differing.map(|(name, _)| name).collect()
}
