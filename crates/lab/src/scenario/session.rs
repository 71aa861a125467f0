//! The keys of `app = "session"`: video over datagrams with a loss protection scheme, run by the
//! driver of `swiftwater_media` instead of the network.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use swiftwater_media::protection::{
    ParseSchemeError, Protector, Scheme, SchemeTables, UnknownPolicy,
};
use swiftwater_media::session::SessionConfig;
use swiftwater_media::source::SourceSpec;
use swiftwater_policies::{ReinjectorCatalogue, ReinjectorFactory};
use swiftwater_quic::policy::Reinjector;

use super::error::Read;
use super::reader::{LONGEST, Reader};
use super::video::{read_deadline, read_source};

/// Keys of the application.
pub(super) const KEYS: &[&str] = &[
    "source",
    "scheme",
    "deadline",
    "pacing",
    "payload",
    "key_frame_after",
    "max_retransmissions",
];

/// Keys of every flow that also apply to a session. `cc` is accepted without effect, so that a
/// sweep may have sessions and other flows.
const COMMON: [&str; 4] = ["name", "app", "cc", "count"];

/// Video over datagrams.
#[derive(Clone, PartialEq)]
pub struct SessionSetup {
    /// Source of frames.
    pub source: SourceSpec,
    /// Loss protection scheme.
    pub scheme: Scheme,
    /// Settings of both ends.
    pub config: SessionConfig,
    tools: Tools,
}

/// Context for creating a scheme; equal schemes have equal contexts.
#[derive(Clone)]
struct Tools {
    tables: Arc<SchemeTables>,
    /// For a scheme that is a policy.
    policy: Option<Arc<dyn ReinjectorFactory>>,
}

impl PartialEq for Tools {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl fmt::Debug for SessionSetup {
    /// Everything that results depend on, including the parameters of a policy; without tables,
    /// which follow from the scheme.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionSetup")
            .field("source", &self.source)
            .field("scheme", &self.scheme)
            .field("config", &self.config)
            .field("policy", &self.tools.policy)
            .finish()
    }
}

impl SessionSetup {
    /// A session. A scheme that is a policy is looked up in `policies`; `tables` are shared by all
    /// sessions that get them.
    pub fn new(
        source: SourceSpec,
        scheme: Scheme,
        config: SessionConfig,
        policies: &ReinjectorCatalogue,
        tables: Arc<SchemeTables>,
    ) -> Result<Self, swiftwater_policies::UnknownEntry> {
        let policy = match &scheme {
            Scheme::Policy(name) => Some(policies.get(name)?),
            _ => None,
        };
        let tools = Tools { tables, policy };
        Ok(Self {
            source,
            scheme,
            config,
            tools,
        })
    }

    /// Creates the scheme for one run.
    pub fn protector(&self) -> Result<Protector, UnknownPolicy> {
        let policy = self.tools.policy.as_ref();
        let resolve =
            |_: &str| -> Option<Box<dyn Reinjector>> { policy.map(|policy| policy.reinjector()) };
        Protector::new(&self.scheme, &self.tools.tables, &resolve)
    }
}

/// Reads the keys.
pub(super) fn read(
    row: &Reader<'_>,
    policies: &ReinjectorCatalogue,
    tables: &Arc<SchemeTables>,
) -> Read<SessionSetup> {
    let entries = row.entries().iter();
    let useless = entries
        .map(|entry| entry.key.as_str())
        .find(|key| !COMMON.contains(key) && !KEYS.contains(key));
    if let Some(key) = useless {
        return Err(row.fault(
            key,
            "a session has its own sender over a single link; leave it out (what repairs losses is \
             its `scheme`)",
        ));
    }
    let text = row.string("scheme")?;
    let expected = "\"rtx\", \"webrtc14\", \"webrtc-now\", \"hairpin:lambda=1e-4\", \
                    \"tambur:ratio=0.25\", \"tambur:one\", or a recovery policy";
    let scheme: Scheme = row
        .need("scheme", text, expected)?
        .parse()
        .map_err(|error: ParseSchemeError| row.fault("scheme", error.to_string()))?;
    let config = read_config(row)?;
    let source = read_source(row)?;
    SessionSetup::new(source, scheme, config, policies, Arc::clone(tables)).map_err(|error| {
        row.fault(
            "scheme",
            format!("{error}; schemes of sessions are rtx, webrtc14, webrtc-now, hairpin, tambur"),
        )
    })
}

fn read_config(row: &Reader<'_>) -> Read<SessionConfig> {
    let default = SessionConfig::default();
    let deadline = match row.string("deadline")? {
        Some("none") => None,
        _ => read_deadline(row)?.or(default.deadline),
    };
    let short = Duration::from_millis(1)..=LONGEST;
    let config = SessionConfig {
        payload_size: match row.whole("payload", 16..=65_000)? {
            Some(bytes) => bytes as u32,
            None => default.payload_size,
        },
        deadline,
        pacing: row.rate("pacing")?,
        key_frame_after: row.duration("key_frame_after", short)?,
        max_retransmissions: row
            .whole("max_retransmissions", 0..=1_000)?
            .map(|most| most as u32),
        ..default
    };
    config
        .validate()
        .map_err(|error| row.fault("payload", error.to_string()))?;
    Ok(config)
}
