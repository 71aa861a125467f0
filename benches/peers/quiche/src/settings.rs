//! quiche's configuration, tuned or with the library's defaults.
//!
//! TLS is BoringSSL, which takes AES-128-GCM first where the processor has instructions for AES. Never resumed:
//! no session is kept.
//!
//! quiche has no windows by default, so that both settings need some: 1 MB for a stream and 10 MB for a
//! connection, what quiche's own client takes, and it may let them grow to 16 MB and 24 MB.
//!
//! Pacing is on by default, but quiche leaves it to the program to wait for each datagram's time; this one doesn't,
//! nor does quiche's own without help of the kernel, as bursts (GSO) would have to be broken up. With `--controller`
//! it does.
//!
//! Tuned: windows of 16 MiB and 32 MiB from the start, socket buffers of 4 MiB, a large initial congestion window,
//! no pacing. CUBIC, the default, is the controller; where packets are lost at random, BBRv2.

use std::path::Path;

use job::{
    CONNECTION_WINDOW, ClientArguments, Controller, INITIAL_WINDOW, MAX_STREAMS, STREAM_WINDOW,
    ServerArguments, Settings,
};
use quiche::{Config, CongestionControlAlgorithm, Error, PROTOCOL_VERSION, Result};

/// Unidirectional streams of a peer over HTTP/3, and the window of each in bytes, as in quiche's own programs.
const UNIDIRECTIONAL: u64 = 100;
const UNIDIRECTIONAL_WINDOW: u64 = 1_000_000;

/// A server's.
pub(crate) fn server(arguments: &ServerArguments) -> Result<Config> {
    let mut config = common(arguments.settings)?;
    config.load_cert_chain_from_pem_file(text(&arguments.cert)?)?;
    config.load_priv_key_from_pem_file(text(&arguments.key)?)?;
    Ok(config)
}

/// A client's.
pub(crate) fn client(arguments: &ClientArguments) -> Result<Config> {
    let mut config = common(arguments.settings)?;
    config.load_verify_locations_from_file(text(&arguments.ca)?)?;
    config.verify_peer(true);
    Ok(config)
}

fn common(settings: Settings) -> Result<Config> {
    let mut config = Config::new(PROTOCOL_VERSION)?;
    config.set_application_protos(&[settings.alpn()])?;
    config.set_max_send_udp_payload_size(settings.mtu.into());
    config.set_max_recv_udp_payload_size(65_527);
    config.set_initial_max_streams_bidi(MAX_STREAMS.into());
    if settings.http3 {
        // Of them HTTP/3 has three.
        config.set_initial_max_streams_uni(UNIDIRECTIONAL);
        config.set_initial_max_stream_data_uni(UNIDIRECTIONAL_WINDOW);
        config.grease(false);
    }
    let (stream, connection) = if settings.tuned {
        (STREAM_WINDOW.into(), CONNECTION_WINDOW.into())
    } else {
        (1_000_000, 10_000_000)
    };
    config.set_initial_max_data(connection);
    config.set_initial_max_stream_data_bidi_local(stream);
    config.set_initial_max_stream_data_bidi_remote(stream);
    if settings.tuned {
        config.set_max_connection_window(connection);
        config.set_max_stream_window(stream);
        config.enable_pacing(false);
        let packets = INITIAL_WINDOW / u32::from(settings.mtu);
        config.set_initial_congestion_window_packets(packets as usize);
        if settings.lossy {
            config.set_cc_algorithm(CongestionControlAlgorithm::Bbr2Gcongestion);
        }
    }
    if let Some(controller) = settings.controller {
        config.enable_pacing(true);
        config.set_cc_algorithm(algorithm(controller)?);
    }
    Ok(config)
}

fn algorithm(controller: Controller) -> Result<CongestionControlAlgorithm> {
    match controller {
        Controller::Cubic => Ok(CongestionControlAlgorithm::CUBIC),
        Controller::Bbr2 => Ok(CongestionControlAlgorithm::Bbr2Gcongestion),
        Controller::Bbr1 | Controller::Bbr3 => Err(Error::CongestionControl),
    }
}

/// quiche accepts file names as text only.
fn text(path: &Path) -> Result<&str> {
    path.to_str().ok_or(Error::TlsFail)
}
