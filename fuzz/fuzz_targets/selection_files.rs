//! Files that a selection of protocols reads: models of XGBoost (JSON or UBJ) and stored states. What is
//! accepted keeps to the limits, predicts probabilities, and is stored in a form that is accepted again.
#![no_main]

use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use swiftwater_select::{
    Arm, Config, Feature, Features, MAX_NODES, MAX_TREES, Model, Models, Selector, Strategy,
};
use swiftwater_units::Instant;

/// Values of all features for which a model is asked.
const VALUES: [f32; 6] = [f32::NAN, 0.0, -1.0, 1e-30, 20.5, f32::INFINITY];

fn check(model: &Model) {
    assert!(model.trees() <= MAX_TREES);
    assert!(model.nodes() <= MAX_NODES);
    assert!(model.inputs().len() <= Feature::COUNT);
    for value in VALUES {
        let features = Features::from_values([value; Feature::COUNT]);
        let probability = model.predict(&features);
        assert!((0.0..=1.0).contains(&probability), "{probability}");
    }
}

fn selector() -> Selector {
    let config = Config::new(vec![Arm::h2(), Arm::h3()], Strategy::Plus);
    Selector::new(config, Models::none(), 1).expect("two arms")
}

fuzz_target!(|bytes: &[u8]| {
    if let Ok(model) = Model::read(bytes) {
        check(&model);
    }
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let (now, clock) = (Instant::ZERO, Duration::from_secs(1_800_000_000));
    let mut first = selector();
    if first.restore(now, clock, text).is_ok() {
        let stored = first.snapshot(now, clock);
        let mut second = selector();
        let restored = second.restore(now, clock, &stored);
        restored.expect("what is stored can be read");
    }
});
