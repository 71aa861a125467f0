//! Swiftwater: a QUIC transport for services that must feel instant.
//!
//! # A first program
//!
//! A server that echoes, and a client:
//!
//! ```
//! use swiftwater::{Client, DevCertificate, Server};
//!
//! #[tokio::main]
//! async fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let certificate = DevCertificate::generate(["localhost"])?;
//!     let trusted = certificate.certificate_der();
//!     let server = Server::builder().dev_certificate(&certificate).alpn(["echo"]);
//!     let server = server.bind("127.0.0.1:0".parse()?)?;
//!     let address = server.local_addr();
//!     tokio::spawn(async move {
//!         let connection = server.accept().await.expect("not closed");
//!         while let Ok((mut send, mut recv)) = connection.accept_bi().await {
//!             tokio::io::copy(&mut recv, &mut send).await.expect("echo");
//!         }
//!     });
//!
//!     let client = Client::builder().trust_only([trusted]).alpn(["echo"]).build()?;
//!     let connection = client.connect_to(address, "localhost").await?;
//!     let (mut send, mut recv) = connection.open_bi().await?;
//!     send.write_all(b"hello").await?;
//!     send.finish()?;
//!     assert_eq!(recv.read_to_end(1000).await?, b"hello");
//!     println!("round trip: {:?}", connection.stats().paths[0].smoothed_rtt);
//!     client.close().await;
//!     Ok(())
//! }
//! ```
//!
//! # A web server and a client
//!
//! Any tower service, over HTTP/3, HTTP/2 and HTTP/1.1 on one port number ([`WebServer`]):
//!
//! ```
//! use axum::{Router, routing::get};
//! use swiftwater::{Client, DevCertificate, ResponseExt, Server};
//!
//! #[tokio::main]
//! async fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let certificate = DevCertificate::generate(["localhost"])?;
//!     let app = Router::new().route("/", get(async || "hello"));
//!     let server = Server::builder().dev_certificate(&certificate);
//!     let server = server.bind_web("127.0.0.1:0".parse()?)?;
//!     let uri = format!("https://localhost:{}/", server.local_addr().port());
//!     tokio::spawn(server.serve(app));
//!
//!     let client = Client::builder().trust_only([certificate.certificate_der()]).build_http()?;
//!     let response = client.get(&uri).await?;
//!     println!("{:?} {}", response.version(), response.status());
//!     assert_eq!(response.text().await?, "hello");
//!     Ok(())
//! }
//! ```
//!
//! # Overview
//!
//! - [`Client`] and [`Server`]: endpoints with default settings; [`Profile`] selects settings by
//!   purpose.
//! - [`Connection`], [`SendStream`], [`RecvStream`]: streams are `AsyncRead` and `AsyncWrite`;
//!   unreliable datagrams; closing with code and reason; [`Connection::stats`].
//! - [`paths`]: which paths a client keeps open in a connection with several.
//! - [`Select`], [`select`]: the choice of TCP or QUIC for each request of an HTTP client.
//! - [`http`]: HTTP/3 with its client, proxy, files, and the layers around a service.
//! - [`net`]: endpoints with every option, and [`net::relay`], an emulated link between real
//!   programs.
//! - [`quic`]: the sans-I/O protocol, for other drivers and simulators.
//! - [`congestion`], [`policies`], [`qlog`], [`link`], [`tls`], [`units`]: the other parts.
//!
//! A client verifies certificates against the platform's authorities by default.

#![forbid(unsafe_code)]

mod builder;
mod chosen_policies;
mod client;
mod error;
pub mod paths;
mod profile;
mod server;
mod settings;
mod web_client;
mod web_server;

pub use builder::Builder;
pub use client::{Client, ClientBuilder, ClientSide};
pub use error::{BuildError, ClientError};
pub use profile::{Profile, UnknownProfile};
pub use server::{Server, ServerBuilder, ServerSide};
pub use web_server::WebServer;

pub use swiftwater_http::client::{
    ArmChoice, HttpClient, ReplaySafe, ResponseExt, Select, SelectionSnapshot, select,
};
pub use swiftwater_net::{
    Acceptor, BindError, Connecting, Connection, Endpoint, EndpointOptions, EndpointStats,
    PathEvent, PathEvents, ReadExactError, ReadToEndError, RecvStream, SendStream,
};
pub use swiftwater_quic::wire::{VERSION_1, VERSION_2};
pub use swiftwater_quic::{
    AbandonPathError, ConnectError, ConnectionError, ConnectionStats, EarlyData, EarlyDataOutcome,
    LocalAddress, MigrateError, MtuDiscovery, MultipathConfig, MultipathVersions, OpenPathError,
    PathAddress, PathStats, Priority, PtoLimit, ReadError, RetryPolicy, SendDatagramError,
    SocketId, TransportConfig, WriteError,
};
pub use swiftwater_tls::pki_types::CertificateDer;
pub use swiftwater_tls::{CipherSuite, DevCertificate, MemorySessionStore, SessionStore, Tickets};

pub use swiftwater_congestion as congestion;
pub use swiftwater_http as http;
pub use swiftwater_link as link;
pub use swiftwater_net as net;
pub use swiftwater_policies as policies;
pub use swiftwater_qlog as qlog;
pub use swiftwater_quic as quic;
pub use swiftwater_tls as tls;
pub use swiftwater_units as units;
