//! Endpoints, tuned or with the library's defaults. Also part of noq's program, whose interface is the same.
//!
//! Tuned: socket buffers of 4 MiB, windows of 16 MiB (stream; noq less, see there) and 32 MiB (connection), room
//! for 16 MiB to be sent; an initial congestion window that spares the ramp; no tickets; an ACK every tenth packet (ACK frequency).
//! CUBIC, the default, is the controller; where packets are lost at random, BBR with quinn. GSO and GRO are always on.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use job::{
    CONNECTION_WINDOW, ClientArguments, Controller, INITIAL_WINDOW, MAX_STREAMS, STREAM_WINDOW,
    ServerArguments, Settings, tls,
};
use tokio::runtime::{Builder, Runtime};

use crate::quic::congestion::{ControllerFactory, CubicConfig};
use crate::quic::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use crate::quic::{
    AckFrequencyConfig, BBR, BbrConfig, ClientConfig, Endpoint, EndpointConfig, LossyConfig,
    RECEIVE_WINDOW, ServerConfig, TokioRuntime, TransportConfig,
};

/// Ack-eliciting packets that a receiver may leave without an ACK when tuned.
const ACK_THRESHOLD: u32 = 9;

/// A runtime with so many threads.
pub(crate) fn runtime(threads: usize) -> io::Result<Runtime> {
    let mut builder = match threads {
        1 => Builder::new_current_thread(),
        _ => Builder::new_multi_thread(),
    };
    builder.worker_threads(threads).enable_all().build()
}

/// An endpoint that accepts connections.
pub(crate) fn server(arguments: &ServerArguments) -> io::Result<Endpoint> {
    let crypto = Arc::new(tls::server(arguments)?);
    let crypto = QuicServerConfig::with_initial(crypto, tls::initial_suite());
    let mut config = ServerConfig::with_crypto(Arc::new(crypto.map_err(io::Error::other)?));
    config.transport_config(transport(arguments.settings)?);
    endpoint(arguments.listen, Some(config), arguments.settings)
}

/// An endpoint that connects, and how.
pub(crate) fn client(arguments: &ClientArguments) -> io::Result<(Endpoint, ClientConfig)> {
    let crypto = Arc::new(tls::client(arguments)?);
    let crypto = QuicClientConfig::with_initial(crypto, tls::initial_suite());
    let mut config = ClientConfig::new(Arc::new(crypto.map_err(io::Error::other)?));
    config.transport_config(transport(arguments.settings)?);
    let endpoint = endpoint(arguments.local(), None, arguments.settings)?;
    Ok((endpoint, config))
}

fn transport(settings: Settings) -> io::Result<Arc<TransportConfig>> {
    let mut config = TransportConfig::default();
    config
        .initial_mtu(settings.mtu)
        .min_mtu(settings.mtu)
        .mtu_discovery_config(None)
        // Connections that are held are to stay.
        .max_idle_timeout(None)
        .max_concurrent_bidi_streams(MAX_STREAMS.into());
    if settings.tuned {
        let mut acknowledgements = AckFrequencyConfig::default();
        acknowledgements.ack_eliciting_threshold(ACK_THRESHOLD.into());
        config
            .stream_receive_window(RECEIVE_WINDOW.into())
            .receive_window(CONNECTION_WINDOW.into())
            .send_window(STREAM_WINDOW.into())
            .ack_frequency_config(Some(acknowledgements))
            .congestion_controller_factory(controller(settings.lossy));
    }
    match settings.controller {
        Some(Controller::Cubic) => {
            config.congestion_controller_factory(Arc::new(CubicConfig::default()));
        }
        Some(wanted) if wanted == BBR => {
            config.congestion_controller_factory(Arc::new(BbrConfig::default()));
        }
        Some(other) => return Err(io::Error::other(other.missing())),
        None => {}
    }
    Ok(Arc::new(config))
}

fn controller(lossy: bool) -> Arc<dyn ControllerFactory + Send + Sync> {
    let window = u64::from(INITIAL_WINDOW);
    if lossy {
        let mut config = LossyConfig::default();
        config.initial_window(window);
        Arc::new(config)
    } else {
        let mut config = CubicConfig::default();
        config.initial_window(window);
        Arc::new(config)
    }
}

fn endpoint(
    address: SocketAddr,
    server: Option<ServerConfig>,
    settings: Settings,
) -> io::Result<Endpoint> {
    let mut config = EndpointConfig::default();
    config
        .max_udp_payload_size(settings.mtu.max(1472))
        .map_err(io::Error::other)?;
    let socket = job::udp_socket(address, settings.tuned)?;
    Endpoint::new(config, server, socket, Arc::new(TokioRuntime))
}
