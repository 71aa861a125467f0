//! The arms of a client: each is an HTTP version with connections of its own.

use std::sync::Arc;

use swiftwater_net::quic::{ClientConfig, TransportConfig};
use swiftwater_select::{Arm, Transport};

use super::error::SelectError;
use crate::client::origin::Origin;
use crate::client::quic::QuicSide;
use crate::client::state::{State, lock};
use crate::tcp::ALPN_HTTP11;

/// An arm and the connections that its requests use.
pub(super) struct ArmState {
    pub(super) arm: Arm,
    pub(super) state: Arc<State>,
}

impl ArmState {
    pub(super) fn is_quic(&self) -> bool {
        self.arm.transport() == Transport::Quic
    }

    /// Stops the use of its connections to `origin` for new requests.
    pub(super) fn drop_connections(&self, origin: &Origin) {
        if self.is_quic() {
            self.state.pool.drop_http3(origin);
        } else {
            self.state.tcp_pool.drop_tcp(origin);
        }
    }

    /// True while a QUIC handshake that TCP overtook is in progress.
    pub(super) fn is_pending(&self, origin: &Origin) -> bool {
        lock(&self.state.pending).contains(origin) && !self.state.pool.has_http3(origin)
    }
}

/// The arms, and the state that the race of new origins uses: its connections are those of the first arm of
/// each transport.
pub(super) fn states(
    arms: &[Arm],
    mut main: State,
) -> Result<(Vec<ArmState>, Arc<State>), SelectError> {
    let first = |transport| arms.iter().find(|arm| arm.transport() == transport);
    let first_quic = first(Transport::Quic);
    let base = main.quic.clone();
    if let (Some(arm), Some(base)) = (first_quic, &base) {
        main.quic = Some(side(arm, base)?);
    }
    let first_tcp = first(Transport::Tcp);
    let tls = main.tls.clone();
    if let (Some(arm), Some(tls)) = (first_tcp, &tls) {
        main.tls = Some(Arc::new(tls_of(arm, tls)));
    }
    let main = Arc::new(main);
    let mut states = Vec::with_capacity(arms.len());
    for arm in arms {
        let state = if Some(arm) == first_quic || Some(arm) == first_tcp {
            Arc::clone(&main)
        } else if arm.transport() == Transport::Quic {
            let side = base.as_ref().map(|base| side(arm, base)).transpose()?;
            Arc::new(main.beside(side, None))
        } else {
            let tls = tls.as_ref().map(|tls| tls_of(arm, tls));
            Arc::new(main.beside(None, tls))
        };
        let arm = arm.clone();
        states.push(ArmState { arm, state });
    }
    Ok((states, main))
}

/// `base` with the controller and recovery policy of the arm.
fn side(arm: &Arm, base: &QuicSide) -> Result<QuicSide, SelectError> {
    let unknown = |problem: String| SelectError::UnknownPart {
        arm: arm.clone(),
        problem,
    };
    let mut transport = TransportConfig::clone(&base.config.transport);
    if let Some(name) = arm.controller() {
        let controller = swiftwater_congestion::by_name(name);
        transport.controller = controller.map_err(|error| unknown(error.to_string()))?;
    }
    if let Some(name) = arm.recovery() {
        let policies = swiftwater_policies::by_name(name);
        transport.policies = policies.map_err(|error| unknown(error.to_string()))?;
    }
    Ok(QuicSide {
        endpoint: base.endpoint.clone(),
        config: ClientConfig {
            transport: Arc::new(transport),
            ..base.config.clone()
        },
    })
}

fn tls_of(arm: &Arm, base: &rustls::ClientConfig) -> rustls::ClientConfig {
    let mut tls = base.clone();
    if arm.name() == "h1" {
        tls.alpn_protocols = vec![ALPN_HTTP11.to_vec()];
    }
    tls
}
