//! An end of the relay: a network namespace, and threads in it.

use std::fmt;
use std::fs::{self, File};
use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::thread::JoinHandle;

use nix::sched::{CloneFlags, setns, unshare};
use tun_rs::SyncDevice;

use super::{TunError, device, named};
use crate::relay::RelayError;

/// A network namespace of this process with one address, reached from the other site only.
#[derive(Clone)]
pub struct Site {
    address: Ipv4Addr,
    /// Keeps the namespace, and is the way in.
    namespace: Arc<File>,
}

impl Site {
    /// Makes a namespace and a device in it with this address.
    pub(super) fn make(address: Ipv4Addr) -> Result<(Self, SyncDevice), TunError> {
        // A thread of its own: the one that calls stays where it is.
        let making = named("tun-site").spawn(move || {
            unshare(CloneFlags::CLONE_NEWNET).map_err(|errno| TunError::Namespace(errno.into()))?;
            let namespace = File::open("/proc/thread-self/ns/net").map_err(TunError::Namespace)?;
            // Only to keep the link free of announcements; where that is refused, they are dropped.
            let _ = fs::write("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1");
            let device = device::open(address).map_err(TunError::Device)?;
            let namespace = Arc::new(namespace);
            Ok((Self { address, namespace }, device))
        });
        let made = making.map_err(RelayError::Start)?.join();
        made.unwrap_or_else(|_| Err(RelayError::Stopped.into()))
    }

    /// The site's address.
    pub fn address(&self) -> Ipv4Addr {
        self.address
    }

    /// Runs `work` in a new thread at this site. Sockets that it makes are there, wherever they are used;
    /// threads and children that it starts are there, too.
    ///
    /// The error of the thread's result means that it could not enter the site, and `work` didn't run.
    pub fn spawn<T, W>(&self, name: &str, work: W) -> io::Result<JoinHandle<io::Result<T>>>
    where
        T: Send + 'static,
        W: FnOnce() -> T + Send + 'static,
    {
        let namespace = Arc::clone(&self.namespace);
        named(name).spawn(move || {
            setns(&*namespace, CloneFlags::CLONE_NEWNET)?;
            Ok(work())
        })
    }
}

impl fmt::Debug for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Site")
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}
