//! Video files and texts of any content: what is accepted plays, and survives a round trip as text.
#![no_main]

use std::io::Cursor;
use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use swiftwater_media::FrameSource;
use swiftwater_media::source::{Recorded, Recording, SourceSpec, read_mp4};

/// Plays a little more than one turn of the loop, as far as that is quick.
fn play(recording: Recording) {
    let turn = recording.frames().len() + 1;
    let mut source = Recorded::new(Arc::new(recording));
    let mut last = None;
    for index in 0..turn.min(10_000) {
        let frame = source.next_frame().expect("endless");
        assert_eq!(frame.index, index as u64);
        assert!(frame.size > 0);
        assert!(last.is_none_or(|last| frame.at >= last));
        last = Some(frame.at);
    }
}

fuzz_target!(|bytes: &[u8]| {
    if let Ok(recording) = read_mp4(&mut Cursor::new(bytes)) {
        play(recording);
    }
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    if let Ok(recording) = text.parse::<Recording>() {
        let written = recording.to_string();
        let read: Recording = written.parse().expect("what we write, we can read");
        assert_eq!(read, recording);
        play(recording);
    }
    if let Ok(spec) = text.parse::<SourceSpec>() {
        let read: SourceSpec = spec
            .to_string()
            .parse()
            .expect("what we write, we can read");
        assert_eq!(read, spec);
    }
});
