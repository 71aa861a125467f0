//! Policies by name. [`by_name`] knows those of this crate; a [`Catalogue`] takes others, written by
//! its user, in addition.
//!
//! A *specification* is a name, alone or with parameters: `autorec`, `autorec:alpha=50ms,beta=0.2`.

use std::fmt;
use std::sync::Arc;

use swiftwater_congestion::{Parameter, ParameterError, Tunable};
use swiftwater_quic::policy::{PolicyFactory, Reinjector};
use thiserror::Error;

use crate::art::ArtConfig;
use crate::autorec::AutoRecConfig;
use crate::autorec_plus::AutoRecPlusConfig;
use crate::single_path::{Arq, ReinjectorFactory, SinglePathPolicies};

/// A specification of which no policies can be made.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
pub enum UnknownPolicies {
    /// There are none of that name.
    #[error("no recovery policies are called `{name}`; known are: {known}")]
    Name {
        /// The name asked for.
        name: String,
        /// Those there are, with commas.
        known: String,
    },
    /// They have no such parameter, or not with such a value.
    #[error("recovery policies `{name}`: {error}")]
    Parameter {
        /// The name asked for.
        name: String,
        /// What is wrong.
        error: ParameterError,
    },
}

/// A system with its parameters set.
struct Made {
    policies: Arc<dyn PolicyFactory>,
    parameters: Vec<Parameter>,
}

type Make = dyn Fn(&str) -> Result<Made, ParameterError> + Send + Sync;

/// One system of a [`Catalogue`].
#[derive(Clone)]
pub struct PolicyEntry {
    name: String,
    about: String,
    parameters: Vec<Parameter>,
    make: Arc<Make>,
}

impl PolicyEntry {
    /// The name by which it is selected.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it is, in one line.
    pub fn about(&self) -> &str {
        &self.about
    }

    /// Its parameters with their defaults.
    pub fn parameters(&self) -> &[Parameter] {
        &self.parameters
    }
}

impl fmt::Debug for PolicyEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PolicyEntry")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// Systems by name.
#[derive(Clone, Debug, Default)]
pub struct Catalogue {
    /// In the order of their names.
    entries: Vec<PolicyEntry>,
}

impl Catalogue {
    /// One without any.
    pub fn empty() -> Self {
        Self::default()
    }

    /// One with those of this crate.
    pub fn standard() -> Self {
        let mut all = Self::empty();
        for name in ["arq", "plain", "single-path"] {
            all.add(name, "plain retransmission of what is lost", Arq);
        }
        all.add(
            "art",
            "ART: copies of retransmissions, as many as the last ones needed",
            ArtConfig::default(),
        );
        all.add(
            "autorec",
            "AutoRec: replicas of lost data, spaced, under tolerances",
            AutoRecConfig::default(),
        );
        all.add(
            "autorec-paper",
            "AutoRec as its paper has it",
            AutoRecConfig::paper(),
        );
        all.add(
            "autorec-live",
            "AutoRec with the tolerances of its deployment",
            AutoRecConfig::live(),
        );
        all.add(
            "autorec-rtc",
            "AutoRec for real-time video, 20 % redundancy",
            AutoRecConfig::rtc(),
        );
        all.add(
            "autorec-rtc-lc",
            "AutoRec for real-time video, 5 % redundancy",
            AutoRecConfig::rtc_lc(),
        );
        all.add(
            "autorec-rtc-hc",
            "AutoRec for real-time video, 50 % redundancy",
            AutoRecConfig::rtc_hc(),
        );
        all.add(
            "autorec+",
            "AutoRec's aims with measured burstiness, a hard budget and deadlines",
            AutoRecPlusConfig::default(),
        );
        all
    }

    /// Adds a system, or replaces the one of the same name. Names are lower case, without `:`, `,`
    /// and `=`.
    pub fn add<C>(&mut self, name: &str, about: &str, config: C)
    where
        C: Tunable + ReinjectorFactory + Clone + 'static,
    {
        let make = move |settings: &str| {
            let mut config = config.clone();
            config.set_all(settings)?;
            Ok(Made {
                parameters: config.parameters(),
                policies: Arc::new(SinglePathPolicies(config)),
            })
        };
        // Empty settings set nothing, so nothing can be wrong with them.
        let parameters = make("").map_or_else(|_| Vec::new(), |made| made.parameters);
        let entry = PolicyEntry {
            name: name.to_ascii_lowercase(),
            about: about.to_owned(),
            parameters,
            make: Arc::new(make),
        };
        match self.find(&entry.name) {
            Ok(place) => self.entries[place] = entry,
            Err(place) => self.entries.insert(place, entry),
        }
    }

    /// The policies that `specification` describes. Upper and lower case are the same in names of
    /// systems.
    pub fn get(&self, specification: &str) -> Result<Arc<dyn PolicyFactory>, UnknownPolicies> {
        self.make(specification).map(|made| made.policies)
    }

    /// The parameters of what `specification` describes, with their values.
    pub fn parameters(&self, specification: &str) -> Result<Vec<Parameter>, UnknownPolicies> {
        self.make(specification).map(|made| made.parameters)
    }

    /// The systems, in alphabetical order.
    pub fn entries(&self) -> &[PolicyEntry] {
        &self.entries
    }

    /// Their names, in alphabetical order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().map(PolicyEntry::name)
    }

    fn make(&self, specification: &str) -> Result<Made, UnknownPolicies> {
        let (name, settings) = specification.split_once(':').unwrap_or((specification, ""));
        let name = name.trim().to_ascii_lowercase();
        let place = self.find(&name).map_err(|_| UnknownPolicies::Name {
            name: name.clone(),
            known: self.names().collect::<Vec<_>>().join(", "),
        })?;
        (self.entries[place].make)(settings)
            .map_err(|error| UnknownPolicies::Parameter { name, error })
    }

    fn find(&self, name: &str) -> Result<usize, usize> {
        self.entries
            .binary_search_by(|entry| entry.name.as_str().cmp(name))
    }
}

/// The policies of this crate that `specification` describes, such as `autorec` or
/// `autorec-paper:alpha=30ms,beta=0.3`.
pub fn by_name(specification: &str) -> Result<Arc<dyn PolicyFactory>, UnknownPolicies> {
    Catalogue::standard().get(specification)
}

/// The re-injector alone, for one connection.
pub fn reinjector_by_name(specification: &str) -> Result<Box<dyn Reinjector>, UnknownPolicies> {
    by_name(specification).map(|policies| policies.reinjector())
}

/// The parameters of what `specification` describes, with their values.
pub fn parameters(specification: &str) -> Result<Vec<Parameter>, UnknownPolicies> {
    Catalogue::standard().parameters(specification)
}

/// The names that [`by_name`] knows, in alphabetical order.
pub fn names() -> Vec<String> {
    Catalogue::standard().names().map(str::to_owned).collect()
}
