//! Minimal HTTP/1.1 over TLS: one request per connection.

#![allow(dead_code, reason = "each test file uses a part of this")]

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use swiftwater::tls::pki_types::ServerName;
use swiftwater::tls::rustls::client::ClientConnection;
use swiftwater::tls::rustls::crypto::aws_lc_rs;
use swiftwater::tls::rustls::version::TLS13;
use swiftwater::tls::rustls::{
    ClientConfig, ProtocolVersion, RootCertStore, StreamOwned, SupportedProtocolVersion,
};
use swiftwater::{CertificateDer, DevCertificate};

/// Far longer than any step of a test.
const TIME_LIMIT: Duration = Duration::from_secs(60);

/// The request.
pub(crate) struct Ask<'a> {
    pub(crate) port: u16,
    /// The name that the server must prove to have.
    pub(crate) name: &'static str,
    pub(crate) trusted: &'a DevCertificate,
    /// `Host`.
    pub(crate) host: &'a str,
    pub(crate) path: &'a str,
    /// Further fields, each with its line end.
    pub(crate) fields: &'a str,
    pub(crate) version: &'static SupportedProtocolVersion,
}

impl<'a> Ask<'a> {
    pub(crate) fn new(port: u16, trusted: &'a DevCertificate, path: &'a str) -> Self {
        Self {
            port,
            name: "localhost",
            trusted,
            host: "localhost",
            path,
            fields: "",
            version: &TLS13,
        }
    }
}

/// The response.
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// In lower case.
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
    pub(crate) certificate: CertificateDer<'static>,
    pub(crate) version: Option<ProtocolVersion>,
}

/// Asks over TLS.
pub(crate) fn https(ask: &Ask<'_>) -> io::Result<Answer> {
    let mut roots = RootCertStore::empty();
    roots.add(ask.trusted.certificate_der()).unwrap();
    let provider = Arc::new(aws_lc_rs::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[ask.version])
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    let name = ServerName::try_from(ask.name).unwrap();
    let session = ClientConnection::new(Arc::new(config), name).unwrap();
    let socket = TcpStream::connect(("127.0.0.1", ask.port))?;
    socket.set_read_timeout(Some(TIME_LIMIT))?;
    let mut stream = StreamOwned::new(session, socket);
    let (path, host, fields) = (ask.path, ask.host, ask.fields);
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n{fields}\r\n"
    )?;
    let (head, body) = read_answer(&mut stream)?;
    let chain = stream.conn.peer_certificates().unwrap();
    Ok(Answer {
        status: status(&head),
        head,
        body,
        certificate: chain[0].clone().into_owned(),
        version: stream.conn.protocol_version(),
    })
}

/// Asks without TLS; status and body.
pub(crate) fn http(address: &str, path: &str) -> io::Result<(u16, String)> {
    let mut socket = TcpStream::connect(address)?;
    socket.set_read_timeout(Some(TIME_LIMIT))?;
    write!(
        socket,
        "GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"
    )?;
    let (head, body) = read_answer(&mut socket)?;
    Ok((status(&head), String::from_utf8(body).unwrap()))
}

fn read_answer(stream: &mut impl Read) -> io::Result<(String, Vec<u8>)> {
    let mut answer = Vec::new();
    match stream.read_to_end(&mut answer) {
        // Some servers end without a farewell of TLS.
        Err(error) if error.kind() != io::ErrorKind::UnexpectedEof => return Err(error),
        _ => {}
    }
    let end = answer.windows(4).position(|window| window == b"\r\n\r\n");
    let end = end.ok_or_else(|| io::Error::from(io::ErrorKind::UnexpectedEof))?;
    let head = String::from_utf8(answer[..end].to_vec()).unwrap();
    Ok((head.to_ascii_lowercase(), answer[end + 4..].to_vec()))
}

fn status(head: &str) -> u16 {
    head.split(' ').nth(1).unwrap().parse().unwrap()
}
