//! Algorithms of one family by name.

use std::fmt;
use std::sync::Arc;

use thiserror::Error;

use crate::parameters::{Parameter, ParameterError, Tunable};

/// What the members of a [`Catalogue`] have in common; implemented by a trait object such as
/// `dyn ControllerFactory`.
pub trait Family {
    /// What a member is, for error texts: `congestion controller`.
    const KIND: &'static str;

    /// Adds the members that the family's own crate has.
    fn add_standard(catalogue: &mut Catalogue<Self>);
}

/// A family whose members configurations of type `C` describe.
pub trait MadeFrom<C>: Family {
    /// The member that `config` describes.
    fn made_from(config: C) -> Arc<Self>;
}

/// A specification of which nothing can be made.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
pub enum UnknownEntry {
    /// The catalogue has no entry of that name.
    #[error("unknown {kind} `{name}`; known are: {known}")]
    Name {
        /// What was looked for.
        kind: &'static str,
        /// The name asked for.
        name: String,
        /// Those there are, with commas.
        known: String,
    },
    /// The entry has no such parameter, or not with such a value.
    #[error("{kind} `{name}`: {error}")]
    Parameter {
        /// What was looked for.
        kind: &'static str,
        /// The name of the entry.
        name: String,
        /// What is wrong.
        error: ParameterError,
    },
}

/// A member with its parameters set.
struct Made<F: ?Sized> {
    member: Arc<F>,
    parameters: Vec<Parameter>,
}

type Make<F> = dyn Fn(&str) -> Result<Made<F>, ParameterError> + Send + Sync;

/// One entry of a [`Catalogue`].
pub struct CatalogueEntry<F: ?Sized> {
    name: String,
    about: String,
    parameters: Vec<Parameter>,
    make: Arc<Make<F>>,
}

impl<F: ?Sized> CatalogueEntry<F> {
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

impl<F: ?Sized> Clone for CatalogueEntry<F> {
    fn clone(&self) -> Self {
        Self {
            name: self.name.clone(),
            about: self.about.clone(),
            parameters: self.parameters.clone(),
            make: Arc::clone(&self.make),
        }
    }
}

impl<F: ?Sized> fmt::Debug for CatalogueEntry<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CatalogueEntry")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// Members of the family `F`, selectable by name.
pub struct Catalogue<F: ?Sized> {
    /// In alphabetical order.
    entries: Vec<CatalogueEntry<F>>,
}

impl<F: ?Sized> Clone for Catalogue<F> {
    fn clone(&self) -> Self {
        Self {
            entries: self.entries.clone(),
        }
    }
}

impl<F: ?Sized> Default for Catalogue<F> {
    fn default() -> Self {
        Self::empty()
    }
}

impl<F: ?Sized> fmt::Debug for Catalogue<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.entries).finish()
    }
}

impl<F: ?Sized> Catalogue<F> {
    /// One without entries.
    pub fn empty() -> Self {
        Self {
            entries: Vec::new(),
        }
    }

    /// The entries, in alphabetical order.
    pub fn entries(&self) -> &[CatalogueEntry<F>] {
        &self.entries
    }

    /// Their names, in alphabetical order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().map(CatalogueEntry::name)
    }

    fn find(&self, name: &str) -> Result<usize, usize> {
        self.entries
            .binary_search_by(|entry| entry.name.as_str().cmp(name))
    }
}

impl<F: Family + ?Sized> Catalogue<F> {
    /// One with the members that the family's own crate has.
    pub fn standard() -> Self {
        let mut all = Self::empty();
        F::add_standard(&mut all);
        all
    }

    /// Adds an entry, or replaces the one of the same name. Names are lower case, without `:`, `,`
    /// and `=`.
    pub fn add<C>(&mut self, name: &str, about: &str, config: C)
    where
        C: Tunable + Clone + Send + Sync + 'static,
        F: MadeFrom<C>,
    {
        let parameters = config.parameters();
        let make = move |settings: &str| {
            let mut config = config.clone();
            config.set_all(settings)?;
            Ok(Made {
                parameters: config.parameters(),
                member: F::made_from(config),
            })
        };
        let entry = CatalogueEntry {
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

    /// The member that `specification` describes. Upper and lower case are the same in names of
    /// entries.
    pub fn get(&self, specification: &str) -> Result<Arc<F>, UnknownEntry> {
        self.make(specification).map(|made| made.member)
    }

    /// The parameters of what `specification` describes, with their values.
    pub fn parameters(&self, specification: &str) -> Result<Vec<Parameter>, UnknownEntry> {
        self.make(specification).map(|made| made.parameters)
    }

    fn make(&self, specification: &str) -> Result<Made<F>, UnknownEntry> {
        let (name, settings) = specification.split_once(':').unwrap_or((specification, ""));
        let name = name.trim().to_ascii_lowercase();
        let place = self.find(&name).map_err(|_| UnknownEntry::Name {
            kind: F::KIND,
            name: name.clone(),
            known: self.names().collect::<Vec<_>>().join(", "),
        })?;
        (self.entries[place].make)(settings).map_err(|error| UnknownEntry::Parameter {
            kind: F::KIND,
            name,
            error,
        })
    }
}
