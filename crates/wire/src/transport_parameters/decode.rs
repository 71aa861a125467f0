//! Decodes and checks transport parameters.

use std::net::{SocketAddrV4, SocketAddrV6};
use std::time::Duration;

use swiftwater_units::Side;

use super::{
    PreferredAddress, TransportParameterError, TransportParameters, VersionInformation, id,
};
use crate::coding::Reader;
use crate::connection_id::{ConnectionId, ResetToken};
use crate::error::DecodeError;
use crate::frame::{MAX_FEEDBACK_SIZE, MAX_STREAMS};

use TransportParameterError::{Duplicate, Invalid, Malformed, ServerOnly};

pub(super) fn decode(
    bytes: &[u8],
    sender: Side,
) -> Result<TransportParameters, TransportParameterError> {
    let mut params = TransportParameters::default();
    let mut seen_small = 0_u64;
    let mut seen_large = Vec::new();
    let mut r = Reader::new(bytes);
    while !r.is_empty() {
        let id = r.varint().map_err(malformed)?;
        let value = r.length_prefixed().map_err(malformed)?;
        if id < 64 {
            if seen_small & (1 << id) != 0 {
                return Err(Duplicate(id));
            }
            seen_small |= 1 << id;
        } else {
            seen_large.push(id);
        }
        if sender.is_client() && id::is_server_only(id) {
            return Err(ServerOnly(id));
        }
        let r = Reader::new(value);
        set(&mut params, sender, id, Value { id, r })?;
    }
    // Sorting avoids quadratic time for a long list of large identifiers.
    seen_large.sort_unstable();
    if let Some(pair) = seen_large.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(Duplicate(pair[0]));
    }
    if params
        .min_ack_delay
        .is_some_and(|delay| delay > params.max_ack_delay)
    {
        return Err(Invalid {
            id: id::MIN_ACK_DELAY,
            reason: "above max_ack_delay",
        });
    }
    Ok(params)
}

fn malformed(_: DecodeError) -> TransportParameterError {
    Malformed
}

fn set(
    params: &mut TransportParameters,
    sender: Side,
    id: u64,
    value: Value<'_>,
) -> Result<(), TransportParameterError> {
    match id {
        id::ORIGINAL_DESTINATION_CONNECTION_ID => {
            params.original_destination_connection_id = Some(value.cid()?);
        }
        id::MAX_IDLE_TIMEOUT => {
            params.max_idle_timeout = Duration::from_millis(value.integer()?);
        }
        id::STATELESS_RESET_TOKEN => params.stateless_reset_token = Some(value.token()?),
        id::MAX_UDP_PAYLOAD_SIZE => {
            params.max_udp_payload_size = value.at_least(1200, "below 1200 bytes")?;
        }
        id::ACK_DELAY_EXPONENT => {
            params.ack_delay_exponent = value.at_most(20, "above 20")? as u8;
        }
        id::MAX_ACK_DELAY => {
            let millis = value.at_most((1 << 14) - 1, "2^14 milliseconds or more")?;
            params.max_ack_delay = Duration::from_millis(millis);
        }
        id::DISABLE_ACTIVE_MIGRATION => {
            value.end()?;
            params.disable_active_migration = true;
        }
        id::PREFERRED_ADDRESS => params.preferred_address = Some(value.preferred_address()?),
        id::ACTIVE_CONNECTION_ID_LIMIT => {
            params.active_connection_id_limit = value.at_least(2, "below 2")?;
        }
        id::INITIAL_SOURCE_CONNECTION_ID => {
            params.initial_source_connection_id = Some(value.cid()?);
        }
        id::RETRY_SOURCE_CONNECTION_ID => params.retry_source_connection_id = Some(value.cid()?),
        id::MAX_DATAGRAM_FRAME_SIZE => params.max_datagram_frame_size = value.integer()?,
        id::VERSION_INFORMATION => {
            params.version_information = Some(value.version_information(sender)?);
        }
        id if is_flow_limit(id) => set_flow_limit(params, id, value)?,
        _ => set_extension(params, id, value)?,
    }
    Ok(())
}

/// True for the initial limits of flow control (RFC 9000, section 4).
const fn is_flow_limit(id: u64) -> bool {
    matches!(
        id,
        id::INITIAL_MAX_DATA
            | id::INITIAL_MAX_STREAM_DATA_BIDI_LOCAL
            | id::INITIAL_MAX_STREAM_DATA_BIDI_REMOTE
            | id::INITIAL_MAX_STREAM_DATA_UNI
            | id::INITIAL_MAX_STREAMS_BIDI
            | id::INITIAL_MAX_STREAMS_UNI
    )
}

fn set_flow_limit(
    params: &mut TransportParameters,
    id: u64,
    value: Value<'_>,
) -> Result<(), TransportParameterError> {
    let limit = match id {
        id::INITIAL_MAX_STREAMS_BIDI | id::INITIAL_MAX_STREAMS_UNI => {
            value.at_most(MAX_STREAMS, "above 2^60 streams")?
        }
        _ => value.integer()?,
    };
    let field = match id {
        id::INITIAL_MAX_STREAM_DATA_BIDI_LOCAL => &mut params.initial_max_stream_data_bidi_local,
        id::INITIAL_MAX_STREAM_DATA_BIDI_REMOTE => &mut params.initial_max_stream_data_bidi_remote,
        id::INITIAL_MAX_STREAM_DATA_UNI => &mut params.initial_max_stream_data_uni,
        id::INITIAL_MAX_STREAMS_BIDI => &mut params.initial_max_streams_bidi,
        id::INITIAL_MAX_STREAMS_UNI => &mut params.initial_max_streams_uni,
        _ => &mut params.initial_max_data,
    };
    *field = limit;
    Ok(())
}

/// Sets a parameter of an extension; one that is not known is ignored (RFC 9000, section 7.4.2).
fn set_extension(
    params: &mut TransportParameters,
    id: u64,
    value: Value<'_>,
) -> Result<(), TransportParameterError> {
    match id {
        id::RESET_STREAM_AT | id::RESET_STREAM_AT_EARLY => {
            value.end()?;
            params.reset_stream_at = true;
        }
        id::INITIAL_MAX_PATH_ID | id::INITIAL_MAX_PATH_ID_DRAFT10 => {
            let max = value.at_most(u64::from(u32::MAX), "above 2^32 - 1")? as u32;
            let declared = if id == id::INITIAL_MAX_PATH_ID {
                &mut params.initial_max_path_id
            } else {
                &mut params.initial_max_path_id_draft10
            };
            *declared = Some(max);
        }
        id::GREASE_QUIC_BIT => {
            value.end()?;
            params.grease_quic_bit = true;
        }
        id::MAX_FEEDBACK_SIZE => {
            let largest = MAX_FEEDBACK_SIZE as u64;
            params.max_feedback_size = value.at_most(largest, "above 64 bytes")? as u8;
        }
        id::MIN_ACK_DELAY => {
            params.min_ack_delay = Some(Duration::from_micros(value.integer()?));
        }
        _ => {}
    }
    Ok(())
}

/// The value of one parameter, which must be consumed completely.
struct Value<'a> {
    id: u64,
    r: Reader<'a>,
}

impl Value<'_> {
    fn invalid(&self, reason: &'static str) -> TransportParameterError {
        Invalid {
            id: self.id,
            reason,
        }
    }

    fn end(self) -> Result<(), TransportParameterError> {
        if self.r.is_empty() {
            Ok(())
        } else {
            Err(Malformed)
        }
    }

    fn integer(mut self) -> Result<u64, TransportParameterError> {
        let n = self.r.varint().map_err(malformed)?;
        self.end()?;
        Ok(n)
    }

    fn at_most(self, max: u64, reason: &'static str) -> Result<u64, TransportParameterError> {
        let invalid = self.invalid(reason);
        self.integer()
            .and_then(|n| if n <= max { Ok(n) } else { Err(invalid) })
    }

    fn at_least(self, min: u64, reason: &'static str) -> Result<u64, TransportParameterError> {
        let invalid = self.invalid(reason);
        self.integer()
            .and_then(|n| if n >= min { Ok(n) } else { Err(invalid) })
    }

    fn cid(mut self) -> Result<ConnectionId, TransportParameterError> {
        ConnectionId::new(self.r.take_rest())
            .ok_or_else(|| self.invalid("a connection ID of more than 20 bytes"))
    }

    fn token(mut self) -> Result<ResetToken, TransportParameterError> {
        let token = ResetToken(self.r.array().map_err(malformed)?);
        self.end()?;
        Ok(token)
    }

    /// A server may omit its chosen version from the available ones; a client must not (RFC 9368,
    /// sections 3 and 4).
    fn version_information(
        mut self,
        sender: Side,
    ) -> Result<VersionInformation, TransportParameterError> {
        let (versions, rest) = self.r.take_rest().as_chunks::<4>();
        let mut versions = versions.iter().map(|&version| u32::from_be_bytes(version));
        let Some(chosen) = versions.next().filter(|_| rest.is_empty()) else {
            return Err(Malformed);
        };
        let available = versions.clone();
        if chosen == 0 || available.clone().any(|version| version == 0) {
            return Err(self.invalid("version 0 can be neither chosen nor available"));
        }
        if sender.is_client() && available.clone().all(|version| version != chosen) {
            return Err(self.invalid("the chosen version is not among the available ones"));
        }
        Ok(VersionInformation::new(chosen, available))
    }

    /// All zeros mean no address. An empty connection ID is an error: with it the connection can't
    /// be identified at the other address.
    fn preferred_address(mut self) -> Result<PreferredAddress, TransportParameterError> {
        let ipv4 = self.r.array::<4>().map_err(malformed)?;
        let ipv4 = SocketAddrV4::new(ipv4.into(), self.r.u16().map_err(malformed)?);
        let ipv6 = self.r.array::<16>().map_err(malformed)?;
        let ipv6 = SocketAddrV6::new(ipv6.into(), self.r.u16().map_err(malformed)?, 0, 0);
        let length = usize::from(self.r.u8().map_err(malformed)?);
        if length == 0 {
            return Err(self.invalid("an empty connection ID"));
        }
        let cid = ConnectionId::new(self.r.bytes(length).map_err(malformed)?)
            .ok_or_else(|| self.invalid("a connection ID of more than 20 bytes"))?;
        Ok(PreferredAddress {
            ipv4: Some(ipv4).filter(|addr| !addr.ip().is_unspecified() || addr.port() != 0),
            ipv6: Some(ipv6).filter(|addr| !addr.ip().is_unspecified() || addr.port() != 0),
            cid,
            reset_token: self.token()?,
        })
    }
}
