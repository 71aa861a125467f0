//! Swiftwater's HTTP/3 server and client for `interop/run`, on the public API only: one end of its
//! HTTP cases.
//!
//!     http_peer h3-server --listen ADDR --cert FILE --key FILE [--zero-rtt]
//!     http_peer h3-client --connect ADDR --ca FILE --case NAME
//!
//! The foreign programs have the same command line, and both ends the same contract: see
//! `interop/README.md`. The client prints one JSON object, and exits with 1 if something went wrong.

mod client;
mod content;
mod server;

use std::collections::BTreeMap;
use std::error::Error;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;

use rustls::crypto::aws_lc_rs;
use swiftwater_net::EndpointOptions;
use swiftwater_net::quic::EndpointConfig;
use swiftwater_tls::EndpointSecrets;

const USAGE: &str = "usage: http_peer h3-server --listen ADDR --cert FILE --key FILE [--zero-rtt]
       http_peer h3-client --connect ADDR --ca FILE --case NAME";

/// Whatever ends the program.
pub(crate) type AnyError = Box<dyn Error + Send + Sync>;

/// Options by name; a flag's value is empty.
pub(crate) struct Arguments(BTreeMap<String, String>);

impl Arguments {
    fn parse(mut words: impl Iterator<Item = String>) -> Option<Self> {
        let mut found = BTreeMap::new();
        while let Some(word) = words.next() {
            let name = word.strip_prefix("--")?.to_owned();
            let value = if name == "zero-rtt" {
                String::new()
            } else {
                words.next()?
            };
            found.insert(name, value);
        }
        Some(Self(found))
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    pub(crate) fn text(&self, name: &str) -> Result<&str, AnyError> {
        let value = self.0.get(name);
        value.map(String::as_str).ok_or_else(|| USAGE.into())
    }

    pub(crate) fn address(&self, name: &str) -> Result<SocketAddr, AnyError> {
        Ok(self.text(name)?.parse()?)
    }

    pub(crate) fn file(&self, name: &str) -> Result<Vec<u8>, AnyError> {
        let path = self.text(name)?;
        std::fs::read(path).map_err(|error| format!("{path}: {error}").into())
    }
}

/// Options of an endpoint with fresh secrets.
pub(crate) fn endpoint_options() -> Result<EndpointOptions, AnyError> {
    let mut seed = [0; 32];
    let random = aws_lc_rs::default_provider().secure_random;
    random.fill(&mut seed).map_err(|_| "no randomness")?;
    let secrets = Arc::new(EndpointSecrets::random());
    Ok(EndpointOptions::new(EndpointConfig::new(secrets), seed))
}

async fn run() -> Result<(), AnyError> {
    let mut words = std::env::args().skip(1);
    let role = words.next().ok_or(USAGE)?;
    let arguments = Arguments::parse(words).ok_or(USAGE)?;
    match role.as_str() {
        "h3-server" => server::run(&arguments).await,
        "h3-client" => client::run(&arguments).await,
        _ => Err(USAGE.into()),
    }
}

#[tokio::main]
async fn main() -> ExitCode {
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
