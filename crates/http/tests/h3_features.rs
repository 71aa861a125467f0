//! Features of HTTP/3 besides requests and responses: priorities, extended CONNECT, datagrams,
//! capsules, WebTransport, field compression across streams, short content that comes with its head.

mod compression;
mod connect;
mod priorities;
mod short_content;
mod webtransport;
mod webtransport_client;
