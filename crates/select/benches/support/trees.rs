//! Model files of full trees, for benchmarks: their speed depends on shape, not on what they predict.

/// A number between 0 and 1 that follows from `seed` (SplitMix64).
pub(crate) fn spread(seed: usize) -> f32 {
    let mut x = (seed as u64)
        .wrapping_add(1)
        .wrapping_mul(0x9E37_79B9_7F4A_7C15);
    x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    (x >> 40) as f32 / 16_777_216.0
}

/// `trees` full trees of `depth`, as XGBoost's JSON.
pub(crate) fn model(trees: usize, depth: u32) -> String {
    let nodes = (1_usize << (depth + 1)) - 1;
    let splits = (1_usize << depth) - 1;
    let tree = |tree: usize| {
        let child = |node: usize, side: usize| {
            let child = 2 * node + side;
            if node < splits {
                i64::try_from(child).unwrap_or(-1)
            } else {
                -1
            }
        };
        let left: Vec<i64> = (0..nodes).map(|node| child(node, 1)).collect();
        let right: Vec<i64> = (0..nodes).map(|node| child(node, 2)).collect();
        let random = |node: usize| spread(tree * nodes + node);
        let indices: Vec<usize> = (0..nodes)
            .map(|node| (random(node) * 7.0) as usize)
            .collect();
        let value = |node: usize| {
            if node < splits {
                random(node) * 2.0
            } else {
                (random(node) - 0.5) / 50.0
            }
        };
        let values: Vec<f32> = (0..nodes).map(value).collect();
        serde_json::json!({
            "left_children": left,
            "right_children": right,
            "split_indices": indices,
            "split_conditions": values,
            "default_left": vec![1; nodes],
        })
    };
    let all: Vec<serde_json::Value> = (0..trees).map(tree).collect();
    let document = serde_json::json!({ "learner": {
        "feature_names": [],
        "gradient_booster": { "name": "gbtree", "model": { "trees": all } },
        "learner_model_param": { "base_score": "[5E-1]", "num_feature": "7" },
        "objective": { "name": "binary:logistic" },
    }});
    document.to_string()
}
