//! Opens thousands of connections between one client socket and one server socket, lets each move a
//! little, and reports the memory that each holds while idle.
//!
//! ```sh
//! cargo run --release -p swiftwater --example many_connections -- 5000
//! ```
//!
//! Both ends live in this process, so each connection is counted twice: once as a client's, once as
//! a server's. Resident memory is read from `/proc`, so the number is only printed on Linux.

use std::time::{Duration, Instant};

use swiftwater::{Client, Connection, DevCertificate, Server};

/// Handshakes in progress at once.
const AT_ONCE: usize = 50;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let count: usize = std::env::args().nth(1).map_or(Ok(5000), |n| n.parse())?;
    let certificate = DevCertificate::generate(["localhost"])?;
    let trusted = certificate.certificate_der();
    let server = Server::builder()
        .dev_certificate(&certificate)
        .alpn(["echo"])
        .transport(|transport| transport.max_idle_timeout = Some(Duration::from_secs(600)))
        .bind("127.0.0.1:0".parse()?)?;
    let address = server.local_addr();
    tokio::spawn(async move {
        let mut kept = Vec::new();
        while let Some(connection) = server.accept().await {
            kept.push(connection.clone());
            tokio::spawn(async move {
                while let Ok((mut send, mut recv)) = connection.accept_bi().await {
                    let _ = tokio::io::copy(&mut recv, &mut send).await;
                }
            });
        }
    });
    let client = Client::builder()
        .trust_only([trusted])
        .alpn(["echo"])
        .transport(|transport| transport.max_idle_timeout = Some(Duration::from_secs(600)))
        .build()?;

    let before = resident_kb();
    let started = Instant::now();
    let mut connections: Vec<Connection> = Vec::with_capacity(count);
    while connections.len() < count {
        let mut batch = tokio::task::JoinSet::new();
        for _ in 0..AT_ONCE.min(count - connections.len()) {
            let client = client.clone();
            batch.spawn(async move { client.connect_to(address, "localhost").await });
        }
        while let Some(connection) = batch.join_next().await {
            connections.push(connection??);
        }
    }
    println!(
        "{count} connections in {:.2} s",
        started.elapsed().as_secs_f64()
    );
    for connection in &connections {
        let (mut send, mut recv) = connection.open_bi().await?;
        send.write_all(b"are you there?").await?;
        send.finish()?;
        assert_eq!(recv.read_to_end(100).await?, b"are you there?");
    }
    println!(
        "each echoed 14 bytes after {:.2} s",
        started.elapsed().as_secs_f64()
    );
    // Late acknowledgements and new connection IDs settle.
    tokio::time::sleep(Duration::from_secs(2)).await;
    if let (Some(before), Some(after)) = (before, resident_kb()) {
        let each = (after - before) as f64 / count as f64;
        println!("{each:.1} kB for each connection, both ends together");
    }
    client.close().await;
    Ok(())
}

/// Resident memory of this process in kB.
fn resident_kb() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}
