//! `tunnel`: a proxy for UDP, TCP and IP, and local addresses and network interfaces that lead through one.
//!
//! - `tunnel serve` is [`super::serve`] with tunnels as the only content.
//! - [`args`]: flags; [`forward`]: what `-L` says.
//! - `connect`: the client; `local_end`: its local addresses; `ip_end`: its network interface; `outage`: when that tries to open
//!   a tunnel again; `report`: what it prints. Connections to the proxy are in [`crate::proxies`].

pub mod args;
mod connect;
pub mod forward;
mod ip_end;
mod local_end;
mod outage;
mod report;

use self::args::{TunnelArgs, TunnelCommand};
use super::serve;
use crate::exit::{Exit, Failure};
use crate::logging::Logging;

pub(crate) async fn run(args: TunnelArgs, logging: &Logging) -> Result<(), Failure> {
    match args.command {
        TunnelCommand::Serve(mut args) => {
            args.tunnels.only_content = args.config.is_none();
            let tunnels = &args.tunnels;
            let is_for_some = tunnels.tokens.is_some() || args.client_ca.is_some();
            if args.config.is_none() && !is_for_some && !tunnels.proxy_for_anyone {
                return Err(Failure::new(
                    Exit::Usage,
                    "who may use the proxy? Give --tokens FILE, --client-ca FILE, or --proxy-for-anyone on a closed network",
                ));
            }
            serve::run(*args, logging).await
        }
        TunnelCommand::Connect(args) => connect::run(*args).await,
    }
}
