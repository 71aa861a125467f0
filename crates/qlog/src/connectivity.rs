//! Events of connection establishment, migration and state: `connection_started`,
//! `version_information`, `alpn_information`, `parameters_set`, connection IDs, paths (QUIC events
//! draft, sections 4 and 5).

use std::net::{IpAddr, SocketAddr};

use serde::Serialize;
use swiftwater_quic::PathAddress;
use swiftwater_quic::observe::{HandshakeStage, Owner};
use swiftwater_quic::wire::{ConnectionId, TransportParameters};
use swiftwater_units::PathId;

use crate::text::{Hex, Version, millis, shortened};

/// The draft's `Initiator`.
pub(crate) fn initiator(owner: Owner) -> &'static str {
    match owner {
        Owner::Local => "local",
        Owner::Remote => "remote",
    }
}

/// One end of a path (`TupleEndpointInfo`).
#[derive(Default, Serialize)]
pub(crate) struct Endpoint<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    ip_v4: Option<IpAddr>,
    #[serde(skip_serializing_if = "Option::is_none")]
    port_v4: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ip_v6: Option<IpAddr>,
    #[serde(skip_serializing_if = "Option::is_none")]
    port_v6: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    connection_ids: Option<[Hex<'a>; 1]>,
}

impl<'a> Endpoint<'a> {
    fn new(ip: Option<IpAddr>, port: Option<u16>) -> Self {
        let mut endpoint = Self::default();
        match ip {
            Some(IpAddr::V4(_)) => (endpoint.ip_v4, endpoint.port_v4) = (ip, port),
            Some(IpAddr::V6(_)) => (endpoint.ip_v6, endpoint.port_v6) = (ip, port),
            None => {}
        }
        endpoint
    }

    fn remote(address: SocketAddr) -> Self {
        Self::new(Some(address.ip()), Some(address.port()))
    }

    fn with_id(mut self, cid: &'a ConnectionId) -> Self {
        self.connection_ids = Some([Hex::new(cid.as_bytes())]);
        self
    }
}

/// `quic:connection_started`.
#[derive(Default, Serialize)]
pub(crate) struct ConnectionStarted<'a> {
    local: Endpoint<'a>,
    remote: Endpoint<'a>,
}

impl<'a> ConnectionStarted<'a> {
    pub(crate) fn new(
        path: &PathAddress,
        local_cid: &'a ConnectionId,
        remote_cid: &'a ConnectionId,
    ) -> Self {
        Self {
            // The transport does not know the port of its socket.
            local: Endpoint::new(path.local.ip, None).with_id(local_cid),
            remote: Endpoint::remote(path.remote).with_id(remote_cid),
        }
    }
}

/// `quic:migration_state_updated`.
#[derive(Serialize)]
pub(crate) struct MigrationState<'a> {
    new: &'static str,
    tuple_remote: Endpoint<'a>,
    tuple_local: Endpoint<'a>,
}

impl MigrationState<'_> {
    pub(crate) fn new(new: &'static str, path: &PathAddress) -> Self {
        Self {
            new,
            tuple_remote: Endpoint::remote(path.remote),
            tuple_local: Endpoint::new(path.local.ip, None),
        }
    }
}

/// `quic:tuple_assigned`: the addresses of the default tuple changed, or another path carries data; its identifier
/// is that of the tuple.
#[expect(clippy::struct_field_names, reason = "the draft's names")]
#[derive(Serialize)]
pub(crate) struct TupleAssigned<'a> {
    tuple_id: String,
    tuple_remote: Endpoint<'a>,
    tuple_local: Endpoint<'a>,
}

impl TupleAssigned<'_> {
    pub(crate) fn new(path: &PathAddress) -> Self {
        Self {
            // The default tuple has no name.
            tuple_id: String::new(),
            tuple_remote: Endpoint::remote(path.remote),
            tuple_local: Endpoint::new(path.local.ip, None),
        }
    }

    pub(crate) fn of(id: PathId, path: &PathAddress) -> Self {
        Self {
            tuple_id: id.get().to_string(),
            ..Self::new(path)
        }
    }
}

/// `swiftwater:path_opened`: a path of several is opened and not validated yet; when it carries data,
/// `quic:tuple_assigned` follows.
#[derive(Serialize)]
pub(crate) struct PathOpened<'a> {
    path_id: u32,
    tuple_remote: Endpoint<'a>,
    tuple_local: Endpoint<'a>,
}

impl PathOpened<'_> {
    pub(crate) fn new(id: PathId, path: &PathAddress) -> Self {
        Self {
            path_id: id.get(),
            tuple_remote: Endpoint::remote(path.remote),
            tuple_local: Endpoint::new(path.local.ip, None),
        }
    }
}

/// `swiftwater:path_abandoned`, with the end that abandoned it first.
#[derive(Serialize)]
pub(crate) struct PathAbandoned {
    pub(crate) path_id: u32,
    pub(crate) initiator: &'static str,
    pub(crate) error_code: u64,
}

/// `swiftwater:path_status_updated`: an end's advice about a path.
#[derive(Serialize)]
pub(crate) struct PathStatusUpdated {
    pub(crate) path_id: u32,
    pub(crate) initiator: &'static str,
    pub(crate) status: &'static str,
}

/// `quic:connection_state_updated`.
#[derive(Serialize)]
pub(crate) struct ConnectionState {
    pub(crate) new: &'static str,
}

impl ConnectionState {
    /// `None` for states that the draft doesn't have.
    pub(crate) fn new(stage: HandshakeStage) -> Option<Self> {
        let new = match stage {
            HandshakeStage::Started => "handshake_started",
            HandshakeStage::Complete => "handshake_complete",
            HandshakeStage::Confirmed => "handshake_confirmed",
            _ => return None,
        };
        Some(Self { new })
    }
}

/// `quic:connection_id_updated`: the peer's.
#[derive(Serialize)]
pub(crate) struct ConnectionIdUpdated<'a> {
    initiator: &'static str,
    old: Hex<'a>,
    new: Hex<'a>,
}

impl<'a> ConnectionIdUpdated<'a> {
    pub(crate) fn new(before: &'a ConnectionId, cid: &'a ConnectionId) -> Self {
        Self {
            initiator: "remote",
            old: Hex::new(before.as_bytes()),
            new: Hex::new(cid.as_bytes()),
        }
    }
}

/// `quic:version_information`.
#[derive(Default, Serialize)]
pub(crate) struct VersionInformation {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) server_versions: Vec<Version>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) client_versions: Vec<Version>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) chosen_version: Option<Version>,
}

/// Most versions listed; a peer determines their number.
const MAX_VERSIONS: usize = 64;

/// Versions as the draft writes them.
pub(crate) fn versions(versions: &[u32]) -> Vec<Version> {
    let listed = versions.iter().take(MAX_VERSIONS);
    listed.map(|&version| Version(version)).collect()
}

/// `quic:alpn_information`.
#[derive(Serialize)]
pub(crate) struct AlpnInformation<'a> {
    chosen_alpn: Alpn<'a>,
}

#[derive(Serialize)]
struct Alpn<'a> {
    byte_value: Hex<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    string_value: Option<&'a str>,
}

impl<'a> AlpnInformation<'a> {
    pub(crate) fn new(protocol: &'a [u8]) -> Self {
        Self {
            chosen_alpn: Alpn {
                byte_value: Hex::new(protocol),
                string_value: std::str::from_utf8(protocol).ok().map(shortened),
            },
        }
    }
}

/// `quic:parameters_set`. Stateless reset tokens are left out: readers of the log could misuse them.
#[derive(Serialize)]
pub(crate) struct ParametersSet<'a> {
    initiator: &'static str,
    /// The same under its name in qlog 0.3.
    owner: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    original_destination_connection_id: Option<Hex<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    initial_source_connection_id: Option<Hex<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_source_connection_id: Option<Hex<'a>>,
    disable_active_migration: bool,
    max_idle_timeout: u64,
    max_udp_payload_size: u64,
    ack_delay_exponent: u8,
    max_ack_delay: u64,
    active_connection_id_limit: u64,
    initial_max_data: u64,
    initial_max_stream_data_bidi_local: u64,
    initial_max_stream_data_bidi_remote: u64,
    initial_max_stream_data_uni: u64,
    initial_max_streams_bidi: u64,
    initial_max_streams_uni: u64,
    max_datagram_frame_size: u64,
    grease_quic_bit: bool,
    reset_stream_at: bool,
    /// RFC 10069; the drafts of qlog don't have it.
    #[serde(skip_serializing_if = "Option::is_none")]
    initial_max_path_id: Option<u32>,
    /// draft-ietf-quic-ack-frequency; milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    min_ack_delay: Option<f64>,
}

impl<'a> ParametersSet<'a> {
    pub(crate) fn new(owner: Owner, parameters: &'a TransportParameters) -> Self {
        let cid = |cid: &'a Option<ConnectionId>| cid.as_ref().map(|cid| Hex::new(cid.as_bytes()));
        let whole =
            |duration: std::time::Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        let of = parameters;
        Self {
            initiator: initiator(owner),
            owner: initiator(owner),
            original_destination_connection_id: cid(&of.original_destination_connection_id),
            initial_source_connection_id: cid(&of.initial_source_connection_id),
            retry_source_connection_id: cid(&of.retry_source_connection_id),
            disable_active_migration: of.disable_active_migration,
            max_idle_timeout: whole(of.max_idle_timeout),
            max_udp_payload_size: of.max_udp_payload_size,
            ack_delay_exponent: of.ack_delay_exponent,
            max_ack_delay: whole(of.max_ack_delay),
            active_connection_id_limit: of.active_connection_id_limit,
            initial_max_data: of.initial_max_data,
            initial_max_stream_data_bidi_local: of.initial_max_stream_data_bidi_local,
            initial_max_stream_data_bidi_remote: of.initial_max_stream_data_bidi_remote,
            initial_max_stream_data_uni: of.initial_max_stream_data_uni,
            initial_max_streams_bidi: of.initial_max_streams_bidi,
            initial_max_streams_uni: of.initial_max_streams_uni,
            max_datagram_frame_size: of.max_datagram_frame_size,
            grease_quic_bit: of.grease_quic_bit,
            reset_stream_at: of.reset_stream_at,
            initial_max_path_id: of.initial_max_path_id,
            min_ack_delay: of.min_ack_delay.map(millis),
        }
    }
}
