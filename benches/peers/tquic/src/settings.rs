//! tquic's configuration, tuned or with the library's defaults.
//!
//! TLS is BoringSSL, which takes AES-128-GCM first where the processor has instructions for AES. Never resumed:
//! no session is kept. Datagrams are sent in bursts of at most 64 (its default for a batch), which is also what
//! GSO takes at most.
//!
//! Tuned: windows of 16 MiB (stream) and 32 MiB (connection) in place of 5 MB and 10 MB; socket buffers of 4 MiB;
//! a large initial congestion window; an ACK every tenth packet; no pacing, whose granularity of 1 ms only costs
//! on such short paths. CUBIC is the controller; where packets are lost at random, the default, BBR, with pacing.

use std::path::Path;

use job::{
    ALPN, CONNECTION_WINDOW, ClientArguments, Controller, INITIAL_WINDOW, MAX_STREAMS,
    STREAM_WINDOW, ServerArguments, Settings,
};
use tquic::{Config, CongestionControlAlgorithm, Error, TlsConfig};

/// Ack-eliciting packets that make a receiver send an ACK when tuned.
const ACK_THRESHOLD: u64 = 10;

/// A server's.
pub(crate) fn server(arguments: &ServerArguments) -> Result<Config, Error> {
    let tls = TlsConfig::new_server_config(
        text(&arguments.cert)?,
        text(&arguments.key)?,
        vec![ALPN.to_vec()],
        false,
    )?;
    common(arguments.settings, tls)
}

/// A client's.
pub(crate) fn client(arguments: &ClientArguments) -> Result<Config, Error> {
    let mut tls = TlsConfig::new_client_config(vec![ALPN.to_vec()], false)?;
    tls.set_ca_certs(text(&arguments.ca)?)?;
    tls.set_verify(true);
    common(arguments.settings, tls)
}

fn common(settings: Settings, tls: TlsConfig) -> Result<Config, Error> {
    let mut config = Config::new()?;
    config.set_tls_config(tls);
    config.enable_dplpmtud(false);
    config.set_send_udp_payload_size(settings.mtu.into());
    config.set_initial_max_streams_bidi(MAX_STREAMS.into());
    if settings.tuned {
        config.set_max_connection_window(CONNECTION_WINDOW.into());
        config.set_max_stream_window(STREAM_WINDOW.into());
        config.set_initial_max_data(CONNECTION_WINDOW.into());
        config.set_initial_max_stream_data_bidi_local(STREAM_WINDOW.into());
        config.set_initial_max_stream_data_bidi_remote(STREAM_WINDOW.into());
        config.set_ack_eliciting_threshold(ACK_THRESHOLD);
        config.set_initial_congestion_window((INITIAL_WINDOW / u32::from(settings.mtu)).into());
        if !settings.lossy {
            config.set_congestion_control_algorithm(CongestionControlAlgorithm::Cubic);
            config.enable_pacing(false);
        }
    }
    if let Some(controller) = settings.controller {
        config.enable_pacing(true);
        config.set_congestion_control_algorithm(algorithm(controller)?);
    }
    Ok(config)
}

fn algorithm(controller: Controller) -> Result<CongestionControlAlgorithm, Error> {
    match controller {
        Controller::Cubic => Ok(CongestionControlAlgorithm::Cubic),
        Controller::Bbr1 => Ok(CongestionControlAlgorithm::Bbr),
        Controller::Bbr3 => Ok(CongestionControlAlgorithm::Bbr3),
        Controller::Bbr2 => Err(Error::InvalidConfig(controller.missing())),
    }
}

/// tquic accepts file names as text only.
fn text(path: &Path) -> Result<&str, Error> {
    path.to_str()
        .ok_or_else(|| Error::InvalidConfig("a file's name is not text".into()))
}
