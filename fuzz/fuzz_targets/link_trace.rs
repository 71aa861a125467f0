//! Traces of any text: what is accepted repeats, has sane samples, and survives a round trip.
#![no_main]

use libfuzzer_sys::fuzz_target;
use swiftwater_link::Trace;

fuzz_target!(|text: &str| {
    for trace in [
        Trace::parse_csv(text),
        Trace::parse_mahimahi(text),
        Trace::detect(text),
    ] {
        let Ok(trace) = trace else { continue };
        assert!(!trace.period().is_zero());
        let mut last = None;
        for sample in trace.samples() {
            assert!(last.is_none_or(|last| sample.at > last));
            last = Some(sample.at);
            assert!(sample.loss.is_none_or(|loss| (0.0..=1.0).contains(&loss)));
        }
        let _ = (trace.mean_rate(), trace.mean_rtt());
        for factor in [0.0, 0.5, 1e30, f64::NAN, -1.0] {
            let _ = trace.scaled(factor).mean_rate();
        }
        if trace.samples().next().is_none() {
            // Packet opportunities have no samples to write.
            continue;
        }
        let csv = trace.to_csv();
        Trace::parse_csv(&csv).expect("what we write, we can read");
    }
});
