//! What a selector remembers across runs, as JSON: per network the comparisons of its arms and whether UDP
//! is blocked, per origin the selected arm and whether QUIC is blocked. Origins are hashes.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use swiftwater_units::Instant;
use thiserror::Error;

use super::Selector;
use super::origin::{NetworkState, OriginState};
use crate::arm::Arm;
use crate::bandit::Comparisons;
use crate::blocked::{Block, StoredBlock};
use crate::key::{NetworkId, OriginHash};

/// Names the format.
const FORMAT: &str = "swiftwater-select";
/// Version of the format.
const VERSION: u32 = 1;
/// Largest text that is read, bytes.
const MAX_TEXT: usize = 16 << 20;

/// Why a stored state can't be used. Starting anew loses nothing but time.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SnapshotError {
    /// Not JSON, or not of this structure.
    #[error("not the stored state of a selector: {0}")]
    Json(#[from] serde_json::Error),
    /// JSON of something else.
    #[error("not the stored state of a selector: its format is `{0}`")]
    Foreign(String),
    /// Written by another version.
    #[error("the stored state has version {0}; this program reads version 1")]
    Version(u32),
    /// Too long.
    #[error("the stored state has more than 16 MiB")]
    TooLarge,
}

#[derive(Serialize, Deserialize)]
struct Stored {
    format: String,
    version: u32,
    arms: Vec<Arm>,
    networks: BTreeMap<NetworkId, StoredNetwork>,
}

#[derive(Serialize, Deserialize)]
struct StoredNetwork {
    block: StoredBlock,
    comparisons: Comparisons,
    origins: BTreeMap<OriginHash, StoredOrigin>,
}

#[derive(Serialize, Deserialize)]
struct StoredOrigin {
    arm: usize,
    experiments: u64,
    block: StoredBlock,
}

/// The head of a stored state, which is read first.
#[derive(Deserialize)]
struct Head {
    #[serde(default)]
    format: String,
    #[serde(default)]
    version: u32,
}

impl Selector {
    /// The state as JSON. `clock` is the time since the Unix epoch at `now`.
    pub fn snapshot(&self, now: Instant, clock: Duration) -> String {
        let networks = self.networks.iter().map(|(id, state)| {
            let origins = state.origins.iter().map(|(hash, origin)| {
                let stored = StoredOrigin {
                    arm: origin.current,
                    experiments: origin.experiments,
                    block: origin.block.store(now, clock),
                };
                (*hash, stored)
            });
            let stored = StoredNetwork {
                block: state.shared.block.store(now, clock),
                comparisons: state.shared.comparisons.clone(),
                origins: origins.collect(),
            };
            (*id, stored)
        });
        let stored = Stored {
            format: FORMAT.to_owned(),
            version: VERSION,
            arms: self.config.arms.clone(),
            networks: networks.collect(),
        };
        // Numbers, texts and maps by number always have a JSON form.
        serde_json::to_string(&stored).unwrap_or_default()
    }

    /// Takes a stored state over, in addition to what is known; on an error nothing changes. With other arms
    /// than those of the stored state, only blocked UDP is taken over. What exceeds the bounds is left out.
    pub fn restore(
        &mut self,
        now: Instant,
        clock: Duration,
        text: &str,
    ) -> Result<(), SnapshotError> {
        if text.len() > MAX_TEXT {
            return Err(SnapshotError::TooLarge);
        }
        let head: Head = serde_json::from_str(text)?;
        if head.format != FORMAT {
            return Err(SnapshotError::Foreign(
                head.format.chars().take(40).collect(),
            ));
        }
        if head.version != VERSION {
            return Err(SnapshotError::Version(head.version));
        }
        let stored: Stored = serde_json::from_str(text)?;
        let same_arms = stored.arms == self.config.arms;
        let most = self.config.parameters.max_networks as usize;
        for (id, network) in stored.networks {
            if self.networks.len() >= most {
                break;
            }
            let state = self.restored(now, clock, network, same_arms);
            self.networks.entry(id).or_insert(state);
        }
        Ok(())
    }

    fn restored(
        &self,
        now: Instant,
        clock: Duration,
        stored: StoredNetwork,
        same_arms: bool,
    ) -> NetworkState {
        let parameters = &self.config.parameters;
        let block = |block| Block::restore(block, now, clock, parameters);
        let arms = self.config.arms.len();
        let mut state = NetworkState {
            used: now,
            ..NetworkState::default()
        };
        state.shared.block = block(stored.block);
        if same_arms {
            state.shared.comparisons = stored.comparisons.checked(arms);
        }
        let most = parameters.max_origins as usize;
        for (hash, stored) in stored.origins.into_iter().take(most) {
            let mut origin = OriginState::new(now, &self.config);
            origin.block = block(stored.block);
            if same_arms && stored.arm < arms {
                origin.current = stored.arm;
                origin.experiments = stored.experiments;
            }
            state.origins.insert(hash, origin);
        }
        state
    }
}
