//! TCP listeners that the service manager holds and passes (`systemd.socket(5)`): the port stays open while one process
//! takes the place of another, and clients wait instead of being refused.

use std::io;
use std::net::SocketAddr;

use listenfd::ListenFd;
use tokio::net::TcpListener;

/// Listeners that nobody has taken yet.
#[derive(Debug, Default)]
pub(crate) struct InheritedSockets(Vec<(SocketAddr, std::net::TcpListener)>);

impl InheritedSockets {
    /// Those of this process; none if it was not started with any. Sockets of other kinds are left alone.
    pub(crate) fn take() -> Self {
        let mut passed = ListenFd::from_env();
        let listeners = (0..passed.len()).filter_map(|index| {
            let listener = passed.take_tcp_listener(index).ok().flatten()?;
            Some((listener.local_addr().ok()?, listener))
        });
        Self(listeners.collect())
    }

    /// A listener at `address`: one that was passed, or a new one.
    pub(crate) async fn listen(&mut self, address: SocketAddr) -> io::Result<TcpListener> {
        let found = self.0.iter().position(|(at, _)| is_same(*at, address));
        let Some(found) = found else {
            return TcpListener::bind(address).await;
        };
        let (_, listener) = self.0.swap_remove(found);
        listener.set_nonblocking(true)?;
        TcpListener::from_std(listener)
    }
}

/// Whether a listener at `passed` is what `wanted` asks for: all addresses of IPv6 include those of IPv4.
fn is_same(passed: SocketAddr, wanted: SocketAddr) -> bool {
    let is_wider = passed.is_ipv6() && passed.ip().is_unspecified() && wanted.ip().is_unspecified();
    passed.port() == wanted.port() && (passed.ip() == wanted.ip() || is_wider)
}
