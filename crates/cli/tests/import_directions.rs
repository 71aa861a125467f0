//! The workspace's import directions: each crate may depend only on crates above it.
//!
//! Development dependencies are free, so that the core can be tested with real TLS.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Crates from the foundation upwards; a crate may import only those before it.
const ORDER: &[&str] = &[
    "units",
    "link",
    "wire",
    "tunable",
    "congestion",
    "quic",
    "tls",
    "tecc",
    "policies",
    "qlog",
    "sim",
    "net",
    "select",
    "http",
    "acme",
    "tunnel",
    "media",
    "swiftwater",
    "lab",
    "cli",
];

/// What a crate may import where the order alone would allow too much.
const EXACTLY: &[(&str, &[&str])] = &[
    ("units", &[]),
    ("link", &["units"]),
    ("wire", &["units"]),
    ("tunable", &["units"]),
    ("congestion", &["units", "tunable"]),
    ("quic", &["units", "wire", "congestion"]),
    ("select", &["units"]),
    (
        "http",
        &[
            "units",
            "wire",
            "congestion",
            "quic",
            "tls",
            "policies",
            "net",
            "select",
        ],
    ),
    ("acme", &["http"]),
    ("tecc", &["units", "wire"]),
    ("tunnel", &["units", "wire", "tls", "tecc", "net", "http"]),
];

/// Crates that never touch a clock, a socket or a runtime.
const SANS_IO: &[&str] = &[
    "units",
    "link",
    "wire",
    "tunable",
    "congestion",
    "quic",
    "tecc",
    "policies",
    "select",
    "media",
];

/// Names of the dependencies (not the development ones) in a manifest.
fn dependencies(manifest: &str) -> BTreeSet<String> {
    let mut section = "";
    let mut names = BTreeSet::new();
    for line in manifest.lines().map(str::trim) {
        if line.starts_with('[') {
            section = line;
        } else if section == "[dependencies]"
            && let Some((key, _)) = line.split_once('=')
        {
            let name = key.trim().split('.').next().unwrap_or_default();
            names.insert(name.to_owned());
        }
    }
    names
}

fn manifests() -> BTreeMap<String, BTreeSet<String>> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("crates/");
    ORDER
        .iter()
        .map(|name| {
            let path = crates.join(name).join("Cargo.toml");
            let text = std::fs::read_to_string(&path)
                .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            ((*name).to_owned(), dependencies(&text))
        })
        .collect()
}

/// The folder of a workspace package, or `None` for a third-party one.
fn folder(package: &str) -> Option<&str> {
    match package {
        "swiftwater" => Some("swiftwater"),
        other => other.strip_prefix("swiftwater-"),
    }
}

#[test]
fn crates_import_only_crates_below_them() {
    for (name, dependencies) in manifests() {
        let rank = ORDER
            .iter()
            .position(|other| *other == name)
            .expect("listed");
        for import in dependencies.iter().filter_map(|package| folder(package)) {
            assert!(
                ORDER[..rank].contains(&import),
                "crates/{name} must not import crates/{import}"
            );
            if let Some((_, allowed)) = EXACTLY.iter().find(|(exact, _)| *exact == name) {
                assert!(
                    allowed.contains(&import),
                    "crates/{name} may import only {allowed:?}"
                );
            }
        }
    }
}

#[test]
fn every_crate_is_in_the_order() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("crates/");
    for entry in std::fs::read_dir(crates).expect("crates/ is readable") {
        let name = entry
            .expect("readable")
            .file_name()
            .into_string()
            .expect("UTF-8");
        assert!(
            ORDER.contains(&name.as_str()),
            "crates/{name} has no place in the order"
        );
    }
}

#[test]
fn protocol_crates_import_no_runtime_and_no_sockets() {
    let manifests = manifests();
    for name in SANS_IO {
        for forbidden in ["tokio", "quinn-udp", "socket2", "getrandom", "rand"] {
            assert!(
                !manifests[*name].contains(forbidden),
                "crates/{name} is sans-I/O and must not import {forbidden}"
            );
        }
    }
}
