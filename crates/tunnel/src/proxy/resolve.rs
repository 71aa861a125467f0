//! Resolution of the names of targets.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::lookup_host;
use tokio::time::timeout;

use super::refusal::Refusal;
use super::usage::TunnelPermit;
use crate::target::{Host, Target};

/// A resolution in progress.
pub type Resolving<'a> = Pin<Box<dyn Future<Output = io::Result<Vec<SocketAddr>>> + Send + 'a>>;

/// Resolves names to addresses.
pub trait Resolve: Send + Sync + 'static {
    /// The addresses of `name`, each with `port`, the preferred one first. It has to end by itself: requests wait for
    /// [`Limits::resolution`](super::Limits) only, but it goes on, and counts among the lookups of the user.
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

/// The addresses of a target, for the tunnel of `permit`.
pub(super) async fn addresses(
    resolver: &Arc<dyn Resolve>,
    target: &Target,
    permit: TunnelPermit,
    time_limit: Duration,
) -> Result<(Vec<SocketAddr>, TunnelPermit), Refusal> {
    match target.host() {
        Host::Address(address) => Ok((vec![SocketAddr::new(*address, target.port())], permit)),
        Host::Name(name) => name_addresses(resolver, name, target.port(), permit, time_limit).await,
    }
}

/// The addresses of a name, each with `port`, for the tunnel of `permit`. That counts as long as the lookup lasts, also
/// when the request is over: the system's lookups can't be interrupted.
pub(super) async fn name_addresses(
    resolver: &Arc<dyn Resolve>,
    name: &str,
    port: u16,
    permit: TunnelPermit,
    time_limit: Duration,
) -> Result<(Vec<SocketAddr>, TunnelPermit), Refusal> {
    let lookup = async {
        let lookup = permit.lookup().await;
        let (resolver, name) = (Arc::clone(resolver), name.to_owned());
        let resolving = tokio::spawn(async move {
            let found = resolver.resolve(&name, port).await;
            drop(lookup);
            (found, permit)
        });
        resolving.await
    };
    let looked_up = timeout(time_limit, lookup).await;
    let looked_up = looked_up.map_err(|_| Refusal::SlowResolution)?;
    let (found, permit) =
        looked_up.map_err(|error| Refusal::Resolution(io::Error::other(error)))?;
    Ok((found.map_err(Refusal::Resolution)?, permit))
}
