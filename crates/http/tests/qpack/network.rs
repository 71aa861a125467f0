//! An encoder and a decoder over a network that delays and reorders: the output equals the input, and no
//! limit is ever exceeded, because the decoder would return an error.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use proptest::prelude::*;
use proptest::sample::Index;
use swiftwater_http::qpack::{Decoded, Decoder, DecoderConfig, Encoder, EncoderConfig, Field};

const STREAMS: u64 = 12;

/// What happens next.
#[derive(Clone, Debug)]
enum Step {
    /// A section leaves on a stream.
    Encode(u64, Vec<Field>),
    /// Bytes of the encoder stream arrive.
    ToDecoder(usize),
    /// The next section of a stream arrives.
    Section(u64),
    /// Bytes of the decoder stream arrive.
    ToEncoder(usize),
    /// The decoder's side cancels a stream.
    Cancel(u64),
    /// The encoder stream can take so many bytes.
    Credit(u64),
}

fn field() -> impl Strategy<Value = Field> {
    let known = (0..8_usize, 0..6_usize).prop_map(|(name, value)| {
        let name = [
            ":path",
            ":status",
            "user-agent",
            "cache-control",
            "x-own-name",
            "x-y",
            "cookie",
            "",
        ][name];
        let value = [
            "/",
            "200",
            "a value that is worth an entry in the table",
            "",
            "\u{1}\u{ff}binary",
            "no-store",
        ][value];
        (Bytes::from(name), Bytes::from(value))
    });
    let any = (any::<Vec<u8>>(), any::<Vec<u8>>()).prop_map(|(n, v)| (n.into(), v.into()));
    let pair = prop_oneof![8 => known, 1 => any];
    (pair, prop::bool::weighted(0.1)).prop_map(|((name, value), sensitive)| Field {
        name,
        value,
        sensitive,
    })
}

fn step() -> impl Strategy<Value = Step> {
    let stream = 0..STREAMS;
    prop_oneof![
        4 => (stream.clone(), prop::collection::vec(field(), 0..8)).prop_map(|(s, f)| Step::Encode(s, f)),
        3 => (1..200_usize).prop_map(Step::ToDecoder),
        4 => stream.clone().prop_map(Step::Section),
        3 => (1..20_usize).prop_map(Step::ToEncoder),
        1 => stream.prop_map(Step::Cancel),
        1 => prop_oneof![0..300_u64, Just(u64::MAX)].prop_map(Step::Credit),
    ]
}

/// Both ends, and the data in transit.
struct Network {
    encoder: Encoder,
    decoder: Decoder,
    to_decoder: VecDeque<u8>,
    to_encoder: VecDeque<u8>,
    sections: BTreeMap<u64, VecDeque<Bytes>>,
    /// Expected output of each stream.
    expected: BTreeMap<u64, VecDeque<Vec<Field>>>,
    cancelled: Vec<u64>,
    blocked: Vec<u64>,
    decoded: usize,
}

impl Network {
    fn new(encoder: EncoderConfig, decoder: DecoderConfig) -> Self {
        let mut network = Self {
            encoder: Encoder::new(encoder),
            decoder: Decoder::new(decoder),
            to_decoder: VecDeque::new(),
            to_encoder: VecDeque::new(),
            sections: BTreeMap::new(),
            expected: BTreeMap::new(),
            cancelled: Vec::new(),
            blocked: Vec::new(),
            decoded: 0,
        };
        network
            .encoder
            .set_peer_limits(decoder.max_table_capacity, decoder.max_blocked_streams)
            .unwrap();
        network
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Encode(stream, fields) => self.encode(stream, fields),
            Step::ToDecoder(len) => self.feed_decoder(len),
            Step::Section(stream) => self.deliver_section(stream),
            Step::ToEncoder(len) => {
                let len = len.min(self.to_encoder.len());
                let data: Vec<u8> = self.to_encoder.drain(..len).collect();
                self.encoder.on_decoder_stream(&data).unwrap();
            }
            Step::Cancel(stream) => self.cancel(stream),
            Step::Credit(bytes) => self.encoder.set_stream_credit(bytes),
        }
        if let Some(data) = self.decoder.poll_instructions() {
            self.to_encoder.extend(&data);
        }
    }

    fn encode(&mut self, stream: u64, fields: Vec<Field>) {
        if self.cancelled.contains(&stream) {
            return;
        }
        let mut block = Vec::new();
        self.encoder.encode(stream, &fields, &mut block);
        if let Some(data) = self.encoder.poll_instructions() {
            self.to_decoder.extend(&data);
        }
        self.sections
            .entry(stream)
            .or_default()
            .push_back(block.into());
        self.expected.entry(stream).or_default().push_back(fields);
    }

    fn feed_decoder(&mut self, len: usize) {
        let len = len.min(self.to_decoder.len());
        let data: Vec<u8> = self.to_decoder.drain(..len).collect();
        self.decoder.on_encoder_stream(&data).unwrap();
        while let Some((stream, decoded)) = self.decoder.poll_unblocked() {
            self.blocked.retain(|&blocked| blocked != stream);
            self.check(stream, &decoded.unwrap());
        }
    }

    fn deliver_section(&mut self, stream: u64) {
        if self.blocked.contains(&stream) {
            return;
        }
        let waiting = self.sections.get_mut(&stream);
        let Some(block) = waiting.and_then(VecDeque::pop_front) else {
            return;
        };
        match self.decoder.decode(stream, &block).unwrap() {
            Decoded::Blocked => self.blocked.push(stream),
            decoded => self.check(stream, &decoded),
        }
    }

    fn check(&mut self, stream: u64, decoded: &Decoded) {
        let fields = self.expected.get_mut(&stream).unwrap().pop_front().unwrap();
        assert_eq!(*decoded, Decoded::Fields(fields));
        self.decoded += 1;
    }

    fn cancel(&mut self, stream: u64) {
        if !self.cancelled.contains(&stream) {
            self.cancelled.push(stream);
            self.blocked.retain(|&blocked| blocked != stream);
            self.sections.remove(&stream);
            self.expected.remove(&stream);
            self.decoder.cancel_stream(stream);
        }
    }

    /// Everything arrives.
    fn settle(&mut self) {
        self.step(Step::ToDecoder(usize::MAX));
        while let Some(stream) = self
            .sections
            .iter()
            .find(|(_, waiting)| !waiting.is_empty())
            .map(|(&stream, _)| stream)
        {
            assert!(self.blocked.is_empty(), "all insertions have arrived");
            self.step(Step::Section(stream));
        }
        self.step(Step::ToEncoder(usize::MAX));
        assert!(self.expected.values().all(VecDeque::is_empty));
        assert!(self.blocked.is_empty());
    }
}

fn tables() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0), 0..100_u64, 32..500_u64, Just(4096)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn what_goes_in_comes_out(
        steps in prop::collection::vec(step(), 0..120),
        ours in tables(),
        theirs in tables(),
        blocked in (0..4_u64, 0..4_u64),
        max_references in prop_oneof![0..10_usize, Just(8192)],
        huffman in any::<bool>(),
    ) {
        let mut network = Network::new(
            EncoderConfig {
                max_table_capacity: ours,
                max_blocked_streams: blocked.0,
                max_references,
                huffman,
            },
            DecoderConfig {
                max_table_capacity: theirs,
                max_blocked_streams: blocked.1,
                ..DecoderConfig::default()
            },
        );
        for step in steps {
            network.step(step);
            prop_assert!(network.decoder.stats().table_size <= theirs.min(ours));
        }
        network.settle();
        prop_assert_eq!(network.encoder.stats().inserted, network.decoder.stats().inserted);
    }

    /// After everything was acknowledged, nothing keeps entries from being evicted: a new field finds room.
    #[test]
    fn nothing_stays_referenced(
        steps in prop::collection::vec(step(), 0..120),
        place in any::<Index>(),
    ) {
        let capacity = 200 + place.index(400) as u64;
        let decoder = DecoderConfig { max_table_capacity: capacity, ..DecoderConfig::default() };
        let mut network = Network::new(EncoderConfig::default(), decoder);
        for step in steps {
            network.step(step);
        }
        network.settle();
        network.step(Step::Credit(u64::MAX));
        let before = network.encoder.stats().inserted;
        // The longest values that may be inserted; together they replace the whole table.
        for turn in 0..4 {
            let name = Bytes::from(format!("x-new-{turn}"));
            let value = vec![b'a'; capacity as usize / 2 - 32 - name.len()];
            network.step(Step::Encode(100 + turn, vec![Field::new(name, value)]));
            network.settle();
        }
        prop_assert_eq!(network.encoder.stats().inserted, before + 4);
    }
}
