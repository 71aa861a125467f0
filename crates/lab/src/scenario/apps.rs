//! The application of a flow: its keys and values.

use std::sync::Arc;
use std::time::Duration;

use swiftwater_link::{Buffer, ParseError};
use swiftwater_media::protection::SchemeTables;
use swiftwater_policies::ReinjectorCatalogue;
use swiftwater_units::{Bandwidth, ByteCount};

use super::error::{Read, known_names};
use super::flows::Sizes;
use super::reader::{LONGEST, Reader};
use super::setup::{App, SizeDistribution, Spread};
use super::tree::Value;
use super::{session, sizes};
use super::{streaming, video, web};

/// Most bytes of one transfer, 1 PB.
const MAX_BYTES: u64 = 1_000_000_000_000_000;

/// Most transfers per second of a group.
const MAX_PER_SECOND: f64 = 1e6;

/// Context of the flow.
pub(super) struct Place<'a> {
    /// Mean rate of the first link on its path.
    pub(super) bottleneck: Option<Bandwidth>,
    pub(super) sizes: Sizes<'a>,
    pub(super) policies: &'a ReinjectorCatalogue,
    pub(super) tables: &'a Arc<SchemeTables>,
}

type ReadApp = fn(&Reader<'_>, &Place<'_>) -> Read<App>;

/// The applications: name, keys, parser.
const APPS: [(&str, &[&str], ReadApp); 12] = [
    ("bulk", &[], |_, _| Ok(App::Bulk)),
    ("transfer", &["bytes"], transfer),
    ("requests", &["bytes", "pause"], requests),
    ("constant-rate", &["rate"], constant_rate),
    ("on-off", &["on", "off", "rate"], on_off),
    (
        "poisson",
        &["sizes", "load", "per_second", "limit", "receivers"],
        poisson,
    ),
    (
        "live",
        &["rate", "first_frame", "stall_after", "rebuffer"],
        live,
    ),
    ("session", session::KEYS, |row, place| {
        session::read(row, place.policies, place.tables).map(App::Session)
    }),
    ("video", video::KEYS, |row, _| {
        video::read(row).map(App::Video)
    }),
    ("chunked-video", streaming::CHUNKED_KEYS, |row, _| {
        streaming::read_chunked(row).map(App::ChunkedVideo)
    }),
    ("short-video", streaming::SHORT_KEYS, |row, _| {
        streaming::read_short(row).map(App::ShortVideo)
    }),
    ("web", web::KEYS, |row, _| {
        web::read(row).map(|spec| App::Web(Box::new(spec)))
    }),
];

/// Reads the application of a flow, by default bulk, whose other keys are `common`.
pub(super) fn read(row: &Reader<'_>, common: &[&str], place: &Place<'_>) -> Read<App> {
    let names = || APPS.iter().map(|(name, ..)| *name);
    let name = row.string("app")?.unwrap_or("bulk");
    let Some((_, keys, read)) = APPS.iter().find(|(other, ..)| *other == name) else {
        return Err(row.fault("app", known_names(name, names())));
    };
    let known: Vec<&str> = common.iter().chain(*keys).copied().collect();
    row.only(&known)?;
    read(row, place)
}

fn transfer(row: &Reader<'_>, _: &Place<'_>) -> Read<App> {
    Ok(App::Transfer {
        bytes: bytes(row, "bytes", None)?.get(),
    })
}

fn requests(row: &Reader<'_>, _: &Place<'_>) -> Read<App> {
    Ok(App::Requests {
        bytes: bytes(row, "bytes", None)?.get(),
        pause: (row.duration("pause", Duration::ZERO..=LONGEST)?).unwrap_or_default(),
    })
}

fn constant_rate(row: &Reader<'_>, _: &Place<'_>) -> Read<App> {
    let rate = row.rate("rate")?;
    Ok(App::ConstantRate {
        rate: row.need("rate", rate, "such as \"50mbit\"")?,
    })
}

fn on_off(row: &Reader<'_>, _: &Place<'_>) -> Read<App> {
    Ok(App::OnOff {
        on: spread(row, "on")?,
        off: spread(row, "off")?,
        rate: row.rate("rate")?,
    })
}

/// A time, or the mean of an exponentially distributed one; above zero, so that time advances.
fn spread(row: &Reader<'_>, key: &str) -> Read<Spread> {
    let range = Duration::from_micros(1)..=LONGEST;
    if let Some(Value::Table(_)) = row.node(key).map(|node| &node.value)
        && let Some(table) = row.table(key)?
    {
        table.only(&["mean"])?;
        let mean = table.duration("mean", range)?;
        let mean = table.need("mean", mean, "such as \"1s\"")?;
        return Ok(Spread::Exponential(mean));
    }
    let fixed = row.duration(key, range)?;
    let fixed = row.need(key, fixed, "a time (\"1s\"), or { mean = \"1s\" }")?;
    Ok(Spread::Constant(fixed))
}

fn poisson(row: &Reader<'_>, place: &Place<'_>) -> Read<App> {
    let sizes = read_sizes(row, place)?;
    let per_second = match (
        row.number("per_second", 1e-6..=MAX_PER_SECOND)?,
        row.number("load", 1e-6..=100.0)?,
    ) {
        (Some(per_second), None) => per_second,
        (None, Some(load)) => {
            let rate = place.bottleneck.unwrap_or_default().as_bps() as f64 / 8.0;
            load * rate / sizes.mean()
        }
        (Some(_), Some(_)) => {
            return Err(row.fault(
                "per_second",
                "write either `load` or `per_second`, not both",
            ));
        }
        (None, None) => {
            return Err(row.fault("load", "it is required: such as 0.5, or `per_second`"));
        }
    };
    if !(per_second > 0.0 && per_second <= MAX_PER_SECOND) {
        return Err(row.fault(
            "load",
            format!("it makes {per_second} transfers per second; it must be at most a million"),
        ));
    }
    Ok(App::Poisson {
        sizes,
        per_second,
        limit: row.whole("limit", 1..=10_000_000)?,
        receivers: row.whole("receivers", 1..=10_000)?.unwrap_or(1) as u32,
    })
}

fn read_sizes(row: &Reader<'_>, place: &Place<'_>) -> Read<SizeDistribution> {
    let expected = "a file of `sizes/` (\"dctcp-websearch\"), or [[bytes, share], ...]";
    match row.node("sizes").map(|node| &node.value) {
        Some(Value::List(items)) => sizes::from_list(items),
        Some(Value::Text(name)) => {
            let text = (place.sizes)(name).map_err(|known| {
                let known = known_names(name, known.iter().map(String::as_str));
                row.fault("sizes", format!("no such file: {known}"))
            })?;
            sizes::parse(&text).map_err(|(line, expected)| {
                row.fault("sizes", format!("sizes/{name}.csv:{line}: {expected}"))
            })
        }
        Some(_) => Err(row.fault("sizes", format!("write {expected}"))),
        None => Err(row.fault("sizes", format!("it is required: {expected}"))),
    }
}

fn live(row: &Reader<'_>, _: &Place<'_>) -> Read<App> {
    let rate = row.rate("rate")?;
    let first_frame = bytes(row, "first_frame", None)?;
    let stall_after = row.duration("stall_after", Duration::ZERO..=LONGEST)?;
    Ok(App::Live {
        rate: row.need("rate", rate, "the stream's, such as \"2mbit\"")?,
        first_frame,
        stall_after: stall_after.unwrap_or(Duration::from_millis(100)),
        rebuffer: bytes(row, "rebuffer", Some(first_frame))?,
    })
}

/// A positive number of bytes.
fn bytes(row: &Reader<'_>, key: &str, default: Option<ByteCount>) -> Read<ByteCount> {
    let expected = "write bytes: 125000, \"64kB\", \"64KiB\", \"1MB\"";
    let value = row.parse(key, |text| match text.parse() {
        Ok(Buffer::Bytes(bytes)) => Ok(bytes),
        _ => Err(ParseError::new("size", text, expected)),
    })?;
    match value.or(default) {
        None => Err(row.fault(key, format!("it is required: {expected}"))),
        Some(bytes) if !(1..=MAX_BYTES).contains(&bytes.get()) => {
            Err(row.fault(key, "it must be from 1 byte to 1 PB"))
        }
        Some(bytes) => Ok(bytes),
    }
}
