//! Compression ratio of QPACK for the field lists in `corpus/headers.txt`, or in the files named as arguments:
//! `cargo run -p swiftwater-http --example qpack_ratio -- FILE...`. Files of type `.qif` are in the form of the
//! offline interop of QPACK, with lists of one direction.
//!
//! Requests and responses have an encoder and a decoder each. Everything arrives at once, but the encoder
//! gets acknowledgements a number of sections later; each section is decoded and compared.

use std::collections::VecDeque;
use std::error::Error;
use std::path::Path;

use bytes::Bytes;
use swiftwater_http::qpack::{
    Decoded, Decoder, DecoderConfig, Encoder, EncoderConfig, EncoderStats, Field,
};

/// How a run is set up.
struct Setup {
    what: &'static str,
    capacity: u64,
    blocked: u64,
    huffman: bool,
    /// Sections sent before a section's acknowledgement is received.
    delay: usize,
}

const fn setup(
    what: &'static str,
    capacity: u64,
    blocked: u64,
    huffman: bool,
    delay: usize,
) -> Setup {
    Setup {
        what,
        capacity,
        blocked,
        huffman,
        delay,
    }
}

const SETUPS: [Setup; 8] = [
    setup("static table", 0, 0, true, 0),
    setup("static table, no Huffman", 0, 0, false, 0),
    setup("table of 4096", 4096, 100, true, 0),
    setup("table of 4096, no Huffman", 4096, 100, false, 0),
    setup("table of 4096, acks 10 late", 4096, 100, true, 10),
    setup("same, nothing may block", 4096, 0, true, 10),
    setup("table of 16384, acks 10 late", 16384, 100, true, 10),
    setup("table of 1024, acks 10 late", 1024, 100, true, 10),
];

/// Lists of one direction.
type Lists = Vec<Vec<Field>>;

fn parse(text: &str, mark: &str) -> Lists {
    let mut lists = Lists::new();
    let mut ours = false;
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        match line.split_once(": ") {
            Some((name, value)) if ours => {
                let field = Field::new(name.to_owned(), value.to_owned());
                if let Some(list) = lists.last_mut() {
                    list.push(field);
                }
            }
            _ if line == mark => {
                ours = true;
                lists.push(Vec::new());
            }
            _ if line == ">" || line == "<" => ours = false,
            _ => {}
        }
    }
    lists
}

/// Lists in the form QIF: a field a line, name and value with a tabulator between, an empty line after
/// each list.
fn parse_qif(text: &str) -> Lists {
    let lists = text.split("\n\n").map(|list| {
        let fields = list.lines().filter(|line| !line.starts_with('#'));
        let fields = fields.filter_map(|line| line.split_once('\t'));
        fields
            .map(|(name, value)| Field::new(name.to_owned(), value.to_owned()))
            .collect()
    });
    lists.filter(|list: &Vec<Field>| !list.is_empty()).collect()
}

/// Totals of one direction.
#[derive(Default)]
struct Totals {
    stats: EncoderStats,
    feedback: u64,
}

fn run(setup: &Setup, lists: &Lists) -> Result<Totals, Box<dyn Error>> {
    let mut encoder = Encoder::new(EncoderConfig {
        max_table_capacity: setup.capacity,
        max_blocked_streams: setup.blocked,
        huffman: setup.huffman,
        ..EncoderConfig::default()
    });
    encoder.set_peer_limits(setup.capacity, setup.blocked)?;
    let mut decoder = Decoder::new(DecoderConfig {
        max_table_capacity: setup.capacity,
        max_blocked_streams: setup.blocked,
        ..DecoderConfig::default()
    });
    let mut feedback = VecDeque::new();
    let mut totals = Totals::default();
    for (stream, fields) in (0..).step_by(4).zip(lists) {
        let mut block = Vec::new();
        encoder.encode(stream, fields, &mut block);
        if let Some(data) = encoder.poll_instructions() {
            decoder.on_encoder_stream(&data)?;
        }
        let decoded = decoder.decode(stream, &Bytes::from(block))?;
        if !matches!(decoded, Decoded::Fields(same) if same == *fields) {
            return Err("what came out is not what went in".into());
        }
        let data = decoder.poll_instructions().unwrap_or_default();
        totals.feedback += data.len() as u64;
        feedback.push_back(data);
        while feedback.len() > setup.delay {
            let data = feedback.pop_front().unwrap_or_default();
            encoder.on_decoder_stream(&data)?;
        }
    }
    totals.stats = encoder.stats();
    Ok(totals)
}

fn main() -> Result<(), Box<dyn Error>> {
    let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/corpus/headers.txt");
    let mut paths: Vec<_> = std::env::args().skip(1).collect();
    if paths.is_empty() {
        paths.push(corpus.to_owned());
    }
    let mut all: Vec<(String, Lists)> = Vec::new();
    for path in paths {
        let text = std::fs::read_to_string(&path)?;
        if Path::new(&path).extension().is_some_and(|end| end == "qif") {
            all.push((format!("lists of {path}"), parse_qif(&text)));
            continue;
        }
        for (direction, mark) in [("requests", ">"), ("responses", "<")] {
            all.push((direction.to_owned(), parse(&text, mark)));
        }
    }
    for (what, lists) in all {
        println!("{} {what}", lists.len());
        println!(
            "  {:30} {:>7} {:>7} {:>7} {:>7} {:>6} {:>6} {:>5} {:>5}",
            "", "raw", "section", "instr.", "total", "ratio", "insert", "dupl.", "acks"
        );
        for setup in &SETUPS {
            let Totals { stats, feedback } = run(setup, &lists)?;
            let total = stats.section_bytes + stats.instruction_bytes;
            println!(
                "  {:30} {:>7} {:>7} {:>7} {:>7} {:>6.3} {:>6} {:>5} {:>5}",
                setup.what,
                stats.raw_bytes,
                stats.section_bytes,
                stats.instruction_bytes,
                total,
                total as f64 / stats.raw_bytes as f64,
                stats.inserted,
                stats.duplicated,
                feedback,
            );
        }
    }
    Ok(())
}
