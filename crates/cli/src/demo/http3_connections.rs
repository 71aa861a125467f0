//! HTTP/3 on the connections of a demonstration's server.

use swiftwater::{Connection, Server};
use swiftwater_http::udp::H3Server;
use tokio::task::JoinSet;

use crate::web_content::Content;

/// Serves `content` on every connection that `server` accepts, each of which `accepted` gets first, until the server is
/// closed.
pub(super) async fn serve_http3(
    server: &Server,
    content: Content,
    mut accepted: impl FnMut(&Connection),
) {
    let http = H3Server::default();
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            connection = server.accept() => {
                let Some(connection) = connection else { return };
                accepted(&connection);
                let (http, content) = (http.clone(), content.clone());
                connections.spawn(async move {
                    if let Err(error) = http.serve(connection, content).await {
                        tracing::info!(%error, "a connection failed");
                    }
                });
            }
            Some(_) = connections.join_next() => {}
        }
    }
}
