//! Graceful end of the server: requests in progress may complete.

use tokio::task::JoinSet;
use tokio::time::{Duration, timeout};

use swiftwater_http::tcp::RunningServer;

use crate::exit::{Exit, Failure};
use crate::output;
use crate::runtime::{StopRequests, interrupted};

/// Waits for the requests in progress.
pub(super) async fn finish(
    connections: &mut JoinSet<()>,
    tcp: Option<RunningServer>,
    grace: Duration,
    stops: &mut StopRequests,
) -> Result<(), Failure> {
    let is_idle = connections.is_empty() && tcp.as_ref().is_none_or(|tcp| tcp.connections() == 0);
    if is_idle {
        return Ok(());
    }
    output::note("stopping: running downloads may end (Ctrl-C again stops at once)");
    let cut = async {
        match tcp {
            Some(tcp) => tcp.drain(grace).await.cut,
            None => 0,
        }
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
