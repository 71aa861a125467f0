//! Tunnels as a route of a site, in a configuration file.

#![cfg(unix)]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::thread;

use swiftwater::DevCertificate;

use crate::operated::Operated;
use crate::support::{Running, swiftwater};

/// Tunnels for everybody at one site, and files at another one; no site for other hosts.
const CONFIG: &str = "\
[[certificate]]
cert = \"0.pem\"
key = \"0.key\"
[[site]]
hosts = [\"files.example\"]
[[site.route]]
directory = \"files\"
[[site]]
hosts = [\"localhost\"]
[[site.route]]
[site.route.tunnels]
anyone = true
ports = [\"1-65535\"]
allow = [\"127.0.0.0/8\"]
most_per_user = 2
";

/// A server for TCP that sends everything back as it comes.
fn echo() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            thread::spawn(move || {
                let mut reader = stream.try_clone().unwrap();
                std::io::copy(&mut reader, &mut stream)
            });
        }
    });
    address
}

fn connect(server: &Operated, forward: &str, version: &str) -> Command {
    let mut command = swiftwater();
    command.args(["tunnel", "connect", "--json", "--insecure"]);
    command.arg(format!("localhost:{}", server.port));
    command.args(["-L", forward, "--http-version", version]);
    command
}

/// A stream through a tunnel of `client` that has carried something.
fn stream(client: &Running) -> TcpStream {
    let local = client.first["local"].as_str().unwrap();
    let mut stream = TcpStream::connect(local).unwrap();
    stream.write_all(b"hello").unwrap();
    let mut received = [0; 5];
    stream.read_exact(&mut received).unwrap();
    assert_eq!(&received, b"hello");
    stream
}

#[test]
fn the_site_of_a_tunnel_is_that_of_the_server() {
    let certificate = DevCertificate::generate(["localhost"]).unwrap();
    let server = Operated::start(CONFIG, &[("files/a", "a")], &[&certificate]);
    let target = echo();
    for version in ["h3", "h2", "h1"] {
        let forward = format!("tcp:0:{target}");
        let client = Running::start(connect(&server, &forward, version));
        drop(stream(&client));
        assert_eq!(client.ended()["failed"], 0);
    }
    server.stop();
}

#[test]
fn tunnels_count_over_a_reload() {
    let certificate = DevCertificate::generate(["localhost"]).unwrap();
    let mut server = Operated::start(CONFIG, &[("files/a", "a")], &[&certificate]);
    let forward = format!("tcp:0:{}", echo());
    let client = Running::start(connect(&server, &forward, "h3"));
    let streams = [stream(&client), stream(&client)];
    server.hang_up("reloaded");
    let local = client.first["local"].as_str().unwrap();
    let mut third = TcpStream::connect(local).unwrap();
    let mut nothing = Vec::new();
    // An end, or a reset.
    let _ = third.read_to_end(&mut nothing);
    assert!(nothing.is_empty());
    drop(streams);
    let ended = client.ended();
    assert_eq!(
        (&ended["tunnels"], &ended["failed"]),
        (&2.into(), &1.into())
    );
    server.stop();
}
