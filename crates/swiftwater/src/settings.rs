//! Settings common to client and server builders.

use std::path::PathBuf;
use std::sync::Arc;

use swiftwater_net::{EndpointOptions, TraceFactory};
use swiftwater_policies::{FeedbackCatalogue, LossJudgeCatalogue, SchedulerCatalogue};
use swiftwater_qlog::DirectoryFactory;
use swiftwater_quic::observe::{Both, ObserverFactory};
use swiftwater_quic::wire::is_known;
use swiftwater_quic::{EndpointConfig, MultipathConfig, TransportConfig};
use swiftwater_tls::{CipherSuite, EndpointSecrets};

use crate::chosen_policies::ChosenPolicies;
use crate::error::BuildError;
use crate::profile::Profile;

/// The scheduler of connections with several paths, unless another one is named.
const DEFAULT_SCHEDULER: &str = "min-rtt";

/// Largest message of the peer's feedback policy that is accepted, bytes: the largest that there is.
const FEEDBACK_SIZE: u8 = 64;

/// Transport and protocols of either role.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) transport: TransportConfig,
    pub(crate) congestion: Option<String>,
    pub(crate) recovery: Option<String>,
    pub(crate) multipath: Option<MultipathConfig>,
    pub(crate) scheduler: Option<String>,
    pub(crate) loss_judge: Option<String>,
    pub(crate) feedback: Option<String>,
    pub(crate) qlog: Option<PathBuf>,
    pub(crate) alpn: Vec<Vec<u8>>,
    pub(crate) suites: Vec<CipherSuite>,
    pub(crate) key_log: bool,
    /// QUIC versions in order of preference, if not the default.
    pub(crate) versions: Option<Vec<u32>>,
    /// The version that clients start with, if not the first.
    pub(crate) first_version: Option<u32>,
    pub(crate) grease: bool,
}

impl Settings {
    pub(crate) fn new() -> Self {
        Self {
            transport: Profile::default().transport(),
            congestion: None,
            recovery: None,
            multipath: None,
            scheduler: None,
            loss_judge: None,
            feedback: None,
            qlog: None,
            alpn: Vec::new(),
            suites: CipherSuite::ALL.to_vec(),
            key_log: false,
            versions: None,
            first_version: None,
            grease: true,
        }
    }

    /// The transport configuration with the chosen controller, policies and logs.
    pub(crate) fn transport(&self) -> Result<Arc<TransportConfig>, BuildError> {
        let mut transport = self.transport.clone();
        if let Some(name) = &self.congestion {
            transport.controller =
                swiftwater_congestion::by_name(name).map_err(BuildError::Congestion)?;
        }
        if let Some(name) = &self.recovery {
            transport.policies =
                swiftwater_policies::by_name(name).map_err(BuildError::Recovery)?;
        }
        if let Some(multipath) = self.multipath {
            transport.multipath = Some(multipath);
        }
        let default = self.multipath.map(|_| DEFAULT_SCHEDULER);
        let scheduler = self.scheduler.as_deref().or(default);
        let scheduler = scheduler.map(|name| SchedulerCatalogue::standard().get(name));
        let loss_judge = self.loss_judge.as_deref();
        let loss_judge = loss_judge.map(|name| LossJudgeCatalogue::standard().get(name));
        let feedback = self.feedback.as_deref();
        let feedback = feedback.map(|name| FeedbackCatalogue::standard().get(name));
        if feedback.is_some() {
            transport.max_feedback_size = FEEDBACK_SIZE;
        }
        if scheduler.is_some() || loss_judge.is_some() || feedback.is_some() {
            transport.policies = Arc::new(ChosenPolicies {
                scheduler: scheduler.transpose().map_err(BuildError::Scheduler)?,
                loss_judge: loss_judge.transpose().map_err(BuildError::LossJudge)?,
                feedback: feedback.transpose().map_err(BuildError::Feedback)?,
                policies: transport.policies,
            });
        }
        if let Some(directory) = &self.qlog {
            let factory = DirectoryFactory::new(directory).map_err(|source| BuildError::Qlog {
                path: directory.clone(),
                source,
            })?;
            let logs: Arc<dyn ObserverFactory> = Arc::new(factory);
            add_observer(&mut transport, logs);
        }
        add_observer(&mut transport, Arc::new(TraceFactory));
        Ok(Arc::new(transport))
    }

    /// Options of an endpoint with new secrets.
    pub(crate) fn endpoint(&self) -> Result<EndpointOptions, BuildError> {
        let secrets = Arc::new(EndpointSecrets::random());
        let mut config = EndpointConfig::new(secrets);
        config.grease = self.grease;
        if let Some(versions) = &self.versions {
            match versions.iter().find(|&&version| !is_known(version)) {
                Some(&unknown) => return Err(BuildError::Version(unknown)),
                None => config.versions.clone_from(versions),
            }
        }
        if let Some(first) = self.first_version {
            if !config.versions.contains(&first) {
                return Err(BuildError::Version(first));
            }
            config.first_version = Some(first);
        }
        Ok(EndpointOptions::new(config, random_seed()))
    }
}

/// Adds the observer `factory` to existing ones.
fn add_observer(transport: &mut TransportConfig, factory: Arc<dyn ObserverFactory>) {
    transport.observer = Some(match transport.observer.take() {
        Some(observer) => Arc::new(Both(observer, factory)),
        None => factory,
    });
}

/// Unpredictable bytes from the system.
fn random_seed() -> [u8; 32] {
    let mut seed = [0; 32];
    rustls::crypto::aws_lc_rs::default_provider()
        .secure_random
        .fill(&mut seed)
        .expect("the generator of aws-lc never fails, it aborts");
    seed
}
