//! Algorithms by name. [`by_name`] knows those of this crate; a [`Catalogue`] can be given others,
//! written by its user, and then serves them in the same way.
//!
//! A *specification* is a name, alone or with parameters: `cubic`, `cubic:beta=0.8,hystart=off`.

use std::fmt;
use std::sync::Arc;

use thiserror::Error;

use crate::bbr::{Bbr1Config, Bbr3Config};
use crate::controller::ControllerFactory;
use crate::copa::CopaConfig;
use crate::cubic::CubicConfig;
use crate::cubic_plus::CubicPlusConfig;
use crate::newreno::NewRenoConfig;
use crate::parameters::{Parameter, ParameterError, Tunable};
use crate::prague::PragueConfig;

/// A specification of which nothing can be made.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
pub enum UnknownController {
    /// No algorithm has that name.
    #[error("unknown congestion controller `{name}`; known are: {known}")]
    Name {
        /// The name asked for.
        name: String,
        /// Those there are, with commas.
        known: String,
    },
    /// The algorithm has no such parameter, or not with such a value.
    #[error("congestion controller `{name}`: {error}")]
    Parameter {
        /// The algorithm.
        name: String,
        /// What is wrong.
        error: ParameterError,
    },
}

type Make =
    dyn Fn(&str) -> Result<Arc<dyn ControllerFactory>, ParameterError> + Send + Sync + 'static;

/// One algorithm of a [`Catalogue`].
#[derive(Clone)]
pub struct Algorithm {
    name: String,
    about: String,
    parameters: Vec<Parameter>,
    make: Arc<Make>,
}

impl Algorithm {
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

impl fmt::Debug for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Algorithm")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// A set of algorithms, selectable by name.
#[derive(Clone, Debug, Default)]
pub struct Catalogue {
    /// In alphabetical order.
    algorithms: Vec<Algorithm>,
}

impl Catalogue {
    /// No algorithm.
    pub fn empty() -> Self {
        Self::default()
    }

    /// Every algorithm of this crate; a new one adds its line here.
    pub fn standard() -> Self {
        let mut all = Self::empty();
        all.add("bbr1", "BBRv1 as in Linux", Bbr1Config::default());
        all.add(
            "bbr1-xquic",
            "BBRv1 tuned for live video",
            Bbr1Config::xquic(),
        );
        all.add("bbr2", "BBRv2 (v2alpha)", Bbr3Config::v2alpha());
        all.add(
            "bbr3",
            "BBRv3 (draft-ietf-ccwg-bbr-06)",
            Bbr3Config::default(),
        );
        all.add("copa", "Copa (NSDI 2018)", CopaConfig::default());
        all.add("cubic", "CUBIC (RFC 9438)", CubicConfig::default());
        all.add(
            "cubic-plus",
            "Cubic+: loss told apart by delay, queues drained",
            CubicPlusConfig::default(),
        );
        all.add(
            "cubic-plus-paper",
            "Cubic+ as its paper has it",
            CubicPlusConfig::paper(),
        );
        all.add("newreno", "NewReno (RFC 9002)", NewRenoConfig::default());
        all.add("prague", "Prague, for L4S queues", PragueConfig::default());
        all
    }

    /// Adds an algorithm, or replaces the one of the same name. Names are lower case, without `:`,
    /// `,` and `=`.
    pub fn add<C>(&mut self, name: &str, about: &str, config: C)
    where
        C: Tunable + ControllerFactory + Clone + 'static,
    {
        let name = name.to_ascii_lowercase();
        let parameters = config.parameters();
        let make = move |settings: &str| {
            let mut config = config.clone();
            config.set_all(settings)?;
            Ok(Arc::new(config) as Arc<dyn ControllerFactory>)
        };
        let algorithm = Algorithm {
            name,
            about: about.to_owned(),
            parameters,
            make: Arc::new(make),
        };
        match self.find(&algorithm.name) {
            Ok(place) => self.algorithms[place] = algorithm,
            Err(place) => self.algorithms.insert(place, algorithm),
        }
    }

    /// The algorithm that `specification` describes. Upper and lower case are the same in names of
    /// algorithms.
    pub fn get(
        &self,
        specification: &str,
    ) -> Result<Arc<dyn ControllerFactory>, UnknownController> {
        let (name, settings) = specification.split_once(':').unwrap_or((specification, ""));
        let name = name.trim().to_ascii_lowercase();
        let place = self.find(&name).map_err(|_| UnknownController::Name {
            name: name.clone(),
            known: self.names().collect::<Vec<_>>().join(", "),
        })?;
        (self.algorithms[place].make)(settings)
            .map_err(|error| UnknownController::Parameter { name, error })
    }

    /// The algorithms, in alphabetical order.
    pub fn algorithms(&self) -> &[Algorithm] {
        &self.algorithms
    }

    /// Their names, in alphabetical order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.algorithms.iter().map(Algorithm::name)
    }

    fn find(&self, name: &str) -> Result<usize, usize> {
        self.algorithms
            .binary_search_by(|algorithm| algorithm.name.as_str().cmp(name))
    }
}

/// The algorithm of this crate that `specification` describes, such as `cubic` or
/// `cubic:beta=0.8`.
pub fn by_name(specification: &str) -> Result<Arc<dyn ControllerFactory>, UnknownController> {
    Catalogue::standard().get(specification)
}

/// The names of the algorithms of this crate, in alphabetical order.
pub fn names() -> Vec<String> {
    Catalogue::standard().names().map(str::to_owned).collect()
}
