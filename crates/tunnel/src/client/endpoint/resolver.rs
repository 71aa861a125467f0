//! Names that the proxy resolves.

use std::io;
use std::sync::Arc;

use swiftwater_http::client::{Resolved, Resolver, Resolving};

use super::carrier::TunnelCarrier;
use crate::target::Target;

/// Answers with addresses that stand for names at the endpoints of a carrier; the proxy resolves them.
#[derive(Clone, Debug)]
pub struct ProxyResolver {
    carrier: Arc<TunnelCarrier>,
}

impl ProxyResolver {
    /// For clients over `carrier` only.
    pub fn new(carrier: Arc<TunnelCarrier>) -> Self {
        Self { carrier }
    }
}

impl Resolver for ProxyResolver {
    fn resolve<'a>(&'a self, host: &'a str, port: u16) -> Resolving<'a> {
        Box::pin(async move {
            let target = Target::new(host, port)
                .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
            Ok(Resolved {
                addresses: vec![self.carrier.address_of(&target).ip()],
                https: None,
            })
        })
    }
}
