//! quinn configured for measurements on loopback: flags, endpoints, payload.

use std::error::Error;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use clap::Args;
use quinn::{ClientConfig, Endpoint, EndpointConfig, ServerConfig, TransportConfig};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use socket2::{Domain, Protocol, Socket, Type};
use swiftwater_interop_program::arguments::Suite;
use tokio::runtime::{Builder, Runtime};

use crate::tls;

/// Handed to quinn at once when sending, bytes.
pub(crate) const BLOCK: usize = 256 * 1024;

/// Requested kernel buffers, bytes; the system may grant less.
const SOCKET_BUFFER: usize = 4 << 20;

/// What is sent.
pub(crate) static ZEROS: [u8; BLOCK] = [0; BLOCK];

/// How quinn is set up.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct Tuning {
    /// UDP payload of full packets, bytes
    #[arg(long, default_value_t = 1452)]
    pub(crate) mtu: u16,
    /// Flow control window of a stream and send buffer, bytes
    #[arg(long, default_value_t = 16 << 20)]
    pub(crate) window: u32,
    /// Cipher suite
    #[arg(long, value_enum, default_value_t = Suite::Aes128)]
    pub(crate) suite: Suite,
    /// Threads; 0 is one per core
    #[arg(long, default_value_t = 0)]
    pub(crate) threads: usize,
}

/// The runtime of a program.
pub(crate) fn runtime(tuning: &Tuning) -> std::io::Result<Runtime> {
    let mut builder = match tuning.threads {
        1 => Builder::new_current_thread(),
        _ => Builder::new_multi_thread(),
    };
    if tuning.threads > 1 {
        builder.worker_threads(tuning.threads);
    }
    builder.enable_all().build()
}

/// An endpoint that accepts connections.
pub(crate) fn server(
    listen: SocketAddr,
    alpn: &[u8],
    tuning: Tuning,
) -> Result<Endpoint, Box<dyn Error>> {
    let crypto = tls::server(make_identity()?, alpn, tuning.suite, false)?;
    let mut config = ServerConfig::with_crypto(crypto);
    config.transport_config(transport(tuning));
    endpoint(listen, Some(config), tuning)
}

/// An endpoint to connect to `server` from, and the settings for that.
pub(crate) fn client(
    server: SocketAddr,
    alpn: &[u8],
    tuning: Tuning,
) -> Result<(Endpoint, ClientConfig), Box<dyn Error>> {
    let crypto = tls::client(None, alpn, tuning.suite, false)?;
    let mut config = ClientConfig::new(crypto);
    config.transport_config(transport(tuning));
    let any = match server {
        SocketAddr::V4(_) => SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
        SocketAddr::V6(_) => SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)),
    };
    Ok((endpoint(any, None, tuning)?, config))
}

/// A self-signed certificate for `localhost`, made on the spot.
fn make_identity() -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), rcgen::Error> {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()])?;
    let key = PrivateKeyDer::Pkcs8(made.signing_key.serialize_der().into());
    Ok((vec![made.cert.der().clone()], key))
}

fn transport(tuning: Tuning) -> Arc<TransportConfig> {
    let mut config = TransportConfig::default();
    config
        .initial_mtu(tuning.mtu)
        .min_mtu(tuning.mtu.min(1452))
        .mtu_discovery_config(None)
        .stream_receive_window(tuning.window.into())
        .send_window(tuning.window.into());
    Arc::new(config)
}

fn endpoint(
    address: SocketAddr,
    server: Option<ServerConfig>,
    tuning: Tuning,
) -> Result<Endpoint, Box<dyn Error>> {
    let socket = Socket::new(
        Domain::for_address(address),
        Type::DGRAM,
        Some(Protocol::UDP),
    )?;
    socket.set_send_buffer_size(SOCKET_BUFFER)?;
    socket.set_recv_buffer_size(SOCKET_BUFFER)?;
    socket.bind(&address.into())?;
    let mut config = EndpointConfig::default();
    config.max_udp_payload_size(tuning.mtu.max(1472))?;
    Ok(Endpoint::new(
        config,
        server,
        socket.into(),
        Arc::new(quinn::TokioRuntime),
    )?)
}
