//! The flags of the choice between TCP and QUIC request by request.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use swiftwater::select::{Arm, MAX_FILE, Model, Models, Strategy};
use swiftwater_http::client::Select;

use super::args::Protocol;
use crate::exit::{Exit, Failure};
use crate::files::read_limited;

/// The choice between TCP and QUIC.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Selection")]
pub struct SelectArgs {
    /// Choose between TCP and QUIC for each request by how quickly requests complete: wise (experiments), wise1
    /// (models), plus (a bandit), race (what connects first), or always one arm, such as h2, h3 or h3:bbr1
    #[arg(long, value_name = "STRATEGY|ARM")]
    pub select: Option<Strategy>,

    /// What to choose from: h1, h2, h3, h3 with a congestion controller (h3:bbr1) or a recovery policy
    /// (h3+autorec) [default: h2,h3]
    #[arg(
        long,
        value_name = "ARMS",
        value_delimiter = ',',
        requires = "select",
        hide_short_help = true
    )]
    pub select_arms: Vec<Arm>,

    /// Directory with the models that score the network: tcp.json and quic.json, or .ubj, as XGBoost
    /// writes them
    #[arg(long, value_name = "DIR", requires = "select", hide_short_help = true)]
    pub select_models: Option<PathBuf>,

    /// Read what earlier runs learned from this file, and write it there
    #[arg(long, value_name = "FILE", requires = "select", hide_short_help = true)]
    pub select_state: Option<PathBuf>,
}

impl SelectArgs {
    /// Whether a selection was requested.
    pub(crate) fn is_used(&self) -> bool {
        self.select.is_some()
    }

    /// The selection; `None` if none was requested.
    pub(crate) fn select(&self, protocol: Protocol) -> Result<Option<Select>, Failure> {
        let Some(strategy) = &self.select else {
            return Ok(None);
        };
        if protocol != Protocol::Auto {
            let text = "--select chooses the protocol: leave out --protocol";
            return Err(Failure::new(Exit::Usage, text));
        }
        let mut select = Select::new(strategy.clone());
        if !self.select_arms.is_empty() {
            select = select.arms(self.select_arms.iter().cloned());
        }
        if let Some(directory) = &self.select_models {
            select = select.models(models(directory)?);
        }
        if let Some(file) = &self.select_state {
            select = select.state_file(file);
        }
        Ok(Some(select))
    }
}

/// The models in `directory`, at least one.
fn models(directory: &Path) -> Result<Models, Failure> {
    let models = Models {
        tcp: model(directory, "tcp")?,
        quic: model(directory, "quic")?,
    };
    if models.tcp.is_none() && models.quic.is_none() {
        let text = format!(
            "{}: no tcp.json, tcp.ubj, quic.json or quic.ubj",
            directory.display()
        );
        return Err(Failure::new(Exit::LocalFile, text));
    }
    Ok(models)
}

fn model(directory: &Path, name: &str) -> Result<Option<Arc<Model>>, Failure> {
    for extension in ["json", "ubj"] {
        let path = directory.join(name).with_extension(extension);
        let failed = |error: &dyn std::fmt::Display| {
            Failure::new(Exit::LocalFile, format!("{}: {error}", path.display()))
        };
        match read_limited(&path, MAX_FILE as u64) {
            Ok(file) => {
                let model = Model::read(&file).map_err(|error| failed(&error))?;
                return Ok(Some(Arc::new(model)));
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(failed(&error)),
        }
    }
    Ok(None)
}
