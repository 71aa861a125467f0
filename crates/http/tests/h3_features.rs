//! Features of HTTP/3 besides requests and responses: priorities, extended CONNECT, datagrams,
//! capsules, WebTransport, field compression across streams.

mod compression;
mod connect;
mod priorities;
mod webtransport;
mod webtransport_client;
