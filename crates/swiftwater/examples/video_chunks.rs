//! Chunks of video over two paths: the server announces the size of each response, the client says
//! what it has buffered. Both ends are in one program: `cargo run --example video_chunks`.
#![allow(clippy::print_stdout, reason = "an example prints")]

use std::{error::Error, net::Ipv4Addr, time::Duration};
use swiftwater::paths::{LocalEnd, PathManager, PathPolicy, PathRule};
use swiftwater::quic::{MultipathConfig, policy::ChunkExpectation, policy::PlayerSignal};
use swiftwater::units::Bandwidth;
use swiftwater::{Client, DevCertificate, Server};

const CHUNK: usize = 1_000_000; // 4 s at 2 Mbit/s

async fn serve(server: Server) -> Result<(), Box<dyn Error + Send + Sync>> {
    let connection = server.accept().await.ok_or("no client")?;
    loop {
        let (mut send, mut recv) = connection.accept_bi().await?;
        recv.read_to_end(100).await?;
        connection.announce_response(send.id(), CHUNK as u64);
        send.write_all(&vec![7; CHUNK]).await?;
        send.finish()?;
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let certificate = DevCertificate::generate(["localhost"])?;
    let server = Server::builder().dev_certificate(&certificate).alpn(["v"]);
    let server = server.multipath(MultipathConfig::default());
    let server = server.scheduler("chorus").recovery("chorus");
    let server = server.feedback("chorus").bind("127.0.0.1:0".parse()?)?;
    let address = server.local_addr();
    tokio::spawn(serve(server));
    let client = Client::builder().trust_only([certificate.certificate_der()]);
    let client = client.multipath(MultipathConfig::default()).alpn(["v"]);
    let client = client.feedback("player").bind("127.0.0.1:0".parse()?);
    let client = client.build()?;
    let connection = client.connect_to(address, "localhost").await?;
    let ends = [1, 2].map(|host| LocalEnd::Address(Ipv4Addr::new(127, 0, 0, host).into()));
    let policy = PathPolicy::new(ends.map(PathRule::new));
    let _paths = PathManager::start(client.endpoint(), &connection, policy, []);
    let bitrate = Bandwidth::from_mbps(2);
    let expected_time = Duration::from_millis(500);
    for chunk in 0..5 {
        let buffered = Duration::from_secs(4 * chunk);
        connection.update_hints(|hints| {
            hints.player = Some(PlayerSignal::buffering(buffered, bitrate, 24.0));
            hints.expectation = Some(ChunkExpectation {
                chunk,
                expected_time,
            });
        });
        let (mut send, mut recv) = connection.open_bi().await?;
        send.finish()?;
        println!("{} bytes", recv.read_to_end(CHUNK).await?.len());
    }
    println!("over {} paths", connection.paths().len());
    Ok(())
}
