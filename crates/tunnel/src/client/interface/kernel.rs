//! Addresses and routes of the kernel, over rtnetlink.

use std::io;
use std::net::IpAddr;

use futures_util::TryStreamExt;
use rtnetlink::packet_route::address::AddressHeaderFlags;
use rtnetlink::packet_route::route::{RouteAttribute, RouteMessage, RouteScope, RouteType};
use rtnetlink::{Handle, RouteMessageBuilder, new_connection};
use tokio::task::JoinHandle;

use crate::policy::Prefix;

/// The kernel's tables, of the network namespace in which this was made.
pub(super) struct Kernel {
    handle: Handle,
    driving: JoinHandle<()>,
}

impl Kernel {
    pub(super) fn new() -> io::Result<Self> {
        let (connection, handle, _) = new_connection()?;
        let driving = tokio::spawn(connection);
        Ok(Self { handle, driving })
    }

    /// Gives the interface of this index an address.
    pub(super) async fn add_address(&self, index: u32, address: IpAddr) -> io::Result<()> {
        let length = Prefix::single(address).length();
        let mut request = self.handle.address().add(index, address, length);
        // There is no other host on the link that may have it.
        request.message_mut().header.flags |= AddressHeaderFlags::Nodad;
        request.execute().await.map_err(io_error)
    }

    /// Takes the address from the interface.
    pub(super) async fn remove_address(&self, index: u32, address: IpAddr) -> io::Result<()> {
        let length = Prefix::single(address).length();
        let mut request = self.handle.address().add(index, address, length);
        let message = request.message_mut().clone();
        let removed = self.handle.address().del(message).execute().await;
        removed.map_err(io_error)
    }

    /// Routes a prefix to the interface of this index. Fails if there is such a route.
    pub(super) async fn add_route(&self, index: u32, prefix: Prefix) -> io::Result<()> {
        let route = route_to(index, prefix)?;
        let added = self.handle.route().add(route).execute().await;
        added.map_err(io_error)
    }

    /// Removes such a route.
    pub(super) async fn remove_route(&self, index: u32, prefix: Prefix) -> io::Result<()> {
        self.remove(route_to(index, prefix)?).await
    }

    /// Removes a route.
    pub(super) async fn remove(&self, route: RouteMessage) -> io::Result<()> {
        let removed = self.handle.route().del(route).execute().await;
        removed.map_err(io_error)
    }

    /// Routes `address` alone as it is routed now, so that a shorter prefix does not change it. The route that was made;
    /// `None` if there was one already, or `address` is one of this machine or can't be reached.
    pub(super) async fn pin(&self, address: IpAddr) -> io::Result<Option<RouteMessage>> {
        let asked = builder(Prefix::single(address))?.build();
        let mut found = Box::pin(self.handle.route().get(asked).execute());
        let Ok(Some(found)) = found.try_next().await else {
            // Nowhere, so that nothing can be lost.
            return Ok(None);
        };
        if found.header.kind != RouteType::Unicast {
            return Ok(None);
        }
        let mut pinned = builder(Prefix::single(address))?;
        let mut has_gateway = false;
        for attribute in found.attributes {
            match &attribute {
                RouteAttribute::Gateway(_) | RouteAttribute::Via(_) => has_gateway = true,
                RouteAttribute::Oif(_) | RouteAttribute::PrefSource(_) => {}
                _ => continue,
            }
            pinned.get_mut().attributes.push(attribute);
        }
        if !has_gateway && address.is_ipv4() {
            pinned = pinned.scope(RouteScope::Link);
        }
        let pinned = pinned.build();
        match self.handle.route().add(pinned.clone()).execute().await {
            Ok(()) => Ok(Some(pinned)),
            Err(error) => match io_error(error) {
                error if error.kind() == io::ErrorKind::AlreadyExists => Ok(None),
                error => Err(error),
            },
        }
    }
}

impl Drop for Kernel {
    fn drop(&mut self) {
        self.driving.abort();
    }
}

fn builder(prefix: Prefix) -> io::Result<RouteMessageBuilder<IpAddr>> {
    RouteMessageBuilder::<IpAddr>::new()
        .destination_prefix(prefix.first(), prefix.length())
        .map_err(io::Error::other)
}

fn route_to(index: u32, prefix: Prefix) -> io::Result<RouteMessage> {
    let route = builder(prefix)?.output_interface(index);
    Ok(if prefix.address().is_ipv4() {
        route.scope(RouteScope::Link).build()
    } else {
        route.build()
    })
}

fn io_error(error: rtnetlink::Error) -> io::Error {
    match error {
        rtnetlink::Error::NetlinkError(message) => message.to_io(),
        other => io::Error::other(other),
    }
}
