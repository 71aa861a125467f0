//! The first record of a log: what kind of file it is, whose, and which vocabularies it uses.

use serde::Serialize;
use swiftwater_units::Side;

/// Schema of the file (main schema, section 5).
const FILE_SCHEMA: &str = "urn:ietf:params:qlog:file:sequential";

/// Media type of the serialization (main schema, section 11.2).
const SERIALIZATION_FORMAT: &str = "application/qlog+json-seq";

/// The event schemas of every log: the QUIC events of draft 13, our own events, and the fields that
/// we add to the draft's. Private schemas are named by a URI with the month of their making (main
/// schema, section 8.1).
pub const EVENT_SCHEMAS: [&str; 3] = [
    "urn:ietf:params:qlog:events:quic-13",
    "https://github.com/swiftwater/swiftwater/112026/qlog/swiftwater",
    "https://github.com/swiftwater/swiftwater/112026/qlog/quic#swiftwater",
];

/// Whose log it is.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct TraceInfo {
    /// Which end of the connection writes it.
    pub side: Side,
    /// Name of the connection, unique among the logs that are looked at together. (The draft
    /// recommends the original destination connection ID, which observers are not told.)
    pub group_id: String,
    /// Calendar time at which logging began, after RFC 3339; `None` where time is virtual or secret.
    pub wall_clock: Option<String>,
}

#[derive(Serialize)]
pub(crate) struct Header<'a> {
    file_schema: &'static str,
    serialization_format: &'static str,
    title: &'a str,
    trace: Trace<'a>,
}

#[derive(Serialize)]
struct Trace<'a> {
    common_fields: CommonFields<'a>,
    vantage_point: VantagePoint,
    event_schemas: [&'static str; 3],
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
    epoch: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    wall_clock_time: Option<&'a str>,
}

#[derive(Serialize)]
struct VantagePoint {
    name: &'static str,
    r#type: &'static str,
}

impl<'a> Header<'a> {
    pub(crate) fn new(info: &'a TraceInfo) -> Self {
        Self {
            file_schema: FILE_SCHEMA,
            serialization_format: SERIALIZATION_FORMAT,
            title: &info.group_id,
            trace: Trace {
                common_fields: CommonFields {
                    group_id: &info.group_id,
                    time_format: "relative_to_epoch",
                    reference_time: ReferenceTime {
                        clock_type: "monotonic",
                        epoch: "unknown",
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

/// The draft's word for a side.
pub(crate) fn side_name(side: Side) -> &'static str {
    match side {
        Side::Client => "client",
        Side::Server => "server",
    }
}
