//! A file server on quiche over `hq-interop`.

use std::collections::HashMap;
use std::error::Error;
use std::path::PathBuf;

use clap::Parser;
use quiche::{Connection, Shutdown};
use swiftwater_interop_peers_quiche::config;
use swiftwater_interop_peers_quiche::server::{Session, serve};
use swiftwater_interop_program::arguments::{ServerArguments, Suite, refuse};
use swiftwater_interop_program::hq;

#[derive(Parser)]
struct Command {
    #[command(flatten)]
    arguments: ServerArguments,
}

/// The requests of one connection.
struct Files {
    root: PathBuf,
    /// Received parts of incomplete requests.
    requests: HashMap<u64, Vec<u8>>,
    /// What is to be sent yet.
    answers: HashMap<u64, (Vec<u8>, usize)>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments = Command::parse().arguments;
    let lacking = [
        ("starts no key update", arguments.key_update),
        (
            "leaves no choice of version",
            arguments.quic_version.is_some(),
        ),
        (
            "leaves no choice of cipher suite",
            arguments.suite != Suite::Any,
        ),
        ("has no version 2", arguments.v2),
    ];
    refuse("quiche", &lacking);
    let mut config = config()?;
    config.load_cert_chain_from_pem_file(&arguments.cert.to_string_lossy())?;
    config.load_priv_key_from_pem_file(&arguments.key.to_string_lossy())?;
    if arguments.zero_rtt {
        config.enable_early_data();
    }
    serve(arguments.listen, arguments.retry, config, || Files {
        root: arguments.dir.clone(),
        requests: HashMap::new(),
        answers: HashMap::new(),
    })
}

impl Session for Files {
    fn drive(&mut self, connection: &mut Connection) {
        self.requests(connection);
        self.answers(connection);
    }
}

impl Files {
    /// Reads requests.
    fn requests(&mut self, connection: &mut Connection) {
        let mut buffer = vec![0; hq::MAX_REQUEST];
        for stream in connection.readable() {
            while let Ok((size, end)) = connection.stream_recv(stream, &mut buffer) {
                let request = self.requests.entry(stream).or_default();
                request.extend_from_slice(&buffer[..size]);
                if end {
                    let request = self.requests.remove(&stream).unwrap_or_default();
                    self.answer(connection, stream, &request);
                } else if request.len() > hq::MAX_REQUEST {
                    let _ = connection.close(true, 1, b"request too long");
                }
            }
        }
    }

    fn answer(&mut self, connection: &mut Connection, stream: u64, request: &[u8]) {
        println!("request {}", String::from_utf8_lossy(request).trim_end());
        let content =
            hq::requested_file(&self.root, request).and_then(|path| std::fs::read(path).ok());
        match content {
            Some(content) => {
                self.answers.insert(stream, (content, 0));
            }
            None => {
                let code = hq::NOT_FOUND.into();
                let _ = connection.stream_shutdown(stream, Shutdown::Write, code);
            }
        }
    }

    /// Writes as much of the answers as the library accepts.
    fn answers(&mut self, connection: &mut Connection) {
        self.answers.retain(|&stream, (content, sent)| {
            while let Ok(size) = connection.stream_send(stream, &content[*sent..], true) {
                *sent += size;
                if *sent == content.len() {
                    return false;
                }
                if size == 0 {
                    break;
                }
            }
            true
        });
    }
}
