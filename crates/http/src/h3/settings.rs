//! SETTINGS (RFC 9114, section 7.2.4; RFC 9204, section 5; RFC 9220, section 3; RFC 9297, section
//! 2.1.1): the settings of an endpoint, sent once.

use swiftwater_wire::Reader;

use super::code::Code;
use super::error::Fault;
use super::stream_type::put_int;

const QPACK_MAX_TABLE_CAPACITY: u64 = 0x01;
const MAX_FIELD_SECTION_SIZE: u64 = 0x06;
const QPACK_BLOCKED_STREAMS: u64 = 0x07;
const ENABLE_CONNECT_PROTOCOL: u64 = 0x08;
const H3_DATAGRAM: u64 = 0x33;
/// H3_DATAGRAM of draft-ietf-masque-h3-datagram-04, still sent by browsers.
const H3_DATAGRAM_DRAFT04: u64 = 0xff_d277;
/// SETTINGS_ENABLE_WEBTRANSPORT of draft-ietf-webtrans-http3-02.
const ENABLE_WEBTRANSPORT: u64 = 0x2b60_3742;
/// SETTINGS_WEBTRANSPORT_MAX_SESSIONS of draft-ietf-webtrans-http3-07.
const WEBTRANSPORT_MAX_SESSIONS: u64 = 0xc671_706a;
/// SETTINGS_WT_MAX_SESSIONS of draft-ietf-webtrans-http3-14; more than 1 would ask for its flow control
/// of sessions.
const WT_MAX_SESSIONS: u64 = 0x14e9_cd29;

/// An end's settings. The default applies before SETTINGS are received (RFC 9114, section 7.2.4.1).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Settings {
    /// Largest dynamic table of its QPACK decoder, bytes; 0 for none.
    pub qpack_max_table_capacity: u64,
    /// Streams that may be blocked on its decoder's table at once.
    pub qpack_blocked_streams: u64,
    /// Largest field section that it accepts (RFC 9114, section 4.2.2); `None` for no stated limit.
    pub max_field_section_size: Option<u64>,
    /// Extended CONNECT is understood (RFC 9220). Only servers send it.
    pub enable_connect_protocol: bool,
    /// HTTP datagrams are understood (RFC 9297).
    pub h3_datagram: bool,
    /// Concurrent WebTransport sessions that it accepts; 0 for none. 1 if only the older setting
    /// without a number was sent.
    pub webtransport_sessions: u64,
}

impl Settings {
    /// The payload of the SETTINGS frame, without default values; also the form in which an
    /// application may store them for early data (RFC 9114, section 7.2.4.2).
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let mut put = |id, value| {
            if value > 0 {
                put_int(&mut out, id);
                put_int(&mut out, value);
            }
        };
        put(QPACK_MAX_TABLE_CAPACITY, self.qpack_max_table_capacity);
        put(QPACK_BLOCKED_STREAMS, self.qpack_blocked_streams);
        put(ENABLE_CONNECT_PROTOCOL, self.enable_connect_protocol.into());
        put(H3_DATAGRAM, self.h3_datagram.into());
        if self.webtransport_sessions > 0 {
            // Browsers of the time of the drafts require the older identifiers too.
            put(H3_DATAGRAM_DRAFT04, self.h3_datagram.into());
            put(ENABLE_WEBTRANSPORT, 1);
            put(WEBTRANSPORT_MAX_SESSIONS, self.webtransport_sessions);
            put(WT_MAX_SESSIONS, 1);
        }
        if let Some(size) = self.max_field_section_size {
            // Zero is not the default here.
            put_int(&mut out, MAX_FIELD_SECTION_SIZE);
            put_int(&mut out, size);
        }
        out
    }

    /// The settings of [`Settings::to_bytes`]; `None` if the bytes are malformed.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        Self::parse(bytes).ok()
    }

    /// Reads the payload of a SETTINGS frame; unknown settings are ignored.
    pub(crate) fn parse(payload: &[u8]) -> Result<Self, Fault> {
        let mut settings = Self::default();
        let mut reader = Reader::new(payload);
        let mut seen = Vec::new();
        while !reader.is_empty() {
            let truncated = |_| Fault::connection(Code::FRAME_ERROR, "truncated SETTINGS");
            let id = reader.varint().map_err(truncated)?;
            let value = reader.varint().map_err(truncated)?;
            seen.push(id);
            settings.set(id, value)?;
        }
        seen.sort_unstable();
        if seen.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err(error("a repeated setting"));
        }
        Ok(settings)
    }

    fn set(&mut self, id: u64, value: u64) -> Result<(), Fault> {
        match id {
            QPACK_MAX_TABLE_CAPACITY => self.qpack_max_table_capacity = value,
            QPACK_BLOCKED_STREAMS => self.qpack_blocked_streams = value,
            MAX_FIELD_SECTION_SIZE => self.max_field_section_size = Some(value),
            ENABLE_CONNECT_PROTOCOL => self.enable_connect_protocol = flag(value)?,
            H3_DATAGRAM | H3_DATAGRAM_DRAFT04 => self.h3_datagram |= flag(value)?,
            ENABLE_WEBTRANSPORT => {
                let sessions = u64::from(flag(value)?);
                self.webtransport_sessions = self.webtransport_sessions.max(sessions);
            }
            WEBTRANSPORT_MAX_SESSIONS | WT_MAX_SESSIONS => {
                self.webtransport_sessions = self.webtransport_sessions.max(value);
            }
            // Settings of HTTP/2 that are not defined for HTTP/3 (RFC 9114, section 7.2.4.1).
            0x00 | 0x02..=0x05 => return Err(error("a setting of HTTP/2")),
            _ => {}
        }
        Ok(())
    }

    /// Checks these settings of a server that accepted early data against those that the client
    /// remembered (RFC 9114, section 7.2.4.2; RFC 9204, section 3.2.3; RFC 9220, section 3).
    pub(crate) fn check_against(&self, remembered: &Self) -> Result<(), Fault> {
        if remembered.qpack_max_table_capacity != 0
            && remembered.qpack_max_table_capacity != self.qpack_max_table_capacity
        {
            return Err(Fault::connection(
                Code::QPACK_DECODER_STREAM_ERROR,
                "the table's capacity changed although early data were accepted",
            ));
        }
        let no_limit = u64::MAX;
        let smaller = self.qpack_blocked_streams < remembered.qpack_blocked_streams
            || self.max_field_section_size.unwrap_or(no_limit)
                < remembered.max_field_section_size.unwrap_or(no_limit)
            || self.max_field_section_size.is_none() && remembered.max_field_section_size.is_some()
            || !self.enable_connect_protocol && remembered.enable_connect_protocol
            || !self.h3_datagram && remembered.h3_datagram
            || self.webtransport_sessions < remembered.webtransport_sessions;
        if smaller {
            return Err(error(
                "less than remembered, although early data were accepted",
            ));
        }
        Ok(())
    }
}

fn flag(value: u64) -> Result<bool, Fault> {
    match value {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(error("a boolean setting that is neither 0 nor 1")),
    }
}

fn error(reason: &'static str) -> Fault {
    Fault::connection(Code::SETTINGS_ERROR, reason)
}
