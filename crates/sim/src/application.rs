//! What runs on a host: reacts to events and timers, and acts through a [`HostContext`].

use std::any::Any;
use std::net::SocketAddr;

use rand_chacha::ChaCha20Rng;
use swiftwater_quic::{ClientConfig, ConnectError, Connection, ConnectionHandle, Event};
use swiftwater_units::Instant;

use crate::agenda::{Agenda, Task};
use crate::host::HostCore;

/// A program on a host. All its calls come at points of virtual time; it must not take its time
/// from anywhere else.
pub trait Application: Any {
    /// The network runs for the first time since the application was installed.
    fn on_start(&mut self, _host: &mut HostContext<'_>) {}

    /// A connection was accepted: its first datagram has arrived, its handshake has begun.
    fn on_accept(&mut self, _host: &mut HostContext<'_>, _connection: ConnectionHandle) {}

    /// Something happened on a connection, one that was opened or one that was accepted.
    fn on_event(&mut self, host: &mut HostContext<'_>, connection: ConnectionHandle, event: Event);

    /// A timer set with [`HostContext::set_timer`] expired.
    fn on_timer(&mut self, _host: &mut HostContext<'_>, _token: u64) {}
}

/// An application that does nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Idle;

impl Application for Idle {
    fn on_event(&mut self, _: &mut HostContext<'_>, _: ConnectionHandle, _: Event) {}
}

/// A host, as its application sees it.
#[derive(Debug)]
pub struct HostContext<'a> {
    pub(crate) now: Instant,
    pub(crate) host: u32,
    pub(crate) core: &'a mut HostCore,
    pub(crate) agenda: &'a mut Agenda,
}

impl HostContext<'_> {
    /// The time.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// Random numbers of this host's application.
    pub fn rng(&mut self) -> &mut ChaCha20Rng {
        &mut self.core.rng
    }

    /// Starts a connection.
    pub fn connect(
        &mut self,
        config: &ClientConfig,
        remote: SocketAddr,
        server_name: &str,
    ) -> Result<ConnectionHandle, ConnectError> {
        let (now, core) = (self.now, &mut *self.core);
        let (handle, connection) = core.endpoint.connect(now, config, remote, server_name)?;
        core.slots.insert(handle, Box::new(connection));
        Ok(handle)
    }

    /// A connection, to read and change; `None` if it is gone. What it then has to send goes out
    /// at the same point of time.
    pub fn connection(&mut self, handle: ConnectionHandle) -> Option<&mut Connection> {
        self.core.slots.get_mut(handle)
    }

    /// A connection, only to look at.
    pub fn view(&self, handle: ConnectionHandle) -> Option<&Connection> {
        self.core.slots.get(handle)
    }

    /// The connections that are not drained.
    pub fn connections(&self) -> impl Iterator<Item = ConnectionHandle> {
        self.core.slots.handles()
    }

    /// Calls [`Application::on_timer`] with `token` at `at`, or now if that is past. Timers can't be
    /// cancelled; ignore those that came too late.
    pub fn set_timer(&mut self, at: Instant, token: u64) {
        let host = self.host;
        self.agenda
            .push(at.max(self.now), Task::Application { host, token });
    }
}
