//! The server's side: HTTP/3 on accepted connections, HTTP/2 and HTTP/1.1 on a socket.

use std::sync::Arc;

use swiftwater::Connection;
use swiftwater_http::tcp::{Certificates, RunningServer, TcpServer, server_config};
use swiftwater_http::udp::H3Server;
use tokio::net::TcpListener;

use super::service::service;
use crate::exit::{Exit, Failure};
use crate::identity::Identity;
use crate::perf::server::Totals;

/// Answers requests over HTTP/3 until the connection ends.
pub(in crate::perf) async fn serve_quic(
    http3: &H3Server,
    connection: Connection,
    totals: &Arc<Totals>,
) {
    let client = connection.remote_address();
    if let Err(error) = http3.serve(connection, service(Arc::clone(totals))).await {
        tracing::info!(%client, %error, "a connection failed");
    }
}

/// Answers requests over TCP until the returned handle is dropped.
pub(in crate::perf) fn serve_tcp(
    identity: &Identity,
    listener: TcpListener,
) -> Result<RunningServer, Failure> {
    let certificates = Certificates::from_pem(&identity.chain, &identity.key)
        .map_err(|error| Failure::new(Exit::Certificate, error))?;
    let config = server_config(Arc::new(certificates))
        .map_err(|error| Failure::new(Exit::Certificate, error))?;
    Ok(TcpServer::tls(Arc::new(config)).serve(listener, service(Arc::default()))?)
}
