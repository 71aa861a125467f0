//! The addresses of this host, as they come and go.

use std::io;
use std::net::IpAddr;
use std::time::Duration;

use if_addrs::{IfOperStatus, Interface, get_if_addrs};

/// How long a change is given to be followed by others: an interface that comes up gets several addresses.
const SETTLING: Duration = Duration::from_millis(50);

/// Between two looks where the system announces no changes.
const POLL: Duration = Duration::from_secs(1);

/// An address of an interface of this host.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct InterfaceAddress {
    /// The interface's name, such as `eth0`.
    pub interface: String,
    /// The address.
    pub ip: IpAddr,
    /// The interface's number for a link-local IPv6 address (RFC 4007, section 11); otherwise 0.
    pub scope_id: u32,
}

impl InterfaceAddress {
    fn of(interface: Interface) -> Option<Self> {
        use IfOperStatus::{Down, LowerLayerDown, NotPresent};
        if matches!(interface.oper_status, Down | LowerLayerDown | NotPresent) {
            return None;
        }
        let ip = interface.ip();
        let is_scoped = ip.is_ipv6() && interface.is_link_local();
        Some(Self {
            scope_id: interface.index.filter(|_| is_scoped).unwrap_or(0),
            interface: interface.name,
            ip,
        })
    }

    /// True if `ip` is the address, or if both are IPv4 loopback addresses: a host has all of those (RFC 1122,
    /// section 3.2.1.3), though systems list one.
    pub fn has(&self, ip: IpAddr) -> bool {
        self.ip == ip
            || (self.ip.is_ipv4() && ip.is_ipv4() && self.ip.is_loopback() && ip.is_loopback())
    }
}

/// Follows the addresses of this host. On Linux the system announces changes; elsewhere it is asked once a
/// second.
pub struct InterfaceWatch {
    current: Vec<InterfaceAddress>,
    announcements: Option<announcements::Announcements>,
}

impl InterfaceWatch {
    /// Starts with the addresses of now. Must be called inside a tokio runtime.
    pub fn start() -> Self {
        // Before the addresses are read, so that no change falls between.
        let announcements = announcements::Announcements::subscribe();
        Self {
            current: interface_addresses().unwrap_or_default(),
            announcements,
        }
    }

    /// The addresses as they were seen last.
    pub fn current(&self) -> &[InterfaceAddress] {
        &self.current
    }

    /// Waits until the addresses have changed. May be dropped and called again at any time.
    pub async fn changed(&mut self) -> &[InterfaceAddress] {
        loop {
            match &mut self.announcements {
                Some(announcements) => match announcements.next().await {
                    Ok(()) => tokio::time::sleep(SETTLING).await,
                    Err(error) => {
                        tracing::debug!(%error, "changes of interfaces are no longer announced");
                        self.announcements = None;
                    }
                },
                None => tokio::time::sleep(POLL).await,
            }
            match interface_addresses() {
                Ok(now) if now != self.current => {
                    self.current = now;
                    return &self.current;
                }
                Ok(_) => {}
                Err(error) => tracing::debug!(%error, "the interfaces can't be read"),
            }
        }
    }
}

impl std::fmt::Debug for InterfaceWatch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("InterfaceWatch")
            .field("current", &self.current)
            .finish_non_exhaustive()
    }
}

/// The addresses of interfaces that are up, in the order of their names.
///
/// # Errors
///
/// The system's.
pub fn interface_addresses() -> io::Result<Vec<InterfaceAddress>> {
    let interfaces = get_if_addrs()?.into_iter();
    let mut all: Vec<_> = interfaces.filter_map(InterfaceAddress::of).collect();
    all.sort();
    Ok(all)
}

/// Announcements of the kernel over netlink (RFC 3549).
#[cfg(target_os = "linux")]
mod announcements {
    use std::io;

    use netlink_sys::protocols::NETLINK_ROUTE;
    use netlink_sys::{AsyncSocket, AsyncSocketExt, SocketAddr, TokioSocket};

    /// `RTMGRP_LINK`, `RTMGRP_IPV4_IFADDR` and `RTMGRP_IPV6_IFADDR` of `rtnetlink(7)`.
    const GROUPS: u32 = 0x1 | 0x10 | 0x100;

    pub(super) struct Announcements(TokioSocket);

    impl Announcements {
        /// `None` if the system refuses.
        pub(super) fn subscribe() -> Option<Self> {
            let mut socket = TokioSocket::new(NETLINK_ROUTE).ok()?;
            let bound = socket.socket_mut().bind(&SocketAddr::new(0, GROUPS));
            bound.ok().map(|()| Self(socket))
        }

        /// Something has changed. What it was is of no interest: the addresses are read anew.
        pub(super) async fn next(&mut self) -> io::Result<()> {
            match self.0.recv_from_full().await {
                Ok(_) => Ok(()),
                // Too many at once: some are lost, and there was a change.
                Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => Ok(()),
                Err(error) => Err(error),
            }
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod announcements {
    use std::io;

    pub(super) enum Announcements {}

    impl Announcements {
        pub(super) fn subscribe() -> Option<Self> {
            None
        }

        pub(super) async fn next(&mut self) -> io::Result<()> {
            match *self {}
        }
    }
}
