//! Any bytes as encoder stream and sections, in any order: errors or fields within the limits, and a decoder
//! stream that says nothing false.
#![no_main]

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use swiftwater_fuzz::qpack::{LIMITS, check};
use swiftwater_http::qpack::Decoder;

#[derive(Arbitrary, Debug)]
enum Step {
    Encoder(Vec<u8>),
    Section(u8, Vec<u8>),
    Cancel(u8),
    Poll,
}

fuzz_target!(|steps: Vec<Step>| {
    let mut decoder = Decoder::new(LIMITS);
    for step in steps {
        match step {
            Step::Encoder(data) => {
                if decoder.on_encoder_stream(&data).is_err() {
                    return;
                }
                while let Some((_, decoded)) = decoder.poll_unblocked() {
                    let Ok(decoded) = decoded else { return };
                    check(&decoded);
                }
            }
            Step::Section(stream, block) => {
                match decoder.decode(u64::from(stream), &block.into()) {
                    Ok(decoded) => check(&decoded),
                    Err(_) => return,
                }
            }
            Step::Cancel(stream) => decoder.cancel_stream(u64::from(stream)),
            Step::Poll => {
                let data = decoder.poll_instructions();
                assert!(data.is_none_or(|data| !data.is_empty()));
            }
        }
        assert!(decoder.stats().table_size <= LIMITS.max_table_capacity);
    }
});
