//! The header record of a log: format, vantage point and event schemas.

use serde::Serialize;
use swiftwater_units::Side;

/// Schema of the file (main schema, section 5).
const FILE_SCHEMA: &str = "urn:ietf:params:qlog:file:sequential";

/// Media type of the serialization (main schema, section 11.2).
const SERIALIZATION_FORMAT: &str = "application/qlog+json-seq";

/// Version and format under the names of qlog before its draft 11, for older readers such as the
/// present qvis.
const VERSION_OF_OLD: (&str, &str) = ("0.3", "JSON-SEQ");

/// The event schemas of every log: the QUIC events of draft 13, the events of this project, its
/// additional fields in the draft's events, and the one event that is also written under its old name.
/// Private schemas are named by a URI with the month of their creation (main schema, section 8.1).
pub const EVENT_SCHEMAS: [&str; 4] = [
    "urn:ietf:params:qlog:events:quic-13",
    "https://github.com/swiftwater/swiftwater/112026/qlog/swiftwater",
    "https://github.com/swiftwater/swiftwater/112026/qlog/quic#swiftwater",
    "https://github.com/swiftwater/swiftwater/112026/qlog/recovery",
];

/// The vantage point of a log.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct TraceInfo {
    /// The end of the connection that writes it.
    pub side: Side,
    /// Name of the log, unique among logs that are viewed together. It is the title; the draft's
    /// `group_id` is the original destination connection ID, the same at both ends, or this name if
    /// that is unknown.
    pub group_id: String,
    /// Calendar time at the start of logging, by RFC 3339; `None` if time is virtual or
    /// confidential.
    pub wall_clock: Option<String>,
}

#[derive(Serialize)]
pub(crate) struct Header<'a> {
    qlog_version: &'static str,
    qlog_format: &'static str,
    file_schema: &'static str,
    serialization_format: &'static str,
    title: &'a str,
    trace: Trace<'a>,
}

#[derive(Serialize)]
struct Trace<'a> {
    common_fields: CommonFields<'a>,
    vantage_point: VantagePoint,
    event_schemas: [&'static str; 4],
}

#[derive(Serialize)]
struct CommonFields<'a> {
    group_id: &'a str,
    time_format: &'static str,
    reference_time: ReferenceTime<'a>,
}

#[derive(Serialize)]
struct ReferenceTime<'a> {
    clock_type: &'static str,
    level: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    wall_clock_time: Option<&'a str>,
}

#[derive(Serialize)]
struct VantagePoint {
    name: &'static str,
    r#type: &'static str,
}

impl<'a> Header<'a> {
    /// `odcid` is the original destination connection ID in hexadecimal, if known.
    pub(crate) fn new(info: &'a TraceInfo, odcid: Option<&'a str>) -> Self {
        Self {
            qlog_version: VERSION_OF_OLD.0,
            qlog_format: VERSION_OF_OLD.1,
            file_schema: FILE_SCHEMA,
            serialization_format: SERIALIZATION_FORMAT,
            title: &info.group_id,
            trace: Trace {
                common_fields: CommonFields {
                    group_id: odcid.unwrap_or(&info.group_id),
                    time_format: "relative_to_epoch",
                    reference_time: ReferenceTime {
                        clock_type: "monotonic",
                        level: "unknown",
                        wall_clock_time: info.wall_clock.as_deref(),
                    },
                },
                vantage_point: VantagePoint {
                    name: "swiftwater",
                    r#type: side_name(info.side),
                },
                event_schemas: EVENT_SCHEMAS,
            },
        }
    }
}

/// The draft's value for a side.
pub(crate) fn side_name(side: Side) -> &'static str {
    match side {
        Side::Client => "client",
        Side::Server => "server",
    }
}
