//! Names of events.
//!
//! Each has the name of the current drafts and the category of qlog 0.3, which readers of that version
//! require.

/// An event: `namespace:type`, and its category in qlog 0.3.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Name(pub(crate) &'static str, pub(crate) &'static str);

macro_rules! names {
    ($($constant:ident = $name:literal, $category:literal;)*) => {
        $(pub(crate) const $constant: Name = Name($name, $category);)*
    };
}

names! {
    CONNECTION_STARTED = "quic:connection_started", "connectivity";
    CONNECTION_CLOSED = "quic:connection_closed", "connectivity";
    CONNECTION_STATE = "quic:connection_state_updated", "connectivity";
    CONNECTION_ID = "quic:connection_id_updated", "connectivity";
    MIGRATION = "quic:migration_state_updated", "connectivity";
    TUPLE = "quic:tuple_assigned", "connectivity";
    PATH_OPENED = "swiftwater:path_opened", "swiftwater";
    PATH_ABANDONED = "swiftwater:path_abandoned", "swiftwater";
    PATH_STATUS = "swiftwater:path_status_updated", "swiftwater";
    MTU = "quic:mtu_updated", "connectivity";
    VERSION = "quic:version_information", "transport";
    ALPN = "quic:alpn_information", "transport";
    PARAMETERS = "quic:parameters_set", "transport";
    PACKET_SENT = "quic:packet_sent", "transport";
    PACKET_RECEIVED = "quic:packet_received", "transport";
    PACKET_DROPPED = "quic:packet_dropped", "transport";
    PACKET_BUFFERED = "quic:packet_buffered", "transport";
    STREAM_STATE = "quic:stream_state_updated", "transport";
    DATA_BLOCKED = "quic:connection_data_blocked_updated", "transport";
    KEY_UPDATED = "quic:key_updated", "security";
    KEY_DISCARDED = "quic:key_discarded", "security";
    RECOVERY_PARAMETERS = "quic:recovery_parameters_set", "recovery";
    METRICS = "quic:recovery_metrics_updated", "recovery";
    METRICS_OF_OLD = "recovery:metrics_updated", "recovery";
    CONGESTION_STATE = "quic:congestion_state_updated", "recovery";
    TIMER = "quic:timer_updated", "recovery";
    PACKET_LOST = "quic:packet_lost", "recovery";
    ECN_STATE = "quic:ecn_state_updated", "recovery";
    DATA_LOST = "swiftwater:data_lost", "swiftwater";
    REPLICA_SENT = "swiftwater:replica_sent", "swiftwater";
    DATA_RECOVERED = "swiftwater:data_recovered", "swiftwater";
    REDUNDANCY_LEVEL = "swiftwater:redundancy_level", "swiftwater";
    DATAGRAM_FATE = "swiftwater:datagram_fate", "swiftwater";
    EARLY_DATA = "swiftwater:early_data_decided", "swiftwater";
    LOG_ENDED = "swiftwater:log_ended", "swiftwater";
}
