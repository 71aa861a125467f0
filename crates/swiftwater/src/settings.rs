//! What client and server builders have in common.

use std::path::PathBuf;
use std::sync::Arc;

use swiftwater_net::{EndpointOptions, TraceFactory};
use swiftwater_qlog::DirectoryFactory;
use swiftwater_quic::observe::{Both, ObserverFactory};
use swiftwater_quic::wire::is_known;
use swiftwater_quic::{EndpointConfig, TransportConfig};
use swiftwater_tls::{CipherSuite, EndpointSecrets};

use crate::error::BuildError;
use crate::profile::Profile;

/// Behaviour and protocols, whichever the side.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) transport: TransportConfig,
    pub(crate) congestion: Option<String>,
    pub(crate) recovery: Option<String>,
    pub(crate) qlog: Option<PathBuf>,
    pub(crate) alpn: Vec<Vec<u8>>,
    pub(crate) suites: Vec<CipherSuite>,
    pub(crate) key_log: bool,
    /// Versions of QUIC, best first, if not the default ones.
    pub(crate) versions: Option<Vec<u32>>,
    /// The one that clients begin in, if not the first.
    pub(crate) first_version: Option<u32>,
    pub(crate) grease: bool,
}

impl Settings {
    pub(crate) fn new() -> Self {
        Self {
            transport: Profile::default().transport(),
            congestion: None,
            recovery: None,
            qlog: None,
            alpn: Vec::new(),
            suites: CipherSuite::ALL.to_vec(),
            key_log: false,
            versions: None,
            first_version: None,
            grease: true,
        }
    }

    /// The transport configuration, with the controller, policies and logs that were asked for.
    pub(crate) fn transport(&self) -> Result<Arc<TransportConfig>, BuildError> {
        let mut transport = self.transport.clone();
        if let Some(name) = &self.congestion {
            transport.controller = swiftwater_congestion::by_name(name)?;
        }
        if let Some(name) = &self.recovery {
            transport.policies = swiftwater_policies::by_name(name)?;
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

    /// Options of an endpoint with fresh secrets.
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

/// Lets `factory` watch, beside who does already.
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
