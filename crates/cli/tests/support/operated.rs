//! A server with a configuration file.

#![allow(dead_code, reason = "each test file uses a part of this")]

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::Command;
use std::thread;

use serde_json::Value;
use swiftwater::{Client, ClientError, DevCertificate};
use swiftwater_http::h3::Config;
use swiftwater_http::udp::{ALPN_HTTP3, SendRequest};
use tempfile::TempDir;

use crate::support::{Running, swiftwater};

/// A server with a configuration file in a directory of its own.
pub(crate) struct Operated {
    pub(crate) home: TempDir,
    server: Option<Running>,
    pub(crate) port: u16,
}

impl Operated {
    /// Writes the files and starts the server. `{home}` in the configuration is the directory.
    pub(crate) fn start(
        config: &str,
        files: &[(&str, &str)],
        certificates: &[&DevCertificate],
    ) -> Self {
        let home = TempDir::new().unwrap();
        let mut operated = Self {
            home,
            server: None,
            port: 0,
        };
        for (name, text) in files {
            operated.write(name, text);
        }
        for (index, certificate) in certificates.iter().enumerate() {
            operated.write_certificate(index, certificate);
        }
        operated.write("serve.toml", config);
        let mut command = swiftwater();
        command
            .args(["serve", "--json", "--listen", "127.0.0.1:0", "--config"])
            .arg(operated.path("serve.toml"));
        let server = Running::start(command);
        let address: SocketAddr = server.first["address"].as_str().unwrap().parse().unwrap();
        operated.port = address.port();
        operated.server = Some(server);
        operated
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub(crate) fn write_certificate(&self, index: usize, certificate: &DevCertificate) {
        self.write(&format!("{index}.pem"), certificate.certificate_pem());
        self.write(&format!("{index}.key"), certificate.private_key_pem());
    }

    pub(crate) fn server(&mut self) -> &mut Running {
        self.server.as_mut().unwrap()
    }

    /// The next event of that kind on standard output.
    pub(crate) fn event(&mut self, kind: &str) -> Value {
        loop {
            let event = self.server().next();
            if event["event"] == kind {
                return event;
            }
        }
    }

    /// Makes the server read its configuration again, and waits until it has tried.
    pub(crate) fn hang_up(&mut self, kind: &str) -> Value {
        let pid = self.server().id().to_string();
        let kill = Command::new("kill").args(["-HUP", &pid]).status();
        assert!(kill.unwrap().success());
        self.event(kind)
    }

    pub(crate) async fn http3(
        &self,
        name: &str,
        trusted: &DevCertificate,
    ) -> Result<SendRequest, ClientError> {
        let client = Client::builder()
            .alpn([ALPN_HTTP3])
            .trust_only([trusted.certificate_der()])
            .build()
            .unwrap();
        let address = SocketAddr::from(([127, 0, 0, 1], self.port));
        let connection = client.connect_to(address, name).await?;
        Ok(SendRequest::new(connection, Config::default()))
    }

    /// Stops the server; its exit code.
    pub(crate) fn interrupt(mut self) -> Option<i32> {
        self.server.take().unwrap().interrupt()
    }

    /// Stops the server in good order.
    pub(crate) fn stop(mut self) -> TempDir {
        let code = self.server.take().unwrap().interrupt();
        assert_eq!(code, Some(0));
        self.home
    }
}

/// An HTTP/1.1 server without TLS: a further field and the content of each response, by the request's first line.
pub(crate) fn upstream(answer: impl Fn(&str) -> (String, String) + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut head = Vec::new();
            let mut byte = [0];
            while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).unwrap_or(0) == 1 {
                head.push(byte[0]);
            }
            let head = String::from_utf8(head).unwrap();
            let (field, text) = answer(head.lines().next().unwrap_or_default());
            let length = text.len();
            let response = format!(
                "HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n{field}\r\nconnection: close\r\n\r\n{text}"
            );
            let _ = stream.write_all(response.as_bytes());
        }
    });
    address
}
