//! Packets of media sessions: what is understood is written the same again, and neither end panics.
#![no_main]

use libfuzzer_sys::fuzz_target;
use swiftwater_media::protection::Protector;
use swiftwater_media::session::{Coding, Feedback, Receiver, Sender, SessionConfig, VideoPacket};
use swiftwater_units::Instant;

fuzz_target!(|datagrams: Vec<Vec<u8>>| {
    for coding in [Coding::Real, Coding::Counted] {
        let config = SessionConfig {
            coding,
            ..SessionConfig::default()
        };
        let mut receiver = Receiver::new(&config, Instant::ZERO).expect("valid settings");
        let mut sender =
            Sender::new(config, Protector::Rtx, Instant::ZERO).expect("valid settings");
        for bytes in &datagrams {
            if let Ok(packet) = VideoPacket::parse(bytes) {
                let mut written = Vec::new();
                packet.header.write(packet.window.as_ref(), &mut written);
                written.extend(packet.payload);
                assert_eq!(VideoPacket::parse(&written).as_ref(), Ok(&packet));
            }
            if let Ok(feedback) = Feedback::parse(bytes) {
                let mut written = Vec::new();
                feedback.write(&mut written);
                assert_eq!(Feedback::parse(&written).as_ref(), Ok(&feedback));
            }
            let _ = receiver.handle_datagram(Instant::ZERO, bytes);
            let _ = sender.handle_datagram(Instant::ZERO, bytes);
            while receiver.poll_completed().is_some() {}
            let _ = receiver.poll_transmit(Instant::ZERO);
        }
    }
});
