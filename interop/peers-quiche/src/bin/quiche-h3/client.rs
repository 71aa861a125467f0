//! The client: runs a case and prints its result.

use std::error::Error;

use quiche::Shutdown;
use serde_json::{Value, json};
use swiftwater_interop_program::http::{
    CANCEL_AFTER, CLOSE, Case, Crc, GETS, H3Client, HEADER_TURNS, LARGE_SIZE, NO_ERROR, PARALLEL,
    REQUEST_CANCELLED, SMALL, SMALL_COUNT, SOON, TICKET, TRAILER, TURN_SIZE, TURNS, letters,
    pattern, small,
};

use crate::link::Link;
use crate::{count_small, field, http_config, value};

/// What BoringSSL calls `ssl_early_data_accepted`.
const EARLY_ACCEPTED: u32 = 2;

type Told = Result<Value, Box<dyn Error>>;

/// Runs a case.
pub(crate) fn run(arguments: &H3Client) -> Result<(), Box<dyn Error>> {
    let mut config = http_config()?;
    config.load_verify_locations_from_file(&arguments.ca.to_string_lossy())?;
    config.verify_peer(true);
    let early = arguments.case == Case::Zerortt;
    if early {
        config.enable_early_data();
    }
    let mut link = Link::new(arguments.connect, &mut config, None)?;
    let report = match arguments.case {
        Case::Get => gets(&mut link)?,
        Case::Parallel => parallel(&mut link)?,
        Case::Post => post(&mut link)?,
        Case::Headers => headers(&mut link)?,
        Case::Trailers => trailers(&mut link)?,
        Case::Cancel => cancel(&mut link)?,
        Case::Goaway => go_away(&mut link)?,
        Case::Zerortt => {
            let first = get(&mut link, "/bytes/1000")?;
            link.linger(TICKET)?;
            close(&mut link)?;
            let session = link.connection.session().map(<[u8]>::to_vec);
            let session = session.ok_or("there is no session")?;
            link = Link::new(arguments.connect, &mut config, Some(&session))?;
            let second = get(&mut link, "/bytes/2000")?;
            link.until("a handshake", |link| link.connection.is_established())?;
            let accepted = link.connection.early_data_reason() == EARLY_ACCEPTED;
            json!({"responses": [first, second], "early_accepted": accepted})
        }
    };
    close(&mut link)?;
    println!("{report}");
    Ok(())
}

fn close(link: &mut Link) -> Result<(), Box<dyn Error>> {
    if !link.is_over() {
        link.connection.close(true, NO_ERROR.into(), b"")?;
        link.flush()?;
    }
    Ok(())
}

fn get(link: &mut Link, path: &str) -> Told {
    let stream = link.request("GET", path, &[], true)?;
    let mut told = link.finish(stream)?.told();
    told["path"] = json!(path);
    Ok(told)
}

fn gets(link: &mut Link) -> Told {
    let answers: Result<Vec<_>, _> = GETS.iter().map(|path| get(link, path)).collect();
    Ok(json!({"responses": answers?}))
}

/// A thousand, as many at the same time as the server permits.
fn parallel(link: &mut Link) -> Told {
    let mut streams = Vec::new();
    for nth in 0..PARALLEL {
        streams.push(link.request("GET", &format!("/bytes/{nth}"), &[], true)?);
    }
    let (mut good, mut bytes, mut sum) = (0, 0, 0);
    for stream in streams {
        let answer = link.finish(stream)?.told();
        good += usize::from(answer["status"] == 200);
        bytes += answer["bytes"].as_u64().unwrap_or_default();
        sum ^= answer["crc"].as_u64().unwrap_or_default();
    }
    Ok(json!({"good": good, "bytes": bytes, "crc": sum}))
}

/// Each piece is echoed before the next is sent.
fn post(link: &mut Link) -> Told {
    let stream = link.request("POST", "/echo", &[], false)?;
    let mut turns = 0;
    for piece in pattern(TURNS * TURN_SIZE).chunks(TURN_SIZE) {
        link.send(stream, piece, false)?;
        turns += 1;
        link.read(stream, turns * TURN_SIZE)?;
    }
    link.send(stream, b"", true)?;
    let mut told = link.finish(stream)?.told();
    told["turns"] = json!(turns);
    Ok(told)
}

fn headers(link: &mut Link) -> Told {
    let mut answers = Vec::new();
    for turn in 0..HEADER_TURNS {
        let mut fields = vec![
            field("x-size", &LARGE_SIZE.to_string()),
            field("x-turn", &turn.to_string()),
            field("x-large", &letters(LARGE_SIZE)),
        ];
        fields.extend((0..SMALL_COUNT).map(|nth| {
            let (name, value) = small(nth, turn);
            field(&name, &value)
        }));
        let stream = link.request("GET", "/headers", &fields, true)?;
        let answer = link.finish(stream)?;
        let told = answer.head.as_deref().unwrap_or_default();
        let large = value(told, "x-large").unwrap_or_default();
        answers.push(json!({
            "status": answer.told()["status"],
            "digest": value(told, "x-digest"),
            "count": value(told, "x-count"),
            "large": large.len(),
            "large_crc": Crc::of(large.as_bytes()),
            "small": count_small(told),
            "last": value(told, &format!("{SMALL}{}", SMALL_COUNT - 1)),
        }));
    }
    Ok(json!({"responses": answers}))
}

fn trailers(link: &mut Link) -> Told {
    let stream = link.request("POST", "/trailers", &[], false)?;
    link.send(stream, &pattern(TURN_SIZE), false)?;
    link.send_trailers(stream, &[field("x-trailer", TRAILER)])?;
    Ok(link.finish(stream)?.told())
}

/// Cancels an endless response, and continues.
fn cancel(link: &mut Link) -> Told {
    let stream = link.request("GET", "/slow", &[], true)?;
    link.read(stream, CANCEL_AFTER)?;
    let read = link.answers.remove(&stream).map(|answer| answer.bytes);
    link.connection
        .stream_shutdown(stream, Shutdown::Read, REQUEST_CANCELLED)?;
    let after = get(link, "/bytes/10000")?;
    Ok(json!({"read": read, "after": after}))
}

/// The server sends GOAWAY while a request is in progress: it completes, and no other is sent.
fn go_away(link: &mut Link) -> Told {
    let stream = link.request("POST", "/echo", &[], false)?;
    let data = pattern(2 * TURN_SIZE);
    link.send(stream, &data[..TURN_SIZE], false)?;
    link.read(stream, TURN_SIZE)?;
    let asked = get(link, "/goaway")?;
    link.linger(SOON)?;
    let refused = link.try_request("GET", "/bytes/1", &[], true)?.is_none();
    link.send(stream, &data[TURN_SIZE..], true)?;
    let echo = link.finish(stream)?.told();
    link.linger(CLOSE)?;
    Ok(json!({"echo": echo, "goaway": asked["status"], "refused": refused}))
}
