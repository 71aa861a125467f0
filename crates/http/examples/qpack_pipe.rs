//! Our encoder and decoder over standard input and output, for `interop/qpack_check.py`.
//!
//! `qpack_pipe CAPACITY BLOCKED_STREAMS` reads messages: one letter, a stream, a length (both 32 bits,
//! little-endian), so many bytes. It answers each with any number of such messages and one `.`:
//!
//! | in | | out | |
//! |---|---|---|---|
//! | `e` | bytes of the peer's encoder stream | `F` | fields of a section |
//! | `s` | a section | `B` | the section is blocked |
//! | `d` | bytes of the peer's decoder stream | `D` | bytes of our decoder stream |
//! | `f` | fields to encode | `E`, `S` | bytes of our encoder stream, a section |
//! | `c` | the stream is cancelled | `X` | an error, as text |
//!
//! Fields are lines: name, value and `1` or `0` for sensitive, in hexadecimal, separated by spaces.

use std::fmt::Write as _;
use std::io::{self, Read, Write};

use bytes::Bytes;
use swiftwater_http::qpack::{
    Decoded, Decoder, DecoderConfig, Encoder, EncoderConfig, Field, QpackError,
};

/// Both halves, and where answers go.
struct Pipe<W> {
    encoder: Encoder,
    decoder: Decoder,
    out: W,
}

impl<W: Write> Pipe<W> {
    fn say(&mut self, kind: u8, stream: u32, data: &[u8]) -> io::Result<()> {
        self.out.write_all(&[kind])?;
        self.out.write_all(&stream.to_le_bytes())?;
        self.out.write_all(&(data.len() as u32).to_le_bytes())?;
        self.out.write_all(data)
    }

    fn report(&mut self, stream: u64, decoded: Result<Decoded, QpackError>) -> io::Result<()> {
        let stream = stream as u32;
        match decoded {
            Ok(Decoded::Fields(fields)) => self.say(b'F', stream, to_lines(&fields).as_bytes()),
            Ok(Decoded::Blocked) => self.say(b'B', stream, &[]),
            Ok(Decoded::TooLarge(excess)) => {
                self.say(b'X', stream, format!("{excess:?}").as_bytes())
            }
            Err(error) => self.say(b'X', stream, error.to_string().as_bytes()),
        }
    }

    fn check(&mut self, result: Result<(), QpackError>) -> io::Result<()> {
        match result {
            Ok(()) => Ok(()),
            Err(error) => self.say(b'X', 0, error.to_string().as_bytes()),
        }
    }

    fn take(&mut self, kind: u8, stream: u32, data: Vec<u8>) -> io::Result<()> {
        let id = u64::from(stream);
        match kind {
            b'e' => {
                let result = self.decoder.on_encoder_stream(&data);
                self.check(result)?;
                while let Some((stream, decoded)) = self.decoder.poll_unblocked() {
                    self.report(stream, decoded)?;
                }
            }
            b's' => {
                let decoded = self.decoder.decode(id, &Bytes::from(data));
                self.report(id, decoded)?;
            }
            b'd' => {
                let result = self.encoder.on_decoder_stream(&data);
                self.check(result)?;
            }
            b'f' => {
                let fields = from_lines(&data)?;
                let mut block = Vec::new();
                self.encoder.encode(id, &fields, &mut block);
                if let Some(data) = self.encoder.poll_instructions() {
                    self.say(b'E', 0, &data)?;
                }
                self.say(b'S', stream, &block)?;
            }
            b'c' => self.decoder.cancel_stream(id),
            _ => return Err(io::Error::other("unknown message")),
        }
        if let Some(data) = self.decoder.poll_instructions() {
            self.say(b'D', 0, &data)?;
        }
        self.say(b'.', 0, &[])?;
        self.out.flush()
    }
}

fn to_lines(fields: &[Field]) -> String {
    let mut text = String::new();
    for field in fields {
        for bytes in [&field.name, &field.value] {
            for byte in bytes {
                let _ = write!(text, "{byte:02x}");
            }
            text.push(' ');
        }
        text.push_str(if field.sensitive { "1\n" } else { "0\n" });
    }
    text
}

fn from_lines(data: &[u8]) -> io::Result<Vec<Field>> {
    let text = std::str::from_utf8(data).map_err(io::Error::other)?;
    let lines = text.lines().map(|line| {
        let mut parts = line.split(' ');
        let mut next = || parts.next().unwrap_or_default();
        let (name, value) = (from_hex(next())?, from_hex(next())?);
        let mut field = Field::new(name, value);
        field.sensitive = next() == "1";
        Ok(field)
    });
    lines.collect()
}

fn from_hex(text: &str) -> io::Result<Vec<u8>> {
    let pairs = (0..text.len()).step_by(2).map(|at| {
        let pair = text.get(at..at + 2).unwrap_or_default();
        u8::from_str_radix(pair, 16).map_err(io::Error::other)
    });
    pairs.collect()
}

fn argument(place: usize) -> io::Result<u64> {
    let text = std::env::args().nth(place).unwrap_or_default();
    text.parse().map_err(io::Error::other)
}

fn main() -> io::Result<()> {
    let (capacity, blocked) = (argument(1)?, argument(2)?);
    let mut encoder = Encoder::new(EncoderConfig {
        max_table_capacity: capacity,
        max_blocked_streams: blocked,
        ..EncoderConfig::default()
    });
    let limits = encoder.set_peer_limits(capacity, blocked);
    limits.map_err(io::Error::other)?;
    let mut pipe = Pipe {
        encoder,
        decoder: Decoder::new(DecoderConfig {
            max_table_capacity: capacity,
            max_blocked_streams: blocked,
            ..DecoderConfig::default()
        }),
        out: io::stdout().lock(),
    };
    let mut input = io::stdin().lock();
    let (mut kind, mut stream, mut len) = ([0; 1], [0; 4], [0; 4]);
    while input.read_exact(&mut kind).is_ok() {
        input.read_exact(&mut stream)?;
        input.read_exact(&mut len)?;
        let mut data = vec![0; u32::from_le_bytes(len) as usize];
        input.read_exact(&mut data)?;
        pipe.take(kind[0], u32::from_le_bytes(stream), data)?;
    }
    Ok(())
}
