//! Encodes transport parameters.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddrV4, SocketAddrV6};
use std::time::Duration;

use swiftwater_units::Side;

use super::{PreferredAddress, TransportParameters, VersionInformation, id};
use crate::coding::Writer;
use crate::varint::VarInt;

pub(super) fn encode(
    params: &TransportParameters,
    side: Side,
    out: &mut Vec<u8>,
    grease: Option<(u64, &[u8])>,
) {
    let absent = TransportParameters::default();
    let mut put = Parameters { out, side };
    put.cid(
        id::ORIGINAL_DESTINATION_CONNECTION_ID,
        params.original_destination_connection_id,
    );
    put.integer(id::MAX_IDLE_TIMEOUT, millis(params.max_idle_timeout), 0);
    if let Some(token) = params.stateless_reset_token {
        put.bytes(id::STATELESS_RESET_TOKEN, &token.0);
    }
    for ((id, value), (_, default)) in limits(params).into_iter().zip(limits(&absent)) {
        put.integer(id, value, default);
    }
    if params.disable_active_migration {
        put.bytes(id::DISABLE_ACTIVE_MIGRATION, &[]);
    }
    if let Some(preferred) = &params.preferred_address {
        put.preferred_address(preferred);
    }
    put.integer(
        id::ACTIVE_CONNECTION_ID_LIMIT,
        params.active_connection_id_limit,
        absent.active_connection_id_limit,
    );
    put.cid(
        id::INITIAL_SOURCE_CONNECTION_ID,
        params.initial_source_connection_id,
    );
    put.cid(
        id::RETRY_SOURCE_CONNECTION_ID,
        params.retry_source_connection_id,
    );
    if let Some(versions) = &params.version_information {
        put.version_information(versions);
    }
    put.extensions(params);
    if let Some((id, value)) = grease {
        debug_assert!(id % 31 == 27, "{id:#x} is not reserved for greasing");
        put.bytes(id, value);
    }
}

/// The integer parameters, identifier and value.
fn limits(params: &TransportParameters) -> [(u64, u64); 9] {
    let bidi_local = params.initial_max_stream_data_bidi_local;
    let bidi_remote = params.initial_max_stream_data_bidi_remote;
    [
        (id::MAX_UDP_PAYLOAD_SIZE, params.max_udp_payload_size),
        (id::INITIAL_MAX_DATA, params.initial_max_data),
        (id::INITIAL_MAX_STREAM_DATA_BIDI_LOCAL, bidi_local),
        (id::INITIAL_MAX_STREAM_DATA_BIDI_REMOTE, bidi_remote),
        (
            id::INITIAL_MAX_STREAM_DATA_UNI,
            params.initial_max_stream_data_uni,
        ),
        (
            id::INITIAL_MAX_STREAMS_BIDI,
            params.initial_max_streams_bidi,
        ),
        (id::INITIAL_MAX_STREAMS_UNI, params.initial_max_streams_uni),
        (id::ACK_DELAY_EXPONENT, u64::from(params.ack_delay_exponent)),
        (id::MAX_ACK_DELAY, millis(params.max_ack_delay)),
    ]
}

/// Whole milliseconds, rounded up: a small timeout must not become 0, which means none.
fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}

/// The encoded parameters so far, and the role of their sender.
struct Parameters<'a> {
    out: &'a mut Vec<u8>,
    side: Side,
}

impl Parameters<'_> {
    fn bytes(&mut self, id: u64, value: &[u8]) {
        if self.side.is_client() && id::is_server_only(id) {
            return;
        }
        push_varint(self.out, id);
        push_varint(self.out, value.len() as u64);
        self.out.extend_from_slice(value);
    }

    fn varint(&mut self, id: u64, value: u64) {
        let mut buf = [0; 8];
        let mut w = Writer::new(&mut buf);
        w.varint(VarInt::saturating(value).get());
        let len = w.written();
        self.bytes(id, &buf[..len]);
    }

    fn integer(&mut self, id: u64, value: u64, default: u64) {
        if value != default {
            self.varint(id, value);
        }
    }

    fn cid(&mut self, id: u64, cid: Option<crate::ConnectionId>) {
        if let Some(cid) = cid {
            self.bytes(id, cid.as_bytes());
        }
    }

    fn version_information(&mut self, versions: &VersionInformation) {
        push_varint(self.out, id::VERSION_INFORMATION);
        push_varint(self.out, 4 * (1 + versions.available().len() as u64));
        for version in [versions.chosen].iter().chain(versions.available()) {
            self.out.extend_from_slice(&version.to_be_bytes());
        }
    }

    /// The parameters of extensions.
    fn extensions(&mut self, params: &TransportParameters) {
        if params.reset_stream_at {
            self.bytes(id::RESET_STREAM_AT, &[]);
        }
        self.integer(
            id::MAX_DATAGRAM_FRAME_SIZE,
            params.max_datagram_frame_size,
            0,
        );
        if let Some(max) = params.initial_max_path_id {
            self.varint(id::INITIAL_MAX_PATH_ID, u64::from(max));
        }
        if params.grease_quic_bit {
            self.bytes(id::GREASE_QUIC_BIT, &[]);
        }
        self.integer(
            id::MAX_FEEDBACK_SIZE,
            u64::from(params.max_feedback_size),
            0,
        );
        if let Some(delay) = params.min_ack_delay {
            let micros = u64::try_from(delay.as_micros()).unwrap_or(u64::MAX);
            self.varint(id::MIN_ACK_DELAY, micros);
        }
        if params.reset_stream_at {
            self.bytes(id::RESET_STREAM_AT_EARLY, &[]);
        }
        if let Some(max) = params.initial_max_path_id_draft10 {
            self.varint(id::INITIAL_MAX_PATH_ID_DRAFT10, u64::from(max));
        }
    }

    /// An address family without an address is all zeros.
    fn preferred_address(&mut self, preferred: &PreferredAddress) {
        const MAX_SIZE: usize = 4 + 2 + 16 + 2 + 1 + crate::MAX_CID_LEN + 16;
        let none_v4 = SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0);
        let none_v6 = SocketAddrV6::new(Ipv6Addr::UNSPECIFIED, 0, 0, 0);
        let ipv4 = preferred.ipv4.unwrap_or(none_v4);
        let ipv6 = preferred.ipv6.unwrap_or(none_v6);
        let mut buf = [0; MAX_SIZE];
        let mut w = Writer::new(&mut buf);
        w.bytes(&ipv4.ip().octets());
        w.u16(ipv4.port());
        w.bytes(&ipv6.ip().octets());
        w.u16(ipv6.port());
        w.u8(preferred.cid.len() as u8);
        w.bytes(preferred.cid.as_bytes());
        w.bytes(&preferred.reset_token.0);
        let len = w.written();
        self.bytes(id::PREFERRED_ADDRESS, &buf[..len]);
    }
}

fn push_varint(out: &mut Vec<u8>, n: u64) {
    let mut buf = [0; 8];
    let mut w = Writer::new(&mut buf);
    w.varint(n);
    let len = w.written();
    out.extend_from_slice(&buf[..len]);
}
