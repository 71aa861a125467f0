//! Both ends of a fail-over measurement on noq.
//!
//! ```sh
//! swiftwater-failover-noq server 127.0.0.1:4433 DIR
//! swiftwater-failover-noq client 127.0.0.1:4433 JOB SECONDS LOCAL-ADDRESS...
//! ```

use std::env;
use std::error::Error;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use noq::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use noq::{
    ClientConfig, Connection, Endpoint, EndpointConfig, FourTuple, Incoming, PathError, PathId,
    PathStatus, ServerConfig, TokioRuntime, TransportConfig, VarInt,
};
use swiftwater_interop_program::arguments::Suite;
use swiftwater_interop_program::tls;
use tokio::time::{sleep, sleep_until, timeout};

#[path = "../../../crates/swiftwater/examples/failover_peer/job.rs"]
mod job;

use job::{FRAME, FRAME_INTERVAL, Job, REQUEST, Receiver, Request, fill};

type Outcome = Result<(), Box<dyn Error + Send + Sync>>;

/// Application protocol.
const ALPN: &[u8] = b"failover";

/// A path on which nothing is received for so long is abandoned, and how often an idle one gets a PING. noq's defaults
/// have neither: nothing moved from a dead path within 13 s. With 1 s the server abandons paths that work, since the
/// client acknowledges everything on one of them.
const PATH_IDLE: Duration = Duration::from_secs(3);
const KEEP_ALIVE: Duration = Duration::from_millis(250);

#[tokio::main(flavor = "current_thread")]
async fn main() -> Outcome {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match &arguments[..] {
        ["server", listen, directory, ..] => serve(listen.parse()?, Path::new(directory)).await,
        ["client", server, job, seconds, locals @ ..] => {
            let limit = Duration::from_secs(seconds.parse()?);
            let locals = locals.iter().map(|ip| ip.parse());
            let locals: Vec<IpAddr> = locals.collect::<Result<_, _>>()?;
            download(server.parse()?, job.parse()?, limit, &locals).await
        }
        _ => Err("server ADDR DIR | client ADDR JOB SECONDS LOCAL...".into()),
    }
}

fn transport() -> Arc<TransportConfig> {
    let mut transport = TransportConfig::default();
    transport
        .max_concurrent_multipath_paths(4)
        .default_path_max_idle_timeout(Some(PATH_IDLE))
        .default_path_keep_alive_interval(Some(KEEP_ALIVE));
    Arc::new(transport)
}

async fn serve(listen: SocketAddr, directory: &Path) -> Outcome {
    let identity = tls::read_identity(&directory.join("cert.pem"), &directory.join("key.pem"))?;
    let crypto = tls::server(identity, ALPN, Suite::Any, false)?;
    let crypto = QuicServerConfig::with_initial(Arc::new(crypto), tls::initial_suite()?)?;
    let mut config = ServerConfig::with_crypto(Arc::new(crypto));
    config.transport_config(transport());
    let endpoint = Endpoint::new(
        EndpointConfig::default(),
        Some(config),
        UdpSocket::bind(listen)?,
        Arc::new(TokioRuntime),
    )?;
    println!("listening on {}", endpoint.local_addr()?);
    while let Some(incoming) = endpoint.accept().await {
        tokio::spawn(answer_all(incoming));
    }
    Ok(())
}

async fn answer_all(incoming: Incoming) -> Outcome {
    let connection = incoming.accept()?.await?;
    loop {
        let (mut send, mut recv) = connection.accept_bi().await?;
        tokio::spawn(async move {
            let request = recv.read_to_end(REQUEST).await?;
            let mut offset = 0;
            let mut piece = vec![0; FRAME];
            match Request::decode(&request).ok_or("an unknown request")? {
                Request::Bytes(bytes) => {
                    while offset < bytes {
                        let size = piece.len().min((bytes - offset) as usize);
                        fill(offset, &mut piece[..size]);
                        send.write_all(&piece[..size]).await?;
                        offset += size as u64;
                    }
                }
                Request::Frames(frames) => {
                    let start = Instant::now();
                    for frame in 0..frames {
                        let at = start + FRAME_INTERVAL * u32::try_from(frame)?;
                        sleep_until(at.into()).await;
                        fill(offset, &mut piece);
                        send.write_all(&piece).await?;
                        offset += piece.len() as u64;
                    }
                }
            }
            send.finish()?;
            Outcome::Ok(())
        });
    }
}

async fn download(server: SocketAddr, job: Job, limit: Duration, locals: &[IpAddr]) -> Outcome {
    let crypto = tls::client(None, ALPN, Suite::Any, false)?;
    let crypto = QuicClientConfig::with_initial(Arc::new(crypto), tls::initial_suite()?)?;
    let mut config = ClientConfig::new(Arc::new(crypto));
    config.transport_config(transport());
    // One socket for all paths: noq sets the source address of each datagram.
    let endpoint = Endpoint::new(
        EndpointConfig::default(),
        None,
        UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?,
        Arc::new(TokioRuntime),
    )?;
    let connection = endpoint.connect_with(config, server, "localhost")?.await?;
    connection.handshake_confirmed().await?;
    let first = connection.path(PathId::ZERO).ok_or("no first path")?;
    let remote = first.remote_address()?;
    for local in locals.iter().skip(1) {
        let to = FourTuple::new(remote, Some(*local));
        let opened = async {
            loop {
                match connection.open_path(to, PathStatus::Available).await {
                    Err(PathError::MaxPathIdReached | PathError::RemoteCidsExhausted) => {
                        sleep(Duration::from_millis(20)).await;
                    }
                    opened => return opened.map(drop),
                }
            }
        };
        timeout(Duration::from_secs(2), opened).await??;
    }
    let mut receiver = Receiver::start();
    let done = timeout(limit, receive(&connection, job, &mut receiver)).await;
    let is_complete = match done {
        Ok(done) => done.inspect_err(|error| eprintln!("{error}")).is_ok(),
        Err(_) => false,
    };
    println!("{}", receiver.report(is_complete));
    connection.close(VarInt::from_u32(0), b"done");
    let _ = timeout(Duration::from_millis(200), endpoint.wait_idle()).await;
    Ok(())
}

async fn receive(connection: &Connection, job: Job, receiver: &mut Receiver) -> Outcome {
    for request in Request::of(job) {
        let (mut send, mut recv) = connection.open_bi().await?;
        send.write_all(&request.encode()).await?;
        send.finish()?;
        receiver.expect(request);
        while let Some(chunk) = recv.read_chunk(64 << 10).await? {
            receiver.on_bytes(&chunk);
        }
        receiver.on_end();
    }
    Ok(())
}
