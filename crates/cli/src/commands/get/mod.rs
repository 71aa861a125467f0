//! `get`: requests and downloads, many at once.
//!
//! `plan` determines what is fetched and where it is written. `http` runs it over HTTP: `fetch` fetches one URL, `order`
//! builds requests, `response` interprets responses, `redirect` follows redirects, `sink` and `part` write content, `report`
//! prints. `hq` does the same over `hq-interop`, without HTTP.

pub mod args;
pub(crate) mod client;
pub(crate) mod failures;
mod fetch;
mod hq;
mod http;
mod migration;
mod order;
mod pace;
mod part;
mod plan;
mod quic_failures;
mod range;
mod redirect;
mod report;
mod response;
mod retry;
pub(crate) mod selection;
mod sink;
mod transcript;
mod upload;

use self::args::{GetArgs, Protocol};
use crate::cli::TrustArgs;
use crate::exit::{Exit, Failure};
use crate::identity::read_certificates;
use crate::transport::Trust;

/// Runs the command; `verbose` shows requests and responses.
pub(crate) async fn run(args: GetArgs, verbose: bool) -> Result<(), Failure> {
    let is_more = args.selection.is_used()
        || args.migrate_after.is_some()
        || !args.operations.path_operation.is_empty();
    if args.proxy.is_used() && is_more {
        let text = "--proxy carries HTTP/3 that sees one path: leave --select, --migrate-after and --path-operation out";
        return Err(Failure::new(Exit::Usage, text));
    }
    if args.protocol == Protocol::Hq && !args.proxy.is_used() {
        hq::run(args).await
    } else {
        http::run(args, verbose).await
    }
}

/// The certificates that the flags trust.
pub(crate) fn trust(args: &TrustArgs) -> Result<Trust, Failure> {
    match &args.ca {
        _ if args.insecure => Ok(Trust::Anybody),
        Some(path) => read_certificates(path).map(Trust::Roots),
        None => Ok(Trust::Platform),
    }
}
