//! Resolution of the names of targets.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::time::Duration;

use tokio::net::lookup_host;
use tokio::time::timeout;

use super::refusal::Refusal;
use crate::target::{Host, Target};

/// A resolution in progress.
pub type Resolving<'a> = Pin<Box<dyn Future<Output = io::Result<Vec<SocketAddr>>> + Send + 'a>>;

/// Resolves names to addresses.
pub trait Resolve: Send + Sync + 'static {
    /// The addresses of `name`, each with `port`, the preferred one first.
    fn resolve<'a>(&'a self, name: &'a str, port: u16) -> Resolving<'a>;
}

/// The system's resolver.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemResolver;

impl Resolve for SystemResolver {
    fn resolve<'a>(&'a self, name: &'a str, port: u16) -> Resolving<'a> {
        Box::pin(async move { Ok(lookup_host((name, port)).await?.collect()) })
    }
}

/// The addresses of a target.
pub(super) async fn addresses(
    resolver: &dyn Resolve,
    target: &Target,
    time_limit: Duration,
) -> Result<Vec<SocketAddr>, Refusal> {
    match target.host() {
        Host::Address(address) => Ok(vec![SocketAddr::new(*address, target.port())]),
        Host::Name(name) => name_addresses(resolver, name, target.port(), time_limit).await,
    }
}

/// The addresses of a name, each with `port`.
pub(super) async fn name_addresses(
    resolver: &dyn Resolve,
    name: &str,
    port: u16,
    time_limit: Duration,
) -> Result<Vec<SocketAddr>, Refusal> {
    let resolved = timeout(time_limit, resolver.resolve(name, port)).await;
    let resolved = resolved.map_err(|_| Refusal::SlowResolution)?;
    resolved.map_err(Refusal::Resolution)
}
