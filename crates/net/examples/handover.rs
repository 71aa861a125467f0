//! What it costs a server with two workers that a client's datagrams arrive at the wrong one, as after a migration.
//!
//! ```sh
//! cargo run --release -p swiftwater-net --example handover -- [megabytes]
//! ```
//!
//! A client uploads while its datagrams arrive at the worker of its connection, migrates to a port that the system
//! gives to the other worker, and uploads again. Prints the processor time of both workers for each. Linux only: the
//! threads of workers are found by name in `/proc`.

use std::error::Error;
use std::fs;
use std::net::SocketAddr;
use std::sync::Arc;

use swiftwater_net::quic::{ClientConfig, EndpointConfig, ServerConfig, TransportConfig};
use swiftwater_net::{Connection, Endpoint, EndpointOptions};
use swiftwater_tls::{ClientTls, DevCertificate, EndpointSecrets, ServerTls};

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

const LOOPBACK: &str = "127.0.0.1:0";
const MEGABYTE: usize = 1_000_000;
const ROUNDS: u32 = 5;

#[tokio::main]
async fn main() -> Outcome<()> {
    let megabytes = std::env::args()
        .nth(1)
        .map_or(Ok(500), |text| text.parse())?;
    let any: SocketAddr = LOOPBACK.parse()?;
    let certificate = DevCertificate::generate(["localhost"])?;
    let tls = ServerTls::from_dev_certificate(&certificate)?.alpn(["sink"]);
    let config = ServerConfig::new(Arc::new(tls), Arc::new(TransportConfig::default()));
    let options = EndpointOptions::new(secrets(1), [1; 32])
        .server(config)
        .workers(2);
    let server = Endpoint::bind(any, options)?;
    let accepting = server.clone();
    tokio::spawn(async move {
        while let Some(connection) = accepting.accept().await {
            let runtime = connection.runtime();
            runtime.spawn(sink(connection));
        }
    });
    let client = Endpoint::client(any, secrets(2), [2; 32])?;
    let tls = ClientTls::with_roots([certificate.certificate_der()])?.alpn(["sink"]);
    let config = ClientConfig {
        crypto: Arc::new(tls),
        transport: Arc::default(),
    };
    let connection = client
        .connect(&config, server.local_addr(), "localhost")?
        .await?;
    connection.handshake_confirmed().await?;
    println!("datagrams arrive at | CPU s/GB of the workers | handed over | dropped");
    for _ in 0..ROUNDS {
        report("their own worker", &server, &connection, megabytes).await?;
        let home = connection.path_address().local.socket;
        let mut away = Vec::new();
        // Ports fall to either worker alike.
        loop {
            let before = server.stats().handed_over;
            let socket = client.add_socket(any)?;
            connection.migrate(socket).await?;
            away.push(socket);
            upload(&connection, 1).await?;
            if server.stats().handed_over > before + 100 {
                break;
            }
        }
        report("the other worker", &server, &connection, megabytes).await?;
        connection.migrate(home).await?;
        for socket in away {
            client.remove_socket(socket);
        }
    }
    Ok(())
}

/// Uploads and prints what it cost.
async fn report(
    where_to: &str,
    server: &Endpoint,
    connection: &Connection,
    megabytes: usize,
) -> Outcome<()> {
    let (before, spent) = (server.stats(), workers_cpu()?);
    upload(connection, megabytes).await?;
    let (after, spent) = (server.stats(), workers_cpu()? - spent);
    let gigabytes = megabytes as f64 / 1000.0;
    let handed_over = after.handed_over - before.handed_over;
    let dropped = after.handovers_dropped - before.handovers_dropped;
    println!(
        "{where_to} | {:.3} | {handed_over} | {dropped}",
        spent / gigabytes
    );
    Ok(())
}

async fn upload(connection: &Connection, megabytes: usize) -> Outcome<()> {
    let data = vec![7; MEGABYTE];
    let mut send = connection.open_uni().await?;
    for _ in 0..megabytes {
        send.write_all(&data).await?;
    }
    send.finish()?;
    send.stopped().await?;
    Ok(())
}

/// Reads all streams to their end.
async fn sink(connection: Connection) {
    while let Ok(mut recv) = connection.accept_uni().await {
        tokio::spawn(async move { while let Ok(Some(_)) = recv.read_chunk(MEGABYTE).await {} });
    }
}

/// Processor seconds that the threads of the workers have taken.
fn workers_cpu() -> Outcome<f64> {
    let mut nanos = 0;
    for task in fs::read_dir("/proc/self/task")? {
        let task = task?.path();
        if fs::read_to_string(task.join("comm"))?.starts_with("quic-") {
            let spent = fs::read_to_string(task.join("schedstat"))?;
            nanos += spent.split(' ').next().unwrap_or("0").parse::<u64>()?;
        }
    }
    Ok(nanos as f64 / 1e9)
}

fn secrets(seed: u8) -> EndpointConfig {
    EndpointConfig::new(Arc::new(EndpointSecrets::from_seed([seed; 32])))
}
