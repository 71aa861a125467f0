//! The models of the crate: they are those of their manifest, and predict what XGBoost does.

use std::fmt::Write as _;

use sha2::{Digest, Sha256};
use swiftwater_select::{Feature, Features, Model, Models};

const MANIFEST: &str = include_str!("../models/manifest.json");
const TCP: &[u8] = include_bytes!("../models/tcp.ubj");
const QUIC: &[u8] = include_bytes!("../models/quic.ubj");
const TCP_GOLDEN: &str = include_str!("../models/tcp.tsv");
const QUIC_GOLDEN: &str = include_str!("../models/quic.tsv");

fn assert_predicts(model: &Model, golden: &str) {
    let mut lines = golden.lines();
    let head: Vec<&str> = lines.next().unwrap().split('\t').collect();
    let names: Vec<&str> = Feature::ALL.iter().map(|feature| feature.name()).collect();
    assert_eq!(head[..Feature::COUNT], names);
    let mut rows = 0;
    for line in lines {
        let numbers: Vec<f32> = line.split('\t').map(|it| it.parse().unwrap()).collect();
        let features = numbers[..Feature::COUNT].try_into().unwrap();
        let found = model.predict(&Features::from_values(features));
        let expected = numbers[Feature::COUNT];
        assert!((found - expected).abs() < 1e-6, "{line}: {found}");
        rows += 1;
    }
    assert_eq!(rows, 60);
}

#[test]
fn shipped_models_predict_what_xgboost_does() {
    let models = Models::shipped().unwrap();
    assert_predicts(models.tcp.as_deref().unwrap(), TCP_GOLDEN);
    assert_predicts(models.quic.as_deref().unwrap(), QUIC_GOLDEN);
}

#[test]
fn shipped_models_are_those_of_the_manifest() {
    let manifest: serde_json::Value = serde_json::from_str(MANIFEST).unwrap();
    for (name, file) in [("tcp", TCP), ("quic", QUIC)] {
        let entry = &manifest["models"][name];
        let digest = Sha256::digest(file);
        let hex = digest.iter().fold(String::new(), |mut hex, byte| {
            let _ = write!(hex, "{byte:02x}");
            hex
        });
        assert_eq!(entry["sha256"], hex, "{name}");
        let inputs = Model::read(file).unwrap().inputs().to_vec();
        let names: Vec<&str> = inputs.iter().map(|feature| feature.name()).collect();
        assert_eq!(entry["inputs"], serde_json::json!(names), "{name}");
    }
    // What a build that embeds them pays.
    assert!(TCP.len() + QUIC.len() < 1 << 20);
}
