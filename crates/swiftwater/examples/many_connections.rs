//! Cost of connections for a server and a client: opens thousands of them between one client socket
//! and a server in a separate process, and reports memory of idle and of active ones, handshakes
//! per second, and the processor time of accepting and of refusing.
//!
//! ```sh
//! cargo run --release -p swiftwater --example many_connections -- 10000 [workers]
//! ```
//!
//! Memory and time are read from `/proc`, so that it runs on Linux only. Resident memory includes
//! what the allocator keeps; both processes start the count after their first connection.

use std::error::Error;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, UdpSocket};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use swiftwater::quic::congestion;
use swiftwater::quic::{AcceptDecision, ClientConfig, Endpoint, EndpointConfig, Incoming};
use swiftwater::tls::{ClientTls, EndpointSecrets};
use swiftwater::{Client, Connection, DevCertificate, RetryPolicy, Server, TransportConfig};

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// Handshakes in progress at once.
const AT_ONCE: usize = 50;
/// Connections that get open streams, and how many each.
const ACTIVE: usize = 1000;
const STREAMS: usize = 10;
/// First packets sent to a server that refuses them.
const REFUSED: usize = 50_000;
/// Of these, sent before the answers are awaited.
const BURST: usize = 32;

#[tokio::main]
async fn main() -> Outcome<()> {
    let mut arguments = std::env::args().skip(1);
    match arguments.next().as_deref() {
        Some("server") => serve(&arguments.collect::<Vec<_>>()).await,
        count => {
            let count = count.map_or(Ok(10_000), str::parse)?;
            let workers = arguments.next().map_or(Ok(1), |n| n.parse())?;
            accept_and_hold(count, workers).await?;
            for how in ["retry", "refuse", "limit", "ignore"] {
                refuse(how)?;
            }
            Ok(())
        }
    }
}

/// Opens connections, and reports their cost.
async fn accept_and_hold(count: usize, workers: usize) -> Outcome<()> {
    let mut server = ServerProcess::start("accept", workers)?;
    let client = Client::builder()
        .trust_only([certificate()?.certificate_der()])
        .alpn(["echo"])
        .transport(patient)
        .build()?;
    let first = open(&client, server.address, 1).await?;
    echo(&first[0]).await?;
    let (mine, theirs) = (Usage::of_this_process()?, server.usage()?);
    let started = Instant::now();
    let connections = open(&client, server.address, count).await?;
    let elapsed = started.elapsed().as_secs_f64();
    let (mine_open, theirs_open) = (Usage::of_this_process()?, server.usage()?);
    let cpu = |before: &Usage, after: &Usage| {
        after.cpu.saturating_sub(before.cpu).as_secs_f64() / count as f64 * 1e6
    };
    println!(
        "{count} handshakes in {elapsed:.2} s, {:.0} per second; CPU each: server {:.0} us, client \
         {:.0} us",
        count as f64 / elapsed,
        cpu(&theirs, &theirs_open),
        cpu(&mine, &mine_open),
    );
    for connection in &connections {
        echo(connection).await?;
    }
    // Late acknowledgements and new connection IDs settle.
    tokio::time::sleep(Duration::from_secs(2)).await;
    let (mine_idle, theirs_idle) = (Usage::of_this_process()?, server.usage()?);
    let each = |before: &Usage, after: &Usage, n: usize| {
        (after.resident.saturating_sub(before.resident)) as f64 / n as f64
    };
    println!(
        "idle, after an echo of 14 bytes: server {:.0} bytes each, client {:.0}",
        each(&theirs, &theirs_idle, count),
        each(&mine, &mine_idle, count),
    );
    let active = ACTIVE.min(count);
    let mut streams = Vec::with_capacity(active * STREAMS);
    for connection in &connections[..active] {
        for _ in 0..STREAMS {
            let (mut send, mut recv) = connection.open_bi().await?;
            send.write_all(&[7; 1000]).await?;
            let mut buffer = [0; 1000];
            recv.read_exact(&mut buffer).await?;
            streams.push((send, recv));
        }
    }
    let (mine_active, theirs_active) = (Usage::of_this_process()?, server.usage()?);
    println!(
        "with {STREAMS} open streams that echoed 1 kB each: server {:.0} bytes more each, client {:.0}",
        each(&theirs_idle, &theirs_active, active),
        each(&mine_idle, &mine_active, active),
    );
    // All are still there, at both ends.
    for connection in &connections {
        assert!(connection.close_reason().is_none());
    }
    assert_eq!(client.endpoint().stats().connections, count + 1);
    drop(streams);
    client.close().await;
    Ok(())
}

async fn open(client: &Client, server: SocketAddr, count: usize) -> Outcome<Vec<Connection>> {
    let mut connections: Vec<Connection> = Vec::with_capacity(count);
    let mut attempts = tokio::task::JoinSet::new();
    for _ in 0..count {
        if attempts.len() >= AT_ONCE
            && let Some(connection) = attempts.join_next().await
        {
            connections.push(connection??);
        }
        let client = client.clone();
        attempts.spawn(async move { client.connect_to(server, "localhost").await });
    }
    while let Some(connection) = attempts.join_next().await {
        connections.push(connection??);
    }
    Ok(connections)
}

async fn echo(connection: &Connection) -> Outcome<()> {
    let (mut send, mut recv) = connection.open_bi().await?;
    send.write_all(b"are you there?").await?;
    send.finish()?;
    assert_eq!(recv.read_to_end(100).await?, b"are you there?");
    Ok(())
}

/// Sends first packets to a server that accepts none of them.
fn refuse(how: &str) -> Outcome<()> {
    let mut server = ServerProcess::start(how, 1)?;
    let socket = UdpSocket::bind("127.0.0.1:0")?;
    socket.connect(server.address)?;
    socket.set_read_timeout(Some(Duration::from_millis(200)))?;
    let datagram = first_packet(server.address)?;
    let before = server.usage()?;
    let mut answers = 0;
    let mut buffer = [0; 1500];
    for _ in 0..REFUSED / BURST {
        for _ in 0..BURST {
            socket.send(&datagram)?;
        }
        if how == "ignore" {
            // It is unknown when they were processed; the socket's buffer holds this many.
            std::thread::sleep(Duration::from_micros(500));
            continue;
        }
        for _ in 0..BURST {
            match socket.recv(&mut buffer) {
                Ok(_) => answers += 1,
                // One was dropped.
                Err(_) => break,
            }
        }
    }
    let after = server.usage()?;
    let handled = after.handled - before.handled;
    println!(
        "{how}: {:.1} us of CPU for each of {handled} first packets; {answers} answers; {} bytes more",
        after.cpu.saturating_sub(before.cpu).as_secs_f64() / handled as f64 * 1e6,
        after.resident.saturating_sub(before.resident),
    );
    Ok(())
}

/// A client's first datagram to `server`.
fn first_packet(server: SocketAddr) -> Outcome<Vec<u8>> {
    let tls = ClientTls::with_roots([certificate()?.certificate_der()])?.alpn(["echo"]);
    let config = ClientConfig {
        crypto: Arc::new(tls),
        transport: Arc::new(TransportConfig {
            controller: Arc::new(congestion::CubicConfig::default()),
            ..TransportConfig::default()
        }),
    };
    let key = Arc::new(EndpointSecrets::random());
    let mut endpoint = Endpoint::new(EndpointConfig::new(key), None, [1; 32]);
    let now = swiftwater::units::Instant::ZERO;
    let (_, mut connection) = endpoint.connect(now, &config, server, "localhost")?;
    let mut buffer = vec![0; 1500];
    let transmit = connection
        .poll_transmit(now, 1, &mut buffer)
        .ok_or("a client has something to say")?;
    buffer.truncate(transmit.size);
    Ok(buffer)
}

/// The same in both processes.
fn certificate() -> Outcome<DevCertificate> {
    Ok(DevCertificate::deterministic(["localhost"])?)
}

fn patient(transport: &mut TransportConfig) {
    transport.max_idle_timeout = Some(Duration::from_secs(600));
}

/// The server's process: echoes, and reports its resource usage on request.
async fn serve(arguments: &[String]) -> Outcome<()> {
    let how = arguments.first().map_or("accept", String::as_str);
    let workers = arguments.get(1).map_or(Ok(1), |n| n.parse())?;
    let builder = Server::builder()
        .dev_certificate(&certificate()?)
        .alpn(["echo"])
        .workers(workers)
        .transport(patient);
    let builder = match how {
        "retry" => builder.retry(RetryPolicy::Always),
        "refuse" => builder.accept_policy(|_: &Incoming| AcceptDecision::Refuse),
        "ignore" => builder.accept_policy(|_: &Incoming| AcceptDecision::Ignore),
        "limit" => builder.max_connections(0),
        _ => builder.retry(RetryPolicy::Never),
    };
    let server = builder.bind("127.0.0.1:0".parse()?)?;
    println!("{}", server.local_addr());
    let accepting = server.clone();
    tokio::spawn(async move {
        while let Some(connection) = accepting.accept().await {
            tokio::spawn(answer(connection));
        }
    });
    let asked = tokio::task::spawn_blocking(move || -> Outcome<()> {
        for line in std::io::stdin().lock().lines() {
            line?;
            let usage = Usage::of_this_process()?;
            let routing = server.endpoint().stats().routing;
            let handled = routing.retries_sent + routing.refused + routing.ignored;
            println!("{} {} {handled}", usage.resident, usage.cpu.as_micros());
        }
        Ok(())
    });
    asked.await?
}

async fn answer(connection: Connection) {
    while let Ok((mut send, mut recv)) = connection.accept_bi().await {
        tokio::spawn(async move {
            let mut buffer = [0; 1000];
            while let Ok(Some(n)) = recv.read(&mut buffer).await {
                if send.write_all(&buffer[..n]).await.is_err() {
                    break;
                }
            }
        });
    }
}

/// What a process has used.
struct Usage {
    /// Bytes of memory.
    resident: u64,
    cpu: Duration,
    /// First packets that were not accepted (servers).
    handled: u64,
}

impl Usage {
    fn of_this_process() -> Outcome<Self> {
        /// Linux counts processor time in hundredths of a second.
        const TICK: Duration = Duration::from_millis(10);
        let status = std::fs::read_to_string("/proc/self/status")?;
        let resident = status
            .lines()
            .find_map(|line| line.strip_prefix("VmRSS:"))
            .and_then(|rest| rest.split_whitespace().next())
            .ok_or("no VmRSS")?;
        let stat = std::fs::read_to_string("/proc/self/stat")?;
        // The name before the parenthesis may hold spaces.
        let (_, fields) = stat.rsplit_once(')').ok_or("no name")?;
        let ticks = fields.split_whitespace().skip(11).take(2);
        let ticks = ticks.map(str::parse::<u32>).sum::<Result<u32, _>>()?;
        Ok(Self {
            resident: resident.parse::<u64>()? * 1024,
            cpu: TICK * ticks,
            handled: 0,
        })
    }
}

/// The server, seen from the client.
struct ServerProcess {
    child: Child,
    questions: ChildStdin,
    answers: BufReader<ChildStdout>,
    address: SocketAddr,
}

impl ServerProcess {
    fn start(how: &str, workers: usize) -> Outcome<Self> {
        let mut child = Command::new(std::env::current_exe()?)
            .args(["server", how, &workers.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let questions = child.stdin.take().ok_or("no stdin")?;
        let mut answers = BufReader::new(child.stdout.take().ok_or("no stdout")?);
        let mut line = String::new();
        answers.read_line(&mut line)?;
        Ok(Self {
            child,
            questions,
            answers,
            address: line.trim().parse()?,
        })
    }

    fn usage(&mut self) -> Outcome<Usage> {
        writeln!(self.questions)?;
        let mut line = String::new();
        self.answers.read_line(&mut line)?;
        let mut fields = line.split_whitespace().map(str::parse);
        let mut next = || fields.next().ok_or("too few fields");
        Ok(Usage {
            resident: next()??,
            cpu: Duration::from_micros(next()??),
            handled: next()??,
        })
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        // It has nothing to lose.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
