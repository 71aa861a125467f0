//! The server: answers as the contract says.

use std::collections::BTreeMap;
use std::error::Error;

use quiche::Connection;
use quiche::h3::{self, Event, Header};
use swiftwater_interop_peers_quiche::server::{Session, serve};
use swiftwater_interop_program::http::{Crc, H3Server, PIECE, asked_size, letters, pattern, small};

use crate::{count_small, field, http_config, http_over, value};

/// Serves until the program is ended.
pub(crate) fn run(arguments: &H3Server) -> Result<(), Box<dyn Error>> {
    let mut config = http_config()?;
    config.load_cert_chain_from_pem_file(&arguments.cert.to_string_lossy())?;
    config.load_priv_key_from_pem_file(&arguments.key.to_string_lossy())?;
    if arguments.zero_rtt {
        config.enable_early_data();
    }
    serve(arguments.listen, false, config, Requests::default)
}

/// A response in progress.
#[derive(Default)]
struct Answer {
    /// Still to be sent.
    head: Option<Vec<Header>>,
    body: Vec<u8>,
    sent: usize,
    /// Still to be sent after the content.
    trailers: Option<Vec<Header>>,
    /// The content comes from the request.
    echo: bool,
    /// No more data follow for `body`.
    complete: bool,
    /// The content never ends.
    endless: bool,
}

/// The requests of one connection.
#[derive(Default)]
struct Requests {
    http: Option<h3::Connection>,
    answers: BTreeMap<u64, Answer>,
}

impl Session for Requests {
    fn drive(&mut self, connection: &mut Connection) {
        let is_ready = connection.is_established() || connection.is_in_early_data();
        if self.http.is_none() && is_ready {
            self.http = http_over(connection).ok();
        }
        let Some(mut http) = self.http.take() else {
            return;
        };
        loop {
            match http.poll(connection) {
                Ok((stream, event)) => self.take(&mut http, connection, stream, event),
                Err(h3::Error::Done) => break,
                Err(error) => {
                    println!("connection failed: {error}");
                    break;
                }
            }
        }
        self.answers.retain(
            |&stream, answer| match answer.send(&mut http, connection, stream) {
                Ok(over) => !over,
                Err(h3::Error::TransportError(quiche::Error::StreamStopped(code))) => {
                    println!("cancelled {code:#x}");
                    false
                }
                Err(error) => {
                    println!("request failed: {error}");
                    false
                }
            },
        );
        self.http = Some(http);
    }
}

impl Requests {
    fn take(
        &mut self,
        http: &mut h3::Connection,
        connection: &mut Connection,
        stream: u64,
        event: Event,
    ) {
        match event {
            Event::Headers { list, more_frames } => {
                if let Some(answer) = self.answers.get_mut(&stream) {
                    answer.trailers = Some(list);
                    return;
                }
                let path = value(&list, ":path").unwrap_or_default().to_owned();
                let method = value(&list, ":method").unwrap_or_default().to_owned();
                let early = if connection.is_in_early_data() {
                    " early"
                } else {
                    ""
                };
                println!("request {method} {path}{early}");
                if path == "/goaway" && http.send_goaway(connection, stream + 4).is_err() {
                    println!("no GOAWAY could be sent");
                }
                let mut answer = answer(&method, &path, &list);
                answer.complete |= answer.echo && !more_frames;
                self.answers.insert(stream, answer);
            }
            Event::Data => {
                let mut block = vec![0; PIECE];
                while let Ok(size) = http.recv_body(connection, stream, &mut block) {
                    let answer = self.answers.get_mut(&stream);
                    if let Some(answer) = answer.filter(|answer| answer.echo) {
                        answer.body.extend_from_slice(&block[..size]);
                    }
                }
            }
            Event::Finished => {
                if let Some(answer) = self.answers.get_mut(&stream) {
                    answer.complete |= answer.echo;
                }
            }
            Event::Reset(code) => {
                println!("cancelled {code:#x}");
                self.answers.remove(&stream);
            }
            Event::PriorityUpdate | Event::GoAway => {}
        }
    }
}

fn status(code: &str) -> Vec<Header> {
    vec![field(":status", code)]
}

fn answer(method: &str, path: &str, asked: &[Header]) -> Answer {
    let mut answer = Answer {
        head: Some(status("200")),
        complete: true,
        ..Answer::default()
    };
    match (method, path) {
        ("GET", "/headers") => answer.head = Some(headers(asked)),
        ("GET", "/slow") => {
            answer.endless = true;
            answer.body = vec![b'.'; PIECE];
        }
        ("GET", "/goaway") => answer.body = b"going".to_vec(),
        ("POST", "/echo" | "/trailers") => {
            answer.echo = true;
            answer.complete = false;
        }
        ("GET", path) => match asked_size(path) {
            Some(size) => answer.body = pattern(size),
            None => answer.head = Some(status("404")),
        },
        _ => answer.head = Some(status("404")),
    }
    answer
}

fn headers(asked: &[Header]) -> Vec<Header> {
    let number = |name| value(asked, name)?.parse::<usize>().ok();
    let (Some(size), Some(turn)) = (number("x-size"), number("x-turn")) else {
        return status("400");
    };
    let sum = Crc::of(value(asked, "x-large").unwrap_or_default().as_bytes());
    let count = count_small(asked);
    let mut told = status("200");
    told.push(field("x-large", &letters(size)));
    told.push(field("x-digest", &sum.to_string()));
    told.push(field("x-count", &count.to_string()));
    told.extend((0..count).map(|nth| {
        let (name, value) = small(nth, turn);
        field(&name, &value)
    }));
    told
}

impl Answer {
    /// Writes what the library accepts; true once that was all.
    fn send(
        &mut self,
        http: &mut h3::Connection,
        connection: &mut Connection,
        stream: u64,
    ) -> h3::Result<bool> {
        match self.try_send(http, connection, stream) {
            Err(h3::Error::Done | h3::Error::StreamBlocked) => Ok(false),
            other => other,
        }
    }

    fn try_send(
        &mut self,
        http: &mut h3::Connection,
        connection: &mut Connection,
        stream: u64,
    ) -> h3::Result<bool> {
        if let Some(head) = &self.head {
            let end = self.complete && self.body.is_empty() && self.trailers.is_none();
            http.send_response(connection, stream, head, end)?;
            self.head = None;
            if end {
                return Ok(true);
            }
        }
        loop {
            let rest = &self.body[self.sent..];
            let last = self.complete && !self.endless && self.trailers.is_none();
            if !rest.is_empty() {
                let size = http.send_body(connection, stream, rest, last)?;
                self.sent += size;
                if self.sent < self.body.len() {
                    continue;
                }
                self.sent = 0;
                if self.endless {
                    continue;
                }
                self.body.clear();
                if last {
                    return Ok(true);
                }
            }
            if !self.complete {
                return Ok(false);
            }
            return match &self.trailers {
                Some(trailers) => {
                    http.send_additional_headers(connection, stream, trailers, true, true)?;
                    Ok(true)
                }
                None => {
                    http.send_body(connection, stream, b"", true)?;
                    Ok(true)
                }
            };
        }
    }
}
