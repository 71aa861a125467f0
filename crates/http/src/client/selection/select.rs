//! What is configured of the selection: strategy, arms, models, parameters, state file.

use std::path::PathBuf;

use swiftwater_select::{Arm, Config, Models, Parameters, Selector, Strategy, Transport};

use super::error::SelectError;

/// How a client chooses between TCP and QUIC for each request
/// ([`Builder::protocol`](crate::client::Builder::protocol)).
///
/// ```
/// use swiftwater_http::client::Select;
///
/// let select = Select::wise().arms(["h2".parse()?, "h3".parse()?, "h3:bbr1".parse()?]);
/// # let _ = select;
/// # Ok::<(), swiftwater_http::client::select::ArmError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Select {
    strategy: Strategy,
    arms: Vec<Arm>,
    models: Models,
    parameters: Parameters,
    seed: u64,
    pub(super) state_file: Option<PathBuf>,
}

impl Select {
    /// This strategy, with default parameters and without models.
    pub fn new(strategy: Strategy) -> Self {
        let arms = match &strategy {
            Strategy::Fixed(arm) => vec![arm.clone()],
            _ => vec![Arm::h2(), Arm::h3()],
        };
        Self {
            strategy,
            arms,
            models: Models::none(),
            parameters: Parameters::default(),
            seed: 0,
            state_file: None,
        }
    }

    /// WiseTrans, second version: experiments with the application's own requests decide.
    pub fn wise() -> Self {
        Self::new(Strategy::wise())
    }

    /// WiseTrans, first version: the models' score decides. Without models, the arm that connects first is
    /// kept.
    pub fn wise_v1() -> Self {
        Self::new(Strategy::wise_v1())
    }

    /// `select+`: a contextual bandit that learns online.
    pub fn plus() -> Self {
        Self::new(Strategy::Plus)
    }

    /// The arm that connects first, until it fails or the network changes.
    pub fn race() -> Self {
        Self::new(Strategy::Race)
    }

    /// Always this arm. Over TCP where QUIC is impossible (no hint of HTTP/3, a proxy, `http` URIs), and
    /// where it can't connect.
    pub fn fixed(arm: Arm) -> Self {
        Self::new(Strategy::Fixed(arm))
    }

    /// The arms, at most 8; those over TCP come first whatever their order here, and `h2` is added if none of
    /// them uses TCP. Default: `h2` and `h3`.
    ///
    /// `h2` is TCP with the version that the server chooses, `h1` is TCP with HTTP/1.1. `h3:bbr1` and
    /// `h3+autorec` have QUIC connections of their own, with that congestion controller and recovery policy
    /// instead of those of the client's QUIC configuration.
    #[must_use]
    pub fn arms(mut self, arms: impl IntoIterator<Item = Arm>) -> Self {
        self.arms = arms.into_iter().collect();
        self
    }

    /// The models that score the network. Default: none; experiments then start on new connections and
    /// networks only.
    #[must_use]
    pub fn models(mut self, models: Models) -> Self {
        self.models = models;
        self
    }

    /// The constants of the selection.
    #[must_use]
    pub fn parameters(mut self, parameters: Parameters) -> Self {
        self.parameters = parameters;
        self
    }

    /// Seed of the random numbers of `select+`. Default: 0.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Keeps what was learned in this file: it is read when the client is built, and written at most every
    /// 30 s and when the client is dropped. It is replaced as a whole, never written in part. A file that is
    /// not such a state is reported once, and moved aside (`.refused`) before the first writing.
    #[must_use]
    pub fn state_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.state_file = Some(path.into());
        self
    }

    /// The selector, and its arms in their order: TCP first.
    pub(super) fn selector(&self) -> Result<Selector, SelectError> {
        let mut arms = self.arms.clone();
        if let Strategy::Fixed(arm) = &self.strategy
            && !arms.contains(arm)
        {
            arms.push(arm.clone());
        }
        if !arms.iter().any(|arm| arm.transport() == Transport::Tcp) {
            arms.insert(0, Arm::h2());
        }
        arms.sort_by_key(Arm::transport);
        let config = Config {
            arms,
            strategy: self.strategy.clone(),
            parameters: self.parameters.clone(),
        };
        Ok(Selector::new(config, self.models.clone(), self.seed)?)
    }
}
