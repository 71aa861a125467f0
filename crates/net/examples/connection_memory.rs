//! Where the memory of a connection lies: opens many between a client and a server in a process of its
//! own, lets them rest, and prints the heap of each end by the place in our code that asked for it.
//!
//! ```sh
//! cargo run --release -p swiftwater-net --example connection_memory -- [heap|resident] [connections] [streams] [paths] [sessions]
//! ```
//!
//! Every connection has echoed a few bytes; with `streams`, it holds that many open ones that have echoed
//! 1 kB each. With `paths`, both ends have the multipath extension, and each connection so many paths, all
//! validated; without, or with 0, the extension is off. With `sessions` the client stores TLS sessions and resumes them. `heap` leaves out what C code allocates (the AEAD keys, some 600 bytes each) and the
//! allocator's own share; `resident` shows the difference in resident memory instead, all included.

use std::collections::BTreeMap;
use std::error::Error;
use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use swiftwater_net::quic::{
    ClientConfig, EndpointConfig, MultipathConfig, RetryPolicy, ServerConfig, SocketId,
    TransportConfig,
};
use swiftwater_net::{Connection, Endpoint, EndpointOptions, PathEvent, RecvStream, SendStream};
use swiftwater_tls::{
    ClientTls, DevCertificate, EndpointSecrets, MemorySessionStore, ServerTls, Tickets,
};

#[global_allocator]
static ALLOCATOR: dhat::Alloc = dhat::Alloc;

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// Parts that hold fewer bytes of each connection are summed up.
const SMALL: f64 = 24.0;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let argument = |n: usize| arguments.get(n).map(String::as_str);
    match argument(0) {
        Some("server") => {
            let paths = argument(2).map_or(Ok(0), str::parse)?;
            serve(argument(1).ok_or("where to?")?, paths).await
        }
        how => {
            let connections = argument(1).map_or(Ok(500), str::parse)?;
            let streams = argument(2).map_or(Ok(0), str::parse)?;
            let paths = argument(3).map_or(Ok(0), str::parse)?;
            let stores = argument(4) == Some("sessions");
            measure(how != Some("resident"), connections, streams, paths, stores).await
        }
    }
}

async fn measure(
    heap: bool,
    count: usize,
    streams: usize,
    paths: u32,
    stores: bool,
) -> Outcome<()> {
    let folder = std::env::temp_dir().join(format!("connection-memory-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let (mine, theirs) = (folder.join("client.json"), folder.join("server.json"));
    let mut child = Command::new(std::env::current_exe()?)
        .arg("server")
        .arg(&theirs)
        .arg(paths.to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut questions = child.stdin.take().ok_or("no stdin")?;
    let mut answers = BufReader::new(child.stdout.take().ok_or("no stdout")?).lines();
    let server: SocketAddr = answers.next().ok_or("no server")??.parse()?;
    let mut ask = |question: &str| -> Outcome<f64> {
        writeln!(questions, "{question}")?;
        Ok(answers.next().ok_or("the server is gone")??.parse()?)
    };

    let client = Endpoint::client("127.0.0.1:0".parse()?, secrets(2), [2; 32])?;
    let mut tls = ClientTls::with_roots([certificate()?.certificate_der()])?.alpn(["echo"]);
    if stores {
        tls = tls.sessions(Arc::new(MemorySessionStore::default()));
    }
    let config = ClientConfig {
        crypto: Arc::new(tls),
        transport: transport(paths),
    };
    let mut sockets = Vec::new();
    for _ in 1..paths {
        sockets.push(client.add_socket("127.0.0.1:0".parse()?)?);
    }
    // What exists once for all connections comes before the count.
    let first = client.connect(&config, server, "localhost")?.await?;
    drop(echo(&first, 14).await?);
    let theirs_before = ask(if heap { "count" } else { "resident" })?;
    let mine_before = resident()?;
    let profiler = heap.then(|| profiler(&mine));
    let mut connections = Vec::with_capacity(count);
    for _ in 0..count {
        let connection = client.connect(&config, server, "localhost")?.await?;
        drop(echo(&connection, 14).await?);
        open_paths(&connection, &sockets).await?;
        connections.push(connection);
    }
    let mut open = Vec::with_capacity(count * streams);
    for connection in &connections {
        for _ in 0..streams {
            open.push(echo(connection, 1000).await?);
        }
    }
    // Late acknowledgements and new connection IDs settle.
    tokio::time::sleep(Duration::from_secs(2)).await;
    drop(profiler);
    let mine_after = resident()?;
    let theirs_after = ask(if heap { "tell" } else { "resident" })?;
    let ends = [
        ("server", &theirs, theirs_after - theirs_before),
        ("client", &mine, mine_after - mine_before),
    ];
    for (end, file, grown) in ends {
        println!(
            "{end}, bytes of each of {count} connections with {streams} streams, {paths} paths"
        );
        if heap {
            report(file, count as f64)?;
        } else {
            println!("{:9.0}  resident", grown / count as f64);
        }
    }
    std::fs::remove_dir_all(&folder)?;
    child.kill()?;
    child.wait()?;
    drop((open, first));
    Ok(())
}

/// Opens a path from each of the sockets, and waits until all are validated.
async fn open_paths(connection: &Connection, sockets: &[SocketId]) -> Outcome<()> {
    if sockets.is_empty() {
        return Ok(());
    }
    let mut events = connection.path_events();
    for &socket in sockets {
        while connection.open_path(socket, None).is_err() {
            // The peer's connection IDs of the path are on the way.
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
    let mut opened = 0;
    while opened < sockets.len() {
        match events.next().await {
            Some(PathEvent::Opened { .. }) => opened += 1,
            Some(_) => {}
            None => return Err("the connection has ended".into()),
        }
    }
    Ok(())
}

fn profiler(file: &Path) -> dhat::Profiler {
    dhat::Profiler::builder()
        .file_name(file)
        .trim_backtraces(None)
        .build()
}

/// Resident memory, or 0 where the system doesn't report it.
fn resident() -> Outcome<f64> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.and_then(|rest| rest.split_whitespace().next());
    Ok(kilobytes.map_or(Ok(0.0), str::parse::<f64>)? * 1024.0)
}

fn secrets(seed: u8) -> EndpointConfig {
    EndpointConfig::new(Arc::new(EndpointSecrets::from_seed([seed; 32])))
}

fn transport(paths: u32) -> Arc<TransportConfig> {
    Arc::new(TransportConfig {
        multipath: (paths > 0).then(MultipathConfig::default),
        max_idle_timeout: Some(Duration::from_secs(600)),
        ..TransportConfig::default()
    })
}

async fn echo(connection: &Connection, len: usize) -> Outcome<(SendStream, RecvStream)> {
    let (mut send, mut recv) = connection.open_bi().await?;
    let mut buffer = vec![7; len];
    send.write_all(&buffer).await?;
    recv.read_exact(&mut buffer).await?;
    Ok((send, recv))
}

/// The same in both processes.
fn certificate() -> Outcome<DevCertificate> {
    Ok(DevCertificate::deterministic(["localhost"])?)
}

/// The server's process: echoes, and begins and ends the count when asked to.
async fn serve(file: &str, paths: u32) -> Outcome<()> {
    let tls = ServerTls::from_dev_certificate(&certificate()?)?
        .alpn(["echo"])
        .tickets(Tickets::Stateless)?;
    let config = ServerConfig {
        retry: RetryPolicy::Never,
        ..ServerConfig::new(Arc::new(tls), transport(paths))
    };
    let options = EndpointOptions::new(secrets(1), [1; 32]).server(config);
    let server = Endpoint::bind("127.0.0.1:0".parse()?, options)?;
    println!("{}", server.local_addr());
    tokio::spawn(async move {
        while let Some(connection) = server.accept().await {
            tokio::spawn(answer(connection));
        }
    });
    let file = file.to_owned();
    let told = tokio::task::spawn_blocking(move || -> Outcome<()> {
        let mut counting = None;
        for line in std::io::stdin().lock().lines() {
            match line?.as_str() {
                "count" => counting = Some(profiler(file.as_ref())),
                "tell" => drop(counting.take()),
                _ => {}
            }
            println!("{}", resident()?);
        }
        Ok(())
    });
    told.await?
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

/// Prints what the file says of the heap when it was written.
fn report(file: &Path, connections: f64) -> Outcome<()> {
    let heap: serde_json::Value = serde_json::from_slice(&std::fs::read(file)?)?;
    let frames = heap["ftbl"].as_array().ok_or("no frames")?;
    let points = heap["pps"].as_array().ok_or("no allocations")?;
    let mut parts: BTreeMap<String, (f64, f64)> = BTreeMap::new();
    for point in points {
        let number = |name: &str| point[name].as_f64().unwrap_or(0.0) / connections;
        let trace = point["fs"].as_array().ok_or("no trace")?;
        let trace = trace
            .iter()
            .filter_map(|frame| frames.get(frame.as_u64()? as usize)?.as_str());
        let part = parts.entry(part_of(trace)).or_default();
        part.0 += number("eb");
        part.1 += number("ebk");
    }
    let mut parts: Vec<_> = parts.into_iter().collect();
    parts.sort_by(|a, b| b.1.0.total_cmp(&a.1.0));
    let print = |bytes: f64, blocks: f64, part: &str| println!("{bytes:9.0} {blocks:7.2}  {part}");
    let sum = |parts: &[(String, (f64, f64))]| {
        let sum = |of: fn(&(f64, f64)) -> f64| parts.iter().map(|part| of(&part.1)).sum::<f64>();
        (sum(|part| part.0), sum(|part| part.1))
    };
    let small = parts.partition_point(|(_, (bytes, _))| *bytes >= SMALL);
    for (part, (bytes, blocks)) in &parts[..small] {
        print(*bytes, *blocks, part);
    }
    let (bytes, blocks) = sum(&parts[small..]);
    print(bytes, blocks, "the rest");
    let (bytes, blocks) = sum(&parts);
    print(bytes, blocks, "in all");
    println!();
    Ok(())
}

/// The place that asked for memory: the innermost one outside of allocator, standard library and
/// collections. Build with `--release`: other profiles lack the lines of libraries.
fn part_of<'a>(trace: impl Iterator<Item = &'a str>) -> String {
    const FILES: [&str; 19] = [
        "alloc/",
        "core/",
        "std/",
        "dhat-",
        "slab-",
        "hashbrown",
        "btree/",
        "vec_deque/",
        "src/backtrace/",
        "src/raw_vec/",
        "src/raw/",
        "src/vec",
        "src/map",
        "src/alloc",
        "src/collections",
        "collections/",
        "src/ops/",
        "src/boxed/",
        "src/option",
    ];
    const NAMES: [&str; 8] = [
        "__rust",
        "alloc::",
        "backtrace::",
        "core::",
        "dhat::",
        "hashbrown::",
        "slab::",
        "std::",
    ];
    let mut parts = trace.filter_map(|frame| {
        // "0x55d0: function (some/of/the/path.rs:line:column)"
        let (_, named) = frame.split_once(": ")?;
        let (function, place) = named.strip_suffix(')')?.rsplit_once(" (")?;
        let (place, _) = place.rsplit_once(':')?;
        let bare = function.trim_start_matches(['<', '[']);
        let is_beneath = FILES.iter().any(|start| place.starts_with(start))
            || NAMES.iter().any(|start| bare.starts_with(start));
        let name = bare.split('<').next().unwrap_or(bare);
        (!is_beneath).then(|| format!("{place}  {name}"))
    });
    parts.next().unwrap_or_else(|| "elsewhere".to_owned())
}
