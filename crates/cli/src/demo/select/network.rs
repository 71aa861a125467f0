//! The emulated network of a variant: links below IP between two network namespaces, and a policer of each protocol.

#[cfg(not(target_os = "linux"))]
pub(super) use elsewhere::{Network, check, prepare};
#[cfg(target_os = "linux")]
pub(super) use linux::{Network, check, prepare};

use crate::exit::{Exit, Failure};

/// What there is no emulated network without.
fn unavailable(why: &dyn std::fmt::Display) -> Failure {
    let text = format_args!(
        "TCP and UDP are emulated between network namespaces, which takes Linux, /dev/net/tun, and root or a system \
         that permits user namespaces: {why}"
    );
    Failure::new(Exit::Failure, text)
}

#[cfg(target_os = "linux")]
mod linux {
    use std::io;
    use std::net::IpAddr;
    use std::thread::JoinHandle;

    use swiftwater::net::relay::tun::{
        IpProtocol, Policer, Site, TunError, TunRelay, TunRelayConfig, own_user_namespace,
    };

    use super::super::course::{Carrier, Change, Course, Treatment};
    use super::unavailable;
    use crate::exit::{Exit, Failure, plain_io_error};

    /// Enters a user namespace if need be; only while there is one thread.
    pub(in super::super) fn prepare() {
        // Where that is refused, network namespaces are too, and `check` reports the reason.
        let _ = own_user_namespace();
    }

    /// Whether there can be a network here.
    pub(in super::super) fn check() -> Result<(), Failure> {
        match TunRelay::start(&TunRelayConfig::default()) {
            Ok(_) => Ok(()),
            Err(TunError::Namespace(error)) => {
                let why = plain_io_error(&error);
                Err(unavailable(&format_args!("no network namespace: {why}")))
            }
            Err(TunError::Device(error)) => {
                let why = plain_io_error(&error);
                Err(unavailable(&format_args!("no TUN device: {why}")))
            }
            Err(error) => Err(unavailable(&error)),
        }
    }

    /// A running network.
    pub(in super::super) struct Network(TunRelay);

    impl Network {
        pub(in super::super) fn start(course: Course, seed: u64) -> Result<Self, Failure> {
            let link = course.link();
            let relay = TunRelay::start(&TunRelayConfig {
                up: link.clone(),
                down: link,
                seed,
            });
            relay
                .map(Self)
                .map_err(|error| Failure::new(Exit::Failure, error))
        }

        /// Lets something happen to it.
        pub(in super::super) fn change(&self, change: &Change) {
            let protocol = match change.carrier {
                Carrier::Tcp => IpProtocol::Tcp,
                Carrier::Udp => IpProtocol::Udp,
            };
            let policer = match change.treatment {
                Treatment::Pass => Policer::Pass,
                Treatment::Block => Policer::Block,
                Treatment::Limit(rate) => Policer::Rate(rate),
            };
            self.0.police(protocol, policer);
        }

        /// The server's address.
        pub(in super::super) fn server(&self) -> IpAddr {
            self.0.server().address().into()
        }

        /// The client's address.
        pub(in super::super) fn client(&self) -> IpAddr {
            self.0.client().address().into()
        }

        /// Runs `work` in a thread at the server's end.
        pub(in super::super) fn at_server<T: Send + 'static>(
            &self,
            work: impl FnOnce() -> T + Send + 'static,
        ) -> Result<Working<T>, Failure> {
            Self::at(self.0.server(), "server", work)
        }

        /// Runs `work` in a thread at the client's end.
        pub(in super::super) fn at_client<T: Send + 'static>(
            &self,
            work: impl FnOnce() -> T + Send + 'static,
        ) -> Result<Working<T>, Failure> {
            Self::at(self.0.client(), "client", work)
        }

        fn at<T: Send + 'static>(
            site: &Site,
            name: &str,
            work: impl FnOnce() -> T + Send + 'static,
        ) -> Result<Working<T>, Failure> {
            Ok(Working(site.spawn(name, work)?))
        }
    }

    /// A thread at one end.
    pub(in super::super) struct Working<T>(JoinHandle<io::Result<T>>);

    impl<T> Working<T> {
        /// Waits for its result.
        pub(in super::super) fn result(self) -> Result<T, Failure> {
            match self.0.join() {
                Ok(result) => Ok(result?),
                // The panic was reported separately.
                Err(_) => Err(Failure::new(Exit::Failure, "a thread panicked")),
            }
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod elsewhere {
    use std::net::IpAddr;

    use super::super::course::{Change, Course};
    use super::unavailable;
    use crate::exit::Failure;

    /// Nothing.
    pub(in super::super) fn prepare() {}

    /// There can't be a network here.
    pub(in super::super) fn check() -> Result<(), Failure> {
        Err(unavailable(&"this is another system"))
    }

    /// There is none.
    pub(in super::super) enum Network {}

    impl Network {
        pub(in super::super) fn start(_: Course, _: u64) -> Result<Self, Failure> {
            Err(unavailable(&"this is another system"))
        }

        pub(in super::super) fn change(&self, _: &Change) {
            match *self {}
        }

        pub(in super::super) fn server(&self) -> IpAddr {
            match *self {}
        }

        pub(in super::super) fn client(&self) -> IpAddr {
            match *self {}
        }

        pub(in super::super) fn at_server<T: Send + 'static>(
            &self,
            _: impl FnOnce() -> T + Send + 'static,
        ) -> Result<Working<T>, Failure> {
            match *self {}
        }

        pub(in super::super) fn at_client<T: Send + 'static>(
            &self,
            _: impl FnOnce() -> T + Send + 'static,
        ) -> Result<Working<T>, Failure> {
            match *self {}
        }
    }

    /// There is none.
    pub(in super::super) enum Working<T> {
        #[expect(dead_code, reason = "never made")]
        Never(std::convert::Infallible, T),
    }

    impl<T> Working<T> {
        pub(in super::super) fn result(self) -> Result<T, Failure> {
            let Self::Never(never, _) = self;
            match never {}
        }
    }
}
