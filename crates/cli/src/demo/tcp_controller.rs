//! The congestion controller of the kernel's TCP, beside which QUIC is shown.

#[cfg(target_os = "linux")]
mod linux {
    use std::io::ErrorKind;
    use std::net::{Ipv4Addr, TcpListener as StdListener};

    use socket2::SockRef;
    use tokio::net::TcpListener;

    use crate::exit::{Exit, Failure, plain_io_error};

    /// Sets the controller of connections of `listener` to `wanted`, if given; returns the name of
    /// the one in use.
    pub(in crate::demo) fn set(
        listener: &TcpListener,
        wanted: Option<&str>,
    ) -> Result<Option<String>, Failure> {
        let socket = SockRef::from(listener);
        if let Some(wanted) = wanted {
            let set = socket.set_tcp_congestion(wanted.as_bytes());
            set.map_err(|error| refused(wanted, &plain_io_error(&error)))?;
        }
        let name = socket.tcp_congestion()?;
        let name = String::from_utf8_lossy(&name);
        Ok(Some(name.trim_end_matches('\0').to_owned()))
    }

    /// Whether the kernel has `wanted`.
    pub(in crate::demo) fn check(wanted: &str) -> Result<(), Failure> {
        let listener = StdListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        match SockRef::from(&listener).set_tcp_congestion(wanted.as_bytes()) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                Err(refused(wanted, &"it has none of that name"))
            }
            // A lack of permission is a different case, and a network namespace may solve it.
            _ => Ok(()),
        }
    }

    fn refused(wanted: &str, why: &dyn std::fmt::Display) -> Failure {
        Failure::new(
            Exit::Usage,
            format_args!("the kernel does not take TCP controller '{wanted}': {why}"),
        )
    }
}

#[cfg(not(target_os = "linux"))]
mod elsewhere {
    use tokio::net::TcpListener;

    use crate::exit::{Exit, Failure};

    /// The kernel's default.
    pub(in crate::demo) fn set(
        _: &TcpListener,
        _: Option<&str>,
    ) -> Result<Option<String>, Failure> {
        Ok(None)
    }

    /// There is no choice on this system.
    pub(in crate::demo) fn check(_: &str) -> Result<(), Failure> {
        let why = "TCP's controller can be chosen on Linux only";
        Err(Failure::new(Exit::Usage, why))
    }
}

#[cfg(not(target_os = "linux"))]
pub(super) use elsewhere::{check, set};
#[cfg(target_os = "linux")]
pub(super) use linux::{check, set};

/// How to get a comparison with equal congestion controllers, if they differ.
pub(super) fn difference(quic: &str, tcp: &str) -> Option<String> {
    (quic != tcp).then(|| {
        format!(
            "The congestion controllers differ ({quic} over QUIC, {tcp} over TCP), and on lossy networks that decides: \
             --tcp-cc {quic} compares the protocols, --cc bbr3 shows QUIC without CUBIC's slowing down for each loss."
        )
    })
}
