//! Both ends of a fail-over measurement (`interop/failover`): a server, and a client with several paths that measures the
//! longest gap which its application sees.
//!
//! ```sh
//! failover_peer certificate DIR
//! failover_peer server 127.0.0.1:4433 DIR [controller] [scheduler]
//! failover_peer client 127.0.0.1:4433 JOB SECONDS LOCAL-ADDRESS... [controller=NAME]
//! ```

use std::error::Error;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::time::{Duration, Instant};
use std::{env, fs};

use swiftwater::paths::{LocalEnd, PathManager, PathPolicy, PathRule};
use swiftwater::{Client, Connection, DevCertificate, MultipathConfig, PathEvent, Server};
use tokio::time::{sleep_until, timeout};

mod job;

use job::{FRAME, FRAME_INTERVAL, Job, REQUEST, Receiver, Request, fill};

type Outcome = Result<(), Box<dyn Error + Send + Sync>>;

/// Application protocol.
const ALPN: &[u8] = b"failover";

/// How long the client waits for its further paths.
const OPENING: Duration = Duration::from_secs(2);

#[tokio::main(flavor = "current_thread")]
async fn main() -> Outcome {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match &arguments[..] {
        ["certificate", directory] => certificate(Path::new(directory)),
        ["server", listen, directory, options @ ..] => {
            serve(listen.parse()?, Path::new(directory), options).await
        }
        ["client", server, job, seconds, options @ ..] => {
            let limit = Duration::from_secs(seconds.parse()?);
            download(server.parse()?, job.parse()?, limit, options).await
        }
        _ => Err("certificate DIR | server ADDR DIR | client ADDR JOB SECONDS LOCAL...".into()),
    }
}

fn certificate(directory: &Path) -> Outcome {
    let certificate = DevCertificate::generate(["localhost"])?;
    fs::write(directory.join("cert.pem"), certificate.certificate_pem())?;
    fs::write(directory.join("key.pem"), certificate.private_key_pem())?;
    Ok(())
}

/// The value of `name=VALUE` among the options.
fn option<'a>(options: &[&'a str], name: &str) -> Option<&'a str> {
    let find = |option: &&'a str| option.strip_prefix(name)?.strip_prefix('=');
    options.iter().find_map(find)
}

async fn serve(listen: SocketAddr, directory: &Path, options: &[&str]) -> Outcome {
    let chain = fs::read(directory.join("cert.pem"))?;
    let key = fs::read(directory.join("key.pem"))?;
    let mut server = Server::builder()
        .certificate_pem(chain, key)
        .alpn([ALPN])
        .multipath(MultipathConfig::default())
        .scheduler(option(options, "scheduler").unwrap_or("min-rtt"))
        .recovery(option(options, "recovery").unwrap_or("failover"));
    if let Some(controller) = option(options, "controller") {
        server = server.congestion(controller);
    }
    let server = server.bind(listen)?;
    println!("listening on {}", server.local_addr());
    while let Some(connection) = server.accept().await {
        tokio::spawn(answer_all(connection));
    }
    Ok(())
}

async fn answer_all(connection: Connection) -> Outcome {
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

async fn download(server: SocketAddr, job: Job, limit: Duration, options: &[&str]) -> Outcome {
    let locals: Vec<IpAddr> = options
        .iter()
        .filter_map(|text| text.parse().ok())
        .collect();
    let first = *locals.first().ok_or("a local address is missing")?;
    let client = Client::builder()
        .dangerous_accept_any_certificate()
        .alpn([ALPN])
        .multipath(MultipathConfig::default())
        .scheduler("min-rtt")
        .bind(SocketAddr::new(first, 0))
        .build()?;
    let connection = client.connect_to(server, "localhost").await?;
    let mut events = connection.path_events();
    let rules = locals
        .iter()
        .map(|ip| PathRule::new(LocalEnd::Address(*ip)));
    let policy = PathPolicy::new(rules);
    let _paths = PathManager::start(client.endpoint(), &connection, policy, []);
    let opened = async {
        let mut open = 1;
        while open < locals.len() {
            match events.next().await {
                Some(PathEvent::Opened { .. }) => open += 1,
                Some(_) => {}
                None => return,
            }
        }
    };
    timeout(OPENING, opened).await?;
    let mut receiver = Receiver::start();
    let done = timeout(limit, receive(&connection, job, &mut receiver)).await;
    let is_complete = match done {
        Ok(done) => done.inspect_err(|error| eprintln!("{error}")).is_ok(),
        Err(_) => false,
    };
    println!("{}", receiver.report(is_complete));
    connection.close(0, b"done");
    let _ = timeout(Duration::from_millis(200), client.endpoint().wait_idle()).await;
    Ok(())
}

async fn receive(connection: &Connection, job: Job, receiver: &mut Receiver) -> Outcome {
    for request in Request::of(job) {
        let (mut send, mut recv) = connection.open_bi().await?;
        send.write_all(&request.encode()).await?;
        send.finish()?;
        receiver.expect(request);
        while let Some(bytes) = recv.read_chunk(64 << 10).await? {
            receiver.on_bytes(&bytes);
        }
        receiver.on_end();
    }
    Ok(())
}
