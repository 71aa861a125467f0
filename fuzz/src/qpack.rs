//! A QPACK encoder and decoder with a network between them.

use std::collections::{BTreeMap, VecDeque};

use arbitrary::Arbitrary;
use bytes::Bytes;
use swiftwater_http::qpack::{Decoded, Decoder, DecoderConfig, Encoder, EncoderConfig, Field};

/// Limits small enough to be met.
pub const LIMITS: DecoderConfig = DecoderConfig {
    max_table_capacity: 512,
    max_blocked_streams: 3,
    max_field_section_size: 2000,
    max_fields: 30,
};

/// The output for arbitrary bytes obeys the limits.
pub fn check(decoded: &Decoded) {
    if let Decoded::Fields(fields) = decoded {
        assert!(fields.len() <= LIMITS.max_fields);
        let size: u64 = fields.iter().map(Field::size).sum();
        assert!(size <= LIMITS.max_field_section_size);
    }
}

/// A field, often a repeated one.
#[derive(Arbitrary, Debug)]
enum Line {
    Common { name: u8, value: u8 },
    Any(Vec<u8>, Vec<u8>),
    Sensitive(Vec<u8>, Vec<u8>),
}

impl Line {
    fn field(self) -> Field {
        const NAMES: [&str; 4] = [":path", "user-agent", "x-some-name", "etag"];
        match self {
            Self::Common { name, value } => {
                let name = NAMES[usize::from(name) % NAMES.len()];
                Field::new(name, format!("a value with the number {}", value % 16))
            }
            Self::Any(name, value) => Field::new(name, value),
            Self::Sensitive(name, value) => Field::sensitive(name, value),
        }
    }
}

#[derive(Arbitrary, Debug)]
enum Step {
    Encode(u8, Vec<Line>),
    ToDecoder(u8),
    Section(u8),
    ToEncoder(u8),
    Cancel(u8),
    Credit(Option<u8>),
}

/// Settings and events.
#[derive(Arbitrary, Debug)]
pub struct RoundTrip {
    capacities: (u16, u16),
    blocked: (u8, u8),
    max_references: u8,
    huffman: bool,
    steps: Vec<Step>,
}

struct Network {
    encoder: Encoder,
    decoder: Decoder,
    to_decoder: VecDeque<u8>,
    to_encoder: VecDeque<u8>,
    sections: BTreeMap<u8, VecDeque<Bytes>>,
    expected: BTreeMap<u8, VecDeque<Vec<Field>>>,
    blocked: Vec<u8>,
    cancelled: Vec<u8>,
}

impl RoundTrip {
    /// Plays it, then lets everything arrive.
    pub fn run(self) {
        let decoder = DecoderConfig {
            max_table_capacity: u64::from(self.capacities.1 % 2048),
            max_blocked_streams: u64::from(self.blocked.1 % 4),
            max_field_section_size: u64::MAX,
            max_fields: usize::MAX,
        };
        let mut network = Network {
            encoder: Encoder::new(EncoderConfig {
                max_table_capacity: u64::from(self.capacities.0),
                max_blocked_streams: u64::from(self.blocked.0),
                max_references: usize::from(self.max_references),
                huffman: self.huffman,
            }),
            decoder: Decoder::new(decoder),
            to_decoder: VecDeque::new(),
            to_encoder: VecDeque::new(),
            sections: BTreeMap::new(),
            expected: BTreeMap::new(),
            blocked: Vec::new(),
            cancelled: Vec::new(),
        };
        let limits = network
            .encoder
            .set_peer_limits(decoder.max_table_capacity, decoder.max_blocked_streams);
        limits.expect("the first settings");
        for step in self.steps {
            network.play(step);
        }
        network.to_decoder(usize::MAX);
        let streams: Vec<u8> = network.sections.keys().copied().collect();
        for stream in streams {
            while network.section(stream) {}
        }
        let feedback = network.decoder.poll_instructions();
        network.to_encoder.extend(feedback.unwrap_or_default());
        network.to_encoder(usize::MAX);
        assert!(network.expected.values().all(VecDeque::is_empty));
    }
}

impl Network {
    fn play(&mut self, step: Step) {
        match step {
            Step::Encode(stream, lines) => self.encode(stream % 8, lines),
            Step::ToDecoder(len) => self.to_decoder(usize::from(len)),
            Step::Section(stream) => {
                self.section(stream % 8);
            }
            Step::ToEncoder(len) => self.to_encoder(usize::from(len)),
            Step::Cancel(stream) => self.cancel(stream % 8),
            Step::Credit(credit) => self
                .encoder
                .set_stream_credit(credit.map_or(u64::MAX, u64::from)),
        }
        let feedback = self.decoder.poll_instructions();
        self.to_encoder.extend(feedback.unwrap_or_default());
    }

    fn encode(&mut self, stream: u8, lines: Vec<Line>) {
        if self.cancelled.contains(&stream) {
            return;
        }
        let fields: Vec<Field> = lines.into_iter().map(Line::field).collect();
        let mut block = Vec::new();
        self.encoder.encode(u64::from(stream), &fields, &mut block);
        let instructions = self.encoder.poll_instructions();
        self.to_decoder.extend(instructions.unwrap_or_default());
        self.sections
            .entry(stream)
            .or_default()
            .push_back(block.into());
        self.expected.entry(stream).or_default().push_back(fields);
    }

    fn to_decoder(&mut self, len: usize) {
        let len = len.min(self.to_decoder.len());
        let data: Vec<u8> = self.to_decoder.drain(..len).collect();
        let result = self.decoder.on_encoder_stream(&data);
        result.expect("instructions of our encoder");
        while let Some((stream, decoded)) = self.decoder.poll_unblocked() {
            self.blocked.retain(|&blocked| u64::from(blocked) != stream);
            self.compare(stream as u8, decoded.expect("a section of our encoder"));
        }
    }

    /// Whether a section was there to be delivered.
    fn section(&mut self, stream: u8) -> bool {
        if self.blocked.contains(&stream) {
            return false;
        }
        let waiting = self.sections.get_mut(&stream);
        let Some(block) = waiting.and_then(VecDeque::pop_front) else {
            return false;
        };
        let decoded = self.decoder.decode(u64::from(stream), &block);
        match decoded.expect("a section of our encoder") {
            Decoded::Blocked => self.blocked.push(stream),
            decoded => self.compare(stream, decoded),
        }
        true
    }

    fn compare(&mut self, stream: u8, decoded: Decoded) {
        let expected = self.expected.get_mut(&stream);
        let fields = expected.and_then(VecDeque::pop_front);
        assert_eq!(fields.map(Decoded::Fields), Some(decoded));
    }

    fn to_encoder(&mut self, len: usize) {
        let len = len.min(self.to_encoder.len());
        let data: Vec<u8> = self.to_encoder.drain(..len).collect();
        let result = self.encoder.on_decoder_stream(&data);
        result.expect("instructions of our decoder");
    }

    fn cancel(&mut self, stream: u8) {
        if !self.cancelled.contains(&stream) {
            self.cancelled.push(stream);
            self.blocked.retain(|&blocked| blocked != stream);
            self.sections.remove(&stream);
            self.expected.remove(&stream);
            self.decoder.cancel_stream(u64::from(stream));
        }
    }
}
