//! The tests of `swiftwater-http`: one program, so that generic code and helpers are compiled and linked once.
//! Each topic is a module: `cargo test -p swiftwater-http --test all TOPIC::` runs one.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod client_world;
#[path = "../../quic/tests/hostile/coding.rs"]
mod coding;
mod hall;
mod pair;
#[path = "../../quic/tests/hostile/peer.rs"]
mod peer;
mod peers;
#[path = "../../quic/tests/hostile/persona.rs"]
mod persona;
mod raw_h2;
mod site;
mod sockets;
mod support;

mod acme_challenges;
mod applications;
mod client_content;
mod client_hedging;
mod client_protocols;
mod client_requests;
mod client_selection;
mod client_tcp;
#[cfg(target_os = "linux")]
mod client_tcp_statistics;
mod h3_codecs;
mod h3_exchange;
mod h3_features;
mod h3_lifecycle;
mod h3_random;
mod h3_rules;
mod proxy;
mod proxy_calls;
mod proxy_failures;
mod proxy_hygiene;
mod proxy_upstreams;
mod proxy_websocket;
mod proxy_websocket_http2;
mod qpack;
mod response_budget;
mod tcp_abuse;
mod tcp_hosts;
mod tcp_operation;
mod tcp_server;
mod tcp_slow_readers;
mod tcp_unread;
mod udp;
mod udp_early_data;
mod udp_frames_before_the_end;
mod udp_idle;
mod web_conditions;
mod web_files;
mod web_files_cache;
mod web_files_limits;
mod web_layers;
mod web_nginx;
mod web_upgrade;
mod webtransport_abuse;
mod webtransport_sessions;
