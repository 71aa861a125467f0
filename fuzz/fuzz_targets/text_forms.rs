//! What users write about links, policies and controllers: what is understood is shown in a form
//! that is understood the same.
#![no_main]

use std::fmt::Display;
use std::str::FromStr;

use libfuzzer_sys::fuzz_target;
use swiftwater_link::{Buffer, LossModel, QueueDiscipline, Rate};
use swiftwater_media::protection::Scheme;
use swiftwater_units::text;

fn survives<T: Display + FromStr>(text: &str) {
    let Ok(value) = text.parse::<T>() else { return };
    let shown = value.to_string();
    let Ok(again) = shown.parse::<T>() else {
        panic!("{text:?} is shown as {shown:?}, which nobody understands");
    };
    assert_eq!(again.to_string(), shown, "{text:?}");
}

fuzz_target!(|text: &str| {
    survives::<Buffer>(text);
    survives::<LossModel>(text);
    survives::<QueueDiscipline>(text);
    survives::<Scheme>(text);
    if let Ok(discipline) = text.parse::<QueueDiscipline>() {
        let _ = discipline.validate();
    }
    let _ = text.parse::<Rate>();
    let _ = text::parse_duration(text);
    if let Ok(share) = text::parse_probability(text) {
        assert!((0.0..=1.0).contains(&share));
    }
    let _ = swiftwater_congestion::by_name(text);
    let _ = swiftwater_policies::by_name(text);
});
