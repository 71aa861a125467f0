//! Models read from files of XGBoost 3.2.0 and their predictions, against XGBoost's own.

use swiftwater_select::{Feature, Features, MAX_TREES, Model, ModelError};

const TCP_JSON: &[u8] = include_bytes!("data/tcp.json");
const TCP_UBJ: &[u8] = include_bytes!("data/tcp.ubj");
const TCP_OLD: &[u8] = include_bytes!("data/tcp_before_3_1.json");
const TCP_GOLDEN: &str = include_str!("data/tcp.tsv");
const QUIC_JSON: &[u8] = include_bytes!("data/quic.json");
const QUIC_UBJ: &[u8] = include_bytes!("data/quic.ubj");
const QUIC_GOLDEN: &str = include_str!("data/quic.tsv");

/// Rows of features, and the probabilities that XGBoost predicts for them.
fn golden(table: &str) -> Vec<(Features, f32)> {
    let mut lines = table.lines();
    let head: Vec<&str> = lines.next().unwrap().split('\t').collect();
    let names: Vec<&str> = Feature::ALL.iter().map(|feature| feature.name()).collect();
    assert_eq!(head[..Feature::COUNT], names);
    lines
        .map(|line| {
            let numbers: Vec<f32> = line.split('\t').map(|it| it.parse().unwrap()).collect();
            let features = numbers[..Feature::COUNT].try_into().unwrap();
            (Features::from_values(features), numbers[Feature::COUNT])
        })
        .collect()
}

fn assert_predicts(file: &[u8], table: &str) {
    let model = Model::read(file).unwrap();
    let rows = golden(table);
    assert!(rows.len() >= 50);
    for (features, expected) in rows {
        let found = model.predict(&features);
        assert!(
            (found - expected).abs() < 1e-6,
            "{features:?}: {found}, not {expected}"
        );
    }
}

#[test]
fn predictions_agree_with_xgboost() {
    assert_predicts(TCP_JSON, TCP_GOLDEN);
    assert_predicts(TCP_UBJ, TCP_GOLDEN);
    assert_predicts(QUIC_JSON, QUIC_GOLDEN);
    assert_predicts(QUIC_UBJ, QUIC_GOLDEN);
}

#[test]
fn base_scores_from_before_and_after_3_1_mean_the_same() {
    assert!(
        std::str::from_utf8(TCP_JSON)
            .unwrap()
            .contains("\"base_score\":\"[")
    );
    assert!(
        !std::str::from_utf8(TCP_OLD)
            .unwrap()
            .contains("\"base_score\":\"[")
    );
    assert_predicts(TCP_OLD, TCP_GOLDEN);
}

#[test]
fn inputs_follow_the_names_of_features() {
    assert_eq!(Model::read(TCP_JSON).unwrap().inputs(), Feature::ALL);
    assert_eq!(Model::read(QUIC_JSON).unwrap().inputs(), Feature::QUIC);
}

/// The model for TCP with one change.
fn changed(change: impl FnOnce(&mut serde_json::Value)) -> Result<Model, ModelError> {
    let mut document: serde_json::Value = serde_json::from_slice(TCP_JSON).unwrap();
    change(&mut document["learner"]);
    Model::read(document.to_string().as_bytes())
}

#[test]
fn unnamed_features_have_a_fixed_order_only_by_number() {
    let model = changed(|it| it["feature_names"] = serde_json::json!([])).unwrap();
    assert_eq!(model.inputs(), Feature::ALL);
    let six = changed(|it| {
        it["feature_names"] = serde_json::json!([]);
        it["learner_model_param"]["num_feature"] = "6".into();
    });
    assert!(matches!(six, Err(ModelError::Unnamed(6))));
    let unknown = changed(|it| it["feature_names"][0] = "weekday".into());
    assert!(matches!(unknown, Err(ModelError::Feature(name)) if name == "weekday"));
}

#[test]
fn other_kinds_of_models_are_refused() {
    let other = changed(|it| it["objective"]["name"] = "reg:squarederror".into());
    assert!(matches!(
        other,
        Err(ModelError::Kind {
            what: "objective",
            ..
        })
    ));
    let other = changed(|it| it["gradient_booster"]["name"] = "dart".into());
    assert!(matches!(other, Err(ModelError::Kind { what: "kind", .. })));
    for score in ["0", "1", "nan", "[2E-1", "[1E-1,2E-1]", ""] {
        let other = changed(|it| it["learner_model_param"]["base_score"] = score.into());
        assert!(matches!(other, Err(ModelError::BaseScore(_))), "{score}");
    }
}

fn changed_tree(change: impl FnOnce(&mut serde_json::Value)) -> ModelError {
    changed(|it| change(&mut it["gradient_booster"]["model"]["trees"][0])).unwrap_err()
}

#[test]
fn trees_that_could_loop_or_leave_their_arrays_are_refused() {
    let loops = changed_tree(|tree| tree["left_children"][1] = 0.into());
    assert!(loops.to_string().contains("does not come after"), "{loops}");
    let outside = changed_tree(|tree| tree["right_children"][0] = 10_000.into());
    assert!(outside.to_string().contains("does not exist"), "{outside}");
    let half = changed_tree(|tree| tree["right_children"][0] = (-1).into());
    assert!(half.to_string().contains("does not exist"), "{half}");
    let shared = changed_tree(|tree| tree["right_children"][0] = tree["left_children"][0].clone());
    assert!(shared.to_string().contains("two parents"), "{shared}");
    let feature = changed_tree(|tree| tree["split_indices"][0] = 7.into());
    assert!(feature.to_string().contains("feature"), "{feature}");
    let short = changed_tree(|tree| {
        tree["split_indices"].as_array_mut().unwrap().pop();
    });
    assert!(short.to_string().contains("differ in length"), "{short}");
    let categorical = changed_tree(|tree| tree["split_type"][0] = 1.into());
    assert!(
        categorical.to_string().contains("categorical"),
        "{categorical}"
    );
}

/// A model of equal trees that are chains of splits.
fn chains(trees: usize, splits: i32) -> Result<Model, ModelError> {
    // Even nodes split, but the last one; odd ones are leaves.
    let is_split = |node: i32| node % 2 == 0 && node < 2 * splits;
    let child = |node, offset| if is_split(node) { node + offset } else { -1 };
    let children = |offset| -> Vec<i32> {
        let nodes = 0..=2 * splits;
        nodes.map(|node| child(node, offset)).collect()
    };
    let zeros = vec![0; 2 * splits as usize + 1];
    let tree = serde_json::json!({
        "left_children": children(1),
        "right_children": children(2),
        "split_indices": zeros,
        "split_conditions": zeros,
        "default_left": zeros,
    });
    changed(|it| it["gradient_booster"]["model"]["trees"] = vec![tree; trees].into())
}

#[test]
fn depth_trees_and_nodes_are_limited() {
    assert_eq!(chains(1, 32).unwrap().nodes(), 65);
    let deep = chains(1, 33).unwrap_err();
    assert!(deep.to_string().contains("deeper than 32"), "{deep}");
    assert_eq!(chains(MAX_TREES, 2).unwrap().trees(), MAX_TREES);
    let many = chains(MAX_TREES + 1, 2);
    assert!(matches!(many, Err(ModelError::TooLarge("trees"))));
    assert_eq!(chains(1008, 32).unwrap().nodes(), 1008 * 65);
    let large = chains(1009, 32);
    assert!(matches!(large, Err(ModelError::TooLarge("nodes"))));
}

#[test]
fn what_is_no_model_gives_an_error() {
    for text in [
        "",
        "{",
        "{}",
        "[]",
        "null",
        "{\"learner\":{}}",
        "{L",
        "{i",
        "{$",
        "{#U\u{ff}",
    ] {
        assert!(Model::read(text.as_bytes()).is_err(), "{text}");
    }
    for end in 0..TCP_UBJ.len() {
        assert!(Model::read(&TCP_UBJ[..end]).is_err(), "{end}");
    }
}

mod arbitrary {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]

        /// Changed bytes give an error or a model that predicts a probability.
        #[test]
        fn changed_files_are_safe(
            changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
            ubj in any::<bool>(),
            values in prop::array::uniform7(any::<f32>()),
        ) {
            let mut file = if ubj { QUIC_UBJ.to_vec() } else { QUIC_JSON.to_vec() };
            for (index, byte) in changes {
                let place = index.index(file.len());
                file[place] = byte;
            }
            if let Ok(model) = Model::read(&file) {
                let score = model.predict(&Features::from_values(values));
                prop_assert!((0.0..=1.0).contains(&score) || score.is_nan());
            }
        }
    }
}
