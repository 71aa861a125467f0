//! The ways to choose between TCP and QUIC that are compared.

use std::fmt;

use clap::ValueEnum;
use serde::Serialize;
use swiftwater_http::client::select::Models;
use swiftwater_http::client::{Builder, Policy, Select};

use crate::exit::{Exit, Failure};

/// How a client chooses between TCP and QUIC.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Strategy {
    /// TCP only
    Tcp,
    /// QUIC only
    Quic,
    /// What connects first, as long as it is open: the client without a selection
    Race,
    /// WiseTrans, first version: a model decides
    Wise1,
    /// WiseTrans, second version: experiments decide
    Wise,
    /// select+, a bandit that learns online
    Plus,
}

impl Strategy {
    /// A client that chooses so.
    pub fn apply(self, builder: Builder, seed: u64) -> Result<Builder, Failure> {
        let models = || Models::shipped().map_err(|error| Failure::new(Exit::Failure, error));
        let select = match self {
            Self::Tcp => return Ok(builder.policy(Policy::NoHttp3)),
            Self::Quic => return Ok(builder.policy(Policy::Http3Only)),
            Self::Race => return Ok(builder.assume_http3(true)),
            Self::Wise1 => Select::wise_v1().models(models()?),
            Self::Wise => Select::wise().models(models()?),
            Self::Plus => Select::plus(),
        };
        Ok(builder.assume_http3(true).protocol(select.seed(seed)))
    }

    /// Whether it has another protocol to fall back to.
    pub const fn has_both(self) -> bool {
        !matches!(self, Self::Tcp | Self::Quic)
    }

    /// The name in tables.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Tcp => "TCP only",
            Self::Quic => "QUIC only",
            Self::Race => "race",
            Self::Wise1 => "WiseTrans v1",
            Self::Wise => "WiseTrans v2",
            Self::Plus => "select+",
        }
    }
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.title())
    }
}
