//! Graceful end of the server: requests in progress may complete.

use tokio::task::JoinSet;
use tokio::time::{Duration, timeout};

use swiftwater_http::tcp::RunningServer;

use crate::exit::{Exit, Failure};
use crate::output;
use crate::runtime::{StopRequests, interrupted};

/// How long requests without TLS may take to end.
const PLAIN_GRACE: Duration = Duration::from_secs(2);

/// Waits for the requests in progress over QUIC, and over TCP with TLS and without, whose listeners accept no more.
pub(super) async fn finish(
    connections: &mut JoinSet<()>,
    (secure, plain): (Option<RunningServer>, Option<RunningServer>),
    grace: Duration,
    stops: &mut StopRequests,
) -> Result<(), Failure> {
    let has_none =
        |tcp: &Option<RunningServer>| tcp.as_ref().is_none_or(|it| it.connections() == 0);
    if !(connections.is_empty() && has_none(&secure) && has_none(&plain)) {
        output::note("stopping: running downloads may end (Ctrl-C again stops at once)");
    }
    // Also without connections: one may have been accepted just now.
    let cut = async {
        // Redirections take no time.
        let plain = drain(plain, grace.min(PLAIN_GRACE));
        let (cut, _) = tokio::join!(drain(secure, grace), plain);
        cut
    };
    let all = timeout(grace, async {
        while connections.join_next().await.is_some() {}
    });
    let unfinished = || Failure::new(Exit::Interrupted, "stopped before all downloads had ended");
    tokio::select! {
        (ended, cut) = async { tokio::join!(all, cut) } => match ended {
            Ok(()) if cut == 0 => Ok(()),
            _ => Err(unfinished()),
        },
        stopped = stops.next() => {
            stopped?;
            Err(interrupted())
        }
    }
}

/// How many connections had to be cut.
async fn drain(tcp: Option<RunningServer>, grace: Duration) -> usize {
    match tcp {
        Some(tcp) => tcp.drain(grace).await.cut,
        None => 0,
    }
}
