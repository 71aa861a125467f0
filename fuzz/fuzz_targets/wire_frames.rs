//! Frames of any bytes: what is read can be written, in the stated size, and reads as the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use swiftwater_wire::frame::FrameIter;
use swiftwater_wire::{Frame, MultipathVersion, Writer};

fuzz_target!(|payload: &[u8]| {
    let mut read = 0;
    for item in FrameIter::new(payload) {
        let Ok((read_type, frame)) = item else { break };
        read += 1;
        let version = MultipathVersion::of_frame(read_type).unwrap_or_default();
        if let Frame::Ack(ack) = &frame {
            let mut below = None;
            for range in ack.ranges() {
                assert!(range.start() <= range.end());
                assert!(below.is_none_or(|below| *range.end() + 1 < below));
                below = Some(*range.start());
            }
        }
        let size = frame.size_in(version);
        let mut buf = vec![0; size];
        let mut w = Writer::new(&mut buf);
        frame.encode_in(version, &mut w);
        assert_eq!(w.written(), size);
        let mut again = FrameIter::new(&buf);
        let (frame_type, same) = again.next().expect("a frame").expect("that parses");
        assert_eq!(frame_type, frame.frame_type_in(version));
        match (&frame, &same) {
            // Additional ranges are kept as they came, minimal or not.
            (Frame::Ack(a), Frame::Ack(b)) => assert!(a.ranges().eq(b.ranges())),
            _ => assert_eq!(same, frame),
        }
        assert!(again.next().is_none());
    }
    assert!(read <= payload.len());
});
