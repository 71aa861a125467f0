//! The tests of `swiftwater-cli`: one program, so that generic code and helpers are compiled and linked once.
//! Each topic is a module: `cargo test -p swiftwater-cli --test all TOPIC::` runs one.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/https.rs"]
mod https;
mod namespaces;
#[path = "support/operated.rs"]
mod operated;
mod origin;
mod support;
#[cfg(unix)]
#[path = "support/tunnel_proxy.rs"]
mod tunnel_proxy;

mod arguments;
mod conformance;
mod declared_tests;
mod demo_multipath;
mod demo_select;
mod demo_web;
mod demo_web_parts;
mod documented_files;
mod echo;
mod exit_codes;
mod failures;
mod get_caution;
mod get_connections;
mod get_continue;
mod get_http;
mod get_selection;
mod hq;
mod import_directions;
mod lab;
mod lab_documents;
mod live;
mod live_parts;
mod logs;
mod module_cycles;
mod multipath;
mod page_links;
mod part_files;
mod perf_http;
mod play;
mod relay_legs;
mod reports;
mod security_page;
mod serve_config;
mod serve_operation;
mod serve_resources;
mod serve_routes;
mod serve_upstreams;
mod service;
mod silly_values;
mod stopping;
mod transfers;
mod tunnel;
mod tunnel_chains;
mod tunnel_get;
mod tunnel_ip;
mod tunnel_paths;
mod tunnel_sites;
mod tunnel_users;
mod urls;
mod web;
