//! Endpoints, tuned or with the library's defaults.
//!
//! TLS is its default, s2n-tls (on aws-lc). The suite can only be chosen by policies, and no known one has
//! AES-128-GCM alone; the default prefers it. Never resumed: that is an unstable feature.
//!
//! Both settings: no search for larger packets, room for as many streams as the jobs open, an idle timeout that
//! outlasts them; GSO and GRO are on.
//!
//! Tuned: windows of 16 MiB (stream) and 32 MiB (connection) in place of 3.75 MB; socket buffers of 4 MiB; a large
//! initial congestion window; an ACK every tenth packet. CUBIC, the default, is the controller; where packets are
//! lost at random, BBR.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use job::{
    ALPN, CONNECTION_WINDOW, ClientArguments, Controller, Failure, INITIAL_WINDOW, MAX_STREAMS,
    SOCKET_BUFFER, STREAM_WINDOW, ServerArguments, Settings,
};
use s2n_quic::provider::congestion_controller::{Bbr, Cubic, bbr, cubic};
use s2n_quic::provider::io::tokio::Provider as Io;
use s2n_quic::provider::limits::Limits;
use s2n_quic::provider::tls::s2n_tls;
use s2n_quic::{Client, Server};
use tokio::runtime::{Builder, Runtime};

/// Bytes of the IP and UDP headers, which s2n-quic counts as part of its MTU.
const HEADERS: u16 = 20 + 8;
const HEADERS_V6: u16 = 40 + 8;

/// Longer than any job, so that connections that are held stay.
const IDLE: Duration = Duration::from_mins(10);

/// Ack-eliciting packets that make a receiver send an ACK when tuned.
const ACK_INTERVAL: u8 = 10;

/// A runtime with so many threads. The endpoint itself is one task.
pub(crate) fn runtime(threads: usize) -> io::Result<Runtime> {
    let mut builder = match threads {
        1 => Builder::new_current_thread(),
        _ => Builder::new_multi_thread(),
    };
    builder.worker_threads(threads).enable_all().build()
}

/// An endpoint that accepts connections.
pub(crate) fn server(arguments: &ServerArguments) -> Result<Server, Failure> {
    let tls = s2n_tls::Server::builder()
        .with_application_protocols([ALPN])?
        .with_certificate(arguments.cert.as_path(), arguments.key.as_path())?
        .build()?;
    let builder = Server::builder()
        .with_tls(tls)?
        .with_io(io(arguments.listen, arguments.settings)?)?
        .with_limits(limits(arguments.settings)?)?;
    Ok(match controller(arguments.settings)? {
        Choice::Default => builder.start()?,
        Choice::Cubic(cubic) => builder.with_congestion_controller(cubic)?.start()?,
        Choice::Bbr(bbr) => builder.with_congestion_controller(bbr)?.start()?,
    })
}

/// An endpoint that connects.
pub(crate) fn client(arguments: &ClientArguments) -> Result<Client, Failure> {
    let tls = s2n_tls::Client::builder()
        .with_empty_trust_store()?
        .with_application_protocols([ALPN])?
        .with_certificate(arguments.ca.as_path())?
        .build()?;
    let builder = Client::builder()
        .with_tls(tls)?
        .with_io(io(arguments.local(), arguments.settings)?)?
        .with_limits(limits(arguments.settings)?)?;
    Ok(match controller(arguments.settings)? {
        Choice::Default => builder.start()?,
        Choice::Cubic(cubic) => builder.with_congestion_controller(cubic)?.start()?,
        Choice::Bbr(bbr) => builder.with_congestion_controller(bbr)?.start()?,
    })
}

/// A congestion controller: each makes another type of endpoint.
enum Choice {
    Default,
    Cubic(Cubic),
    Bbr(Bbr),
}

fn controller(settings: Settings) -> Result<Choice, Failure> {
    let (mut cubic, mut bbr) = (cubic::Builder::default(), bbr::Builder::default());
    if settings.tuned {
        cubic = cubic.with_initial_congestion_window(INITIAL_WINDOW);
        bbr = bbr.with_initial_congestion_window(INITIAL_WINDOW);
    }
    Ok(
        match (settings.controller, settings.tuned, settings.lossy) {
            (Some(Controller::Cubic), ..) | (None, true, false) => Choice::Cubic(cubic.build()),
            (Some(Controller::Bbr2), ..) | (None, true, true) => Choice::Bbr(bbr.build()),
            (Some(other), ..) => return Err(other.missing().into()),
            (None, false, _) => Choice::Default,
        },
    )
}

fn io(address: SocketAddr, settings: Settings) -> io::Result<Io> {
    let headers = if address.is_ipv4() {
        HEADERS
    } else {
        HEADERS_V6
    };
    let mtu = settings.mtu + headers;
    let mut builder = Io::builder()
        .with_receive_address(address)?
        .with_max_mtu(mtu)?
        .with_initial_mtu(mtu)?
        .with_base_mtu(mtu)?;
    if settings.tuned {
        builder = builder
            .with_send_buffer_size(SOCKET_BUFFER)?
            .with_recv_buffer_size(SOCKET_BUFFER)?;
    }
    builder.build()
}

fn limits(settings: Settings) -> Result<Limits, Failure> {
    let limits = Limits::new()
        .with_max_idle_timeout(IDLE)?
        .with_max_open_local_bidirectional_streams(MAX_STREAMS.into())?
        .with_max_open_remote_bidirectional_streams(MAX_STREAMS.into())?;
    if !settings.tuned {
        return Ok(limits);
    }
    Ok(limits
        .with_data_window(CONNECTION_WINDOW.into())?
        .with_bidirectional_local_data_window(STREAM_WINDOW.into())?
        .with_bidirectional_remote_data_window(STREAM_WINDOW.into())?
        .with_max_send_buffer_size(STREAM_WINDOW)?
        .with_ack_elicitation_interval(ACK_INTERVAL)?)
}
