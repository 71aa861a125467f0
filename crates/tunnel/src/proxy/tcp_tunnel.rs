//! Tunnels for TCP: CONNECT (RFC 9110, section 9.3.6), within the same policy and limits.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};
use swiftwater_http::web::upgrade::UpgradedStream;
use tokio::io::copy_bidirectional;
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::metered::Metered;
use super::refusal::Refusal;

/// Time without data after which the system asks whether the target is still there.
const KEEPALIVE: Duration = Duration::from_secs(60);

/// Connects to the first of the addresses that `permit` admits and that answers, each within `time_limit`.
pub(super) async fn connect(
    addresses: &[SocketAddr],
    permit: impl Fn(SocketAddr) -> Result<(), Refusal>,
    time_limit: Duration,
) -> Result<TcpStream, Refusal> {
    let mut failure = Refusal::Socket(io::ErrorKind::AddrNotAvailable.into());
    for &address in addresses {
        if let Err(refusal) = permit(address) {
            failure = refusal;
            continue;
        }
        let connected = timeout(time_limit, TcpStream::connect(address)).await;
        match connected.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())) {
            Ok(stream) => {
                // Neither is needed for it to work.
                let _ = stream.set_nodelay(true);
                let keepalive = TcpKeepalive::new().with_time(KEEPALIVE);
                let _ = SockRef::from(&stream).set_tcp_keepalive(&keepalive);
                return Ok(stream);
            }
            Err(error) => failure = Refusal::Socket(error),
        }
    }
    Err(failure)
}

/// Forwards in both directions until both ends have finished, or one has failed. Then the target does not see an
/// orderly end, but a reset (RFC 9114, section 4.4).
pub(super) async fn forward(
    mut client: Metered<UpgradedStream>,
    mut target: TcpStream,
) -> io::Result<()> {
    let forwarded = copy_bidirectional(&mut client, &mut target).await;
    if forwarded.is_err() {
        let _ = SockRef::from(&target).set_linger(Some(Duration::ZERO));
    }
    forwarded.map(drop)
}
