//! Clients and servers, tuned or with the library's defaults.
//!
//! Tuned: windows and send buffer that don't have to grow first; an initial congestion window that spares the
//! ramp; no tickets; an ACK every tenth packet (ACK frequency). CUBIC, the default, is the controller; where packets
//! are lost at random, BBR. The server, and the client of small requests, work inside the workers (`hosted`).

use std::fs;
use std::future::ready;
use std::net::IpAddr;

use job::{
    CONNECTION_WINDOW, ClientArguments, Controller, Failure, INITIAL_WINDOW, MAX_STREAMS,
    STREAM_WINDOW, ServerArguments, Settings, tls,
};
use swiftwater::http::client::{Policy, Resolved, Resolver, Resolving};
use swiftwater::quic::AckFrequencyConfig;
use swiftwater::tls::Tickets;
use swiftwater::{
    Builder, CipherSuite, Client, ClientBuilder, HttpClient, Server, ServerBuilder,
    TransportConfig, WebServer,
};

/// The controller that minds random losses least.
const LOSSY_CONTROLLER: &str = "bbr1";

/// A server that is bound.
pub(crate) fn server(arguments: &ServerArguments) -> Result<Server, Failure> {
    Ok(server_builder(arguments)?.bind(arguments.listen)?)
}

/// A web server that is bound.
pub(crate) fn web_server(arguments: &ServerArguments) -> Result<WebServer, Failure> {
    Ok(server_builder(arguments)?.bind_web(arguments.listen)?)
}

fn server_builder(arguments: &ServerArguments) -> Result<ServerBuilder, Failure> {
    let (chain, key) = (fs::read(&arguments.cert)?, fs::read(&arguments.key)?);
    let mut builder = common(Server::builder(), arguments.settings)
        .certificate_pem(chain, key)
        .workers(arguments.workers);
    if arguments.settings.tuned {
        builder = builder.tickets(Tickets::Off);
    }
    Ok(builder)
}

/// A client with the given trust.
pub(crate) fn client(arguments: &ClientArguments) -> Result<Client, Failure> {
    Ok(client_builder(arguments)?.build()?)
}

/// A client of HTTP/3 with the given trust.
pub(crate) fn http_client(arguments: &ClientArguments) -> Result<HttpClient, Failure> {
    let builder = client_builder(arguments)?.http()?;
    let builder = builder.policy(Policy::Http3Only);
    Ok(builder.resolver(Fixed(arguments.connect.ip())).build()?)
}

/// Has every name at one address.
#[derive(Debug)]
struct Fixed(IpAddr);

impl Resolver for Fixed {
    fn resolve<'a>(&'a self, _: &'a str, _: u16) -> Resolving<'a> {
        let resolved = Resolved {
            addresses: vec![self.0],
            https: None,
        };
        Box::pin(ready(Ok(resolved)))
    }
}

fn client_builder(arguments: &ClientArguments) -> Result<ClientBuilder, Failure> {
    let builder = common(Client::builder(), arguments.settings)
        .bind(arguments.local())
        .trust_only(tls::certificates(&arguments.ca)?)
        // Every handshake is to be a full one.
        .sessions(None);
    Ok(builder)
}

fn common<Side>(builder: Builder<Side>, settings: Settings) -> Builder<Side> {
    let builder = builder
        .alpn([settings.alpn()])
        .cipher_suites(&[CipherSuite::Aes128Gcm])
        .transport(|transport| {
            transport.initial_max_datagram_size = settings.mtu;
            transport.mtu_discovery = None;
            // Connections that are held are to stay.
            transport.max_idle_timeout = None;
            transport.max_concurrent_bidi_streams = MAX_STREAMS.into();
            if settings.tuned {
                tune(transport);
            }
        });
    match settings.controller {
        Some(Controller::Cubic) => builder.congestion("cubic"),
        Some(Controller::Bbr1) => builder.congestion("bbr1"),
        Some(Controller::Bbr2) => builder.congestion("bbr2"),
        Some(Controller::Bbr3) => builder.congestion("bbr3"),
        None if settings.tuned && settings.lossy => builder.congestion(LOSSY_CONTROLLER),
        None => builder,
    }
}

fn tune(transport: &mut TransportConfig) {
    let (stream, connection) = (u64::from(STREAM_WINDOW), u64::from(CONNECTION_WINDOW));
    transport.stream_receive_window = stream.into();
    transport.max_stream_receive_window = stream.into();
    transport.receive_window = connection.into();
    transport.max_receive_window = connection.into();
    transport.send_window = stream.into();
    transport.initial_window = Some(u64::from(INITIAL_WINDOW).into());
    transport.ack_frequency = Some(AckFrequencyConfig::default());
}
