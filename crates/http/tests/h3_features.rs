//! Features of HTTP/3 besides requests and responses: priorities, extended CONNECT, datagrams,
//! capsules, WebTransport, field compression across streams.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod support;

#[path = "h3_features/compression.rs"]
mod compression;
#[path = "h3_features/connect.rs"]
mod connect;
#[path = "h3_features/priorities.rs"]
mod priorities;
#[path = "h3_features/webtransport.rs"]
mod webtransport;
#[path = "h3_features/webtransport_client.rs"]
mod webtransport_client;
