//! Serves accepted QUIC connections, by the negotiated protocol.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use http::Request;
use swiftwater::Connection;
use swiftwater_http::udp::H3Server;
use swiftwater_http::web::body::Body;
use tokio::sync::watch;
use tower::{ServiceExt, service_fn};

use super::connection_log::End;
use super::live::Live;
use super::metrics::count_quic;
use crate::hq;
use crate::hq::service::serve_connection;
use crate::multipath::{PathOperation, RunningOperations};
use crate::web_content::Content;

/// Configuration and content for every QUIC connection.
#[derive(Clone)]
pub(super) struct ConnectionService {
    pub(super) http3: H3Server,
    pub(super) content: Content,
    pub(super) live: watch::Receiver<Live>,
    pub(super) draining: watch::Receiver<bool>,
    /// How long a client may leave a response over `hq-interop` unread.
    pub(super) send_timeout: Duration,
    /// What is done to the paths of each connection.
    pub(super) path_operations: Vec<PathOperation>,
}

impl ConnectionService {
    /// Serves a connection to its end, and reports the result.
    pub(super) async fn serve(self, connection: Connection) {
        let begin = Instant::now();
        let peer = connection.remote_address();
        let alpn = connection.alpn();
        let handle = connection.clone();
        let _operations = RunningOperations::start(&self.path_operations, &connection);
        let live = self.live.clone();
        let requests = Arc::new(AtomicU64::new(0));
        let error = if alpn.as_deref() == Some(hq::ALPN) {
            self.serve_files(connection, Arc::clone(&requests)).await;
            None
        } else {
            self.serve_http3(connection, Arc::clone(&requests)).await
        };
        let stats = handle.stats();
        // Early data arrive before ALPN is confirmed.
        let alpn = alpn.or_else(|| handle.alpn());
        let requests = requests.load(Ordering::Relaxed);
        let elapsed = begin.elapsed();
        let end = End::of_quic(peer, alpn.as_deref(), requests, elapsed, error, &stats);
        count_quic(&end, &stats);
        live.borrow().reports.connection(&end);
    }

    async fn serve_http3(self, connection: Connection, requests: Arc<AtomicU64>) -> Option<String> {
        let content = counted(self.content, requests);
        let served = self.http3.serve(connection, content).await;
        served.err().map(|error| error.to_string())
    }

    /// Over `hq-interop`: the same content, except upstreams.
    async fn serve_files(self, connection: Connection, requests: Arc<AtomicU64>) {
        let content = counted(self.content, requests);
        serve_connection(connection, content, self.draining, self.send_timeout).await;
    }
}

/// `content`, with requests counted.
fn counted(content: Content, requests: Arc<AtomicU64>) -> Content {
    Content::new(service_fn(move |request: Request<Body>| {
        requests.fetch_add(1, Ordering::Relaxed);
        content.clone().oneshot(request)
    }))
}
