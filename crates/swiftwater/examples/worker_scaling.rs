//! What a second worker adds to a server: work for each second of processor time, how evenly the workers
//! share it, and what that makes of the server's capacity.
//!
//! ```sh
//! cargo run --release -p swiftwater --example worker_scaling -- [--connections 64] [--seconds 3]
//!     [--rounds 3] [--workers 2] [--jobs requests,bulk,handshakes] [--control] [--apart] [--json]
//! ```
//!
//! Server and client are separate processes. On a machine of two cores the client takes one of them, so that two
//! workers never run at full speed, and measured rates are meaningless. CPU time is compared:
//!
//! - the cost of one operation, all threads of the server together;
//! - the share of the workers' time that falls to the busiest one.
//!
//! A server with a core for each worker is full when its busiest worker is: its capacity is
//! `1 / (cost x share of the busiest)`. The application accepts and answers on the thread of each connection's
//! worker (`Server::acceptors`); with `--apart` on a runtime with as many threads as there are workers, where they take any
//! idle thread, so that they count as evenly shared. "even" is what
//! the capacity would be if the system spread the connections evenly. Every connection has a socket of its own, as
//! clients do; the system chooses the worker by a hash of addresses and ports.
//!
//! With several workers three or more busy threads share two cores, and evict each other's caches. `--control` adds
//! what as many servers of one worker each cost, processes that share nothing, with the connections evenly among
//! them: their additional cost is caused by the machine, the additional cost of workers by Swiftwater.
//!
//! Linux only: processor times are read from `/proc`.

use std::error::Error;
use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use swiftwater::{Client, Connection, DevCertificate, RetryPolicy, Server, Tickets};
use tokio::task::JoinSet;

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// Bytes of a request; the first eight state the requested number of bytes.
const REQUEST: usize = 100;
/// Bytes of a response to a small request, and of one of bulk transfer.
const SMALL: u64 = 1000;
const LARGE: u64 = 4 << 20;
/// Requests in progress on each connection, by job.
const SMALL_IN_FLIGHT: usize = 4;
/// What bulk transfer counts, bytes.
const MEGABYTE: u64 = 1 << 20;

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["server", workers, apart] => serve(workers.parse()?, *apart == "apart"),
        ["client", addresses, job, connections, seconds] => drive(
            &(addresses.split(',').map(str::parse)).collect::<Result<Vec<_>, _>>()?,
            job,
            connections.parse()?,
            seconds.parse()?,
        ),
        _ => compare(&Plan::read(&words)?),
    }
}

/// What is measured.
struct Plan {
    connections: usize,
    seconds: f64,
    rounds: usize,
    workers: usize,
    jobs: Vec<String>,
    /// Servers that share nothing are measured, too.
    control: bool,
    /// The application's tasks run on separate threads.
    apart: bool,
    json: bool,
}

impl Plan {
    fn read(words: &[&str]) -> Outcome<Self> {
        let mut plan = Self {
            connections: 64,
            seconds: 3.0,
            rounds: 3,
            workers: 2,
            jobs: ["requests", "bulk", "handshakes"].map(String::from).into(),
            control: false,
            apart: false,
            json: false,
        };
        let mut words = words.iter();
        while let Some(&flag) = words.next() {
            let mut value = || words.next().ok_or(format!("{flag} wants a value"));
            match flag {
                "--connections" => plan.connections = value()?.parse()?,
                "--seconds" => plan.seconds = value()?.parse()?,
                "--rounds" => plan.rounds = value()?.parse()?,
                "--workers" => plan.workers = value()?.parse()?,
                "--jobs" => plan.jobs = value()?.split(',').map(str::to_owned).collect(),
                "--control" => plan.control = true,
                "--apart" => plan.apart = true,
                "--json" => plan.json = true,
                // Benches are run with flags of cargo's own.
                "--bench" => {}
                other => return Err(format!("unknown argument {other}").into()),
            }
        }
        Ok(plan)
    }
}

/// What serves.
#[derive(Clone, Copy)]
struct Servers {
    processes: usize,
    /// Of each process.
    workers: usize,
}

impl Servers {
    fn workers(self) -> usize {
        self.processes * self.workers
    }

    fn name(self) -> String {
        match self.processes {
            1 => self.workers.to_string(),
            processes => format!("{processes}x{}", self.workers),
        }
    }
}

/// One run.
#[derive(Clone, Copy)]
struct Run {
    operations: f64,
    seconds: f64,
    /// Processor time of all threads, microseconds for each operation.
    cost: f64,
    /// Share of the busiest worker in the workers' time.
    busiest: f64,
    /// Share of the workers in the time of all threads.
    in_workers: f64,
    handed_over: u64,
    /// Datagrams in a system call that sends.
    batch: f64,
}

impl Run {
    /// Operations per second of a server with a core for each worker.
    fn capacity(&self, workers: usize) -> f64 {
        let spread = self.in_workers * self.busiest + (1.0 - self.in_workers) / workers as f64;
        1e6 / (self.cost * spread)
    }

    fn even_capacity(&self, workers: usize) -> f64 {
        workers as f64 * 1e6 / self.cost
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let (low, high) = ((values.len() - 1) / 2, values.len() / 2);
    values[low].midpoint(values[high])
}

/// Runs every job with one worker and with several, in turns.
fn compare(plan: &Plan) -> Outcome<()> {
    let mut rows = Vec::new();
    let mut all = vec![
        Servers {
            processes: 1,
            workers: 1,
        },
        Servers {
            processes: 1,
            workers: plan.workers,
        },
    ];
    if plan.control {
        all.push(Servers {
            processes: plan.workers,
            workers: 1,
        });
    }
    for job in &plan.jobs {
        let mut runs = vec![Vec::new(); all.len()];
        for _ in 0..plan.rounds {
            for (runs, &servers) in runs.iter_mut().zip(&all) {
                runs.push(run(plan, job, servers)?);
            }
        }
        let one = Summary::of(all[0], &runs[0]);
        for (&servers, runs) in all.iter().zip(&runs) {
            let summary = Summary::of(servers, runs);
            let ratios = (servers.workers() > 1).then(|| {
                (
                    summary.capacity / one.capacity,
                    summary.even_capacity / one.even_capacity,
                )
            });
            rows.push((job.clone(), servers, summary, ratios));
        }
    }
    print(plan, &rows);
    Ok(())
}

/// Medians of several runs.
struct Summary {
    /// Cost, rate, share of the busiest worker, share of the workers, datagrams per send, datagrams handed over in all.
    columns: [f64; 6],
    capacity: f64,
    even_capacity: f64,
}

impl Summary {
    fn of(servers: Servers, runs: &[Run]) -> Self {
        let of = |part: &dyn Fn(&Run) -> f64| median(runs.iter().map(part).collect());
        let handed_over: u64 = runs.iter().map(|run| run.handed_over).sum();
        Self {
            columns: [
                of(&|run| run.cost),
                of(&|run| run.operations / run.seconds),
                of(&|run| run.busiest),
                of(&|run| run.in_workers),
                of(&|run| run.batch),
                handed_over as f64,
            ],
            capacity: of(&|run| run.capacity(servers.workers())),
            even_capacity: of(&|run| run.even_capacity(servers.workers())),
        }
    }
}

/// A job with its servers: their figures, and the capacity of several workers against one.
type Row = (String, Servers, Summary, Option<(f64, f64)>);

fn print(plan: &Plan, rows: &[Row]) {
    if plan.json {
        for (job, servers, summary, ratio) in rows {
            let [cost, rate, busiest, in_workers, batch, handed_over] = summary.columns;
            let ratio = ratio.map_or(String::new(), |(ratio, even)| {
                format!(",\"capacity_ratio\":{ratio:.3},\"capacity_ratio_even\":{even:.3}")
            });
            println!(
                "{{\"job\":\"{job}\",\"processes\":{},\"workers\":{},\"connections\":{},\"cost_us\":{cost:.3},\
                 \"rate\":{rate:.1},\"busiest_share\":{busiest:.3},\"in_workers\":{in_workers:.3},\
                 \"datagrams_per_send\":{batch:.2},\"handed_over\":{handed_over}{ratio}}}",
                servers.processes, servers.workers, plan.connections,
            );
        }
        return;
    }
    println!(
        "{} connections, medians of {} runs of {} s; cost is server CPU: us per request or handshake, us per MiB",
        plan.connections, plan.rounds, plan.seconds
    );
    println!(
        "{:10} {:>7} {:>10} {:>12} {:>8} {:>10} {:>15} {:>9} {:>9} {:>6}",
        "job",
        "workers",
        "cost",
        "measured/s",
        "busiest",
        "in workers",
        "datagrams/send",
        "handed_over",
        "capacity",
        "even"
    );
    for (job, servers, summary, ratio) in rows {
        let [cost, rate, busiest, in_workers, batch, handed_over] = summary.columns;
        let workers = servers.name();
        let ratio = ratio.map_or(String::new(), |(ratio, even)| {
            format!("{ratio:8.2}x {even:5.2}x")
        });
        println!(
            "{job:10} {workers:>7} {cost:10.2} {rate:12.0} {busiest:8.2} {in_workers:10.2} {batch:15.1} {handed_over:9} {ratio}"
        );
    }
}

/// One job.
fn run(plan: &Plan, job: &str, servers: Servers) -> Outcome<Run> {
    let place = if plan.apart { "apart" } else { "together" };
    let workers = servers.workers.to_string();
    let mut processes = Vec::new();
    let mut addresses = Vec::new();
    for _ in 0..servers.processes {
        let (process, address) = Process::start(&["server", &workers, place])?;
        processes.push(process);
        addresses.push(address);
    }
    let (mut client, _) = Process::start(&[
        "client",
        &addresses.join(","),
        job,
        &plan.connections.to_string(),
        &plan.seconds.to_string(),
    ])?;
    let before = Usage::ask(&mut processes)?;
    let done = client.ask()?;
    let after = Usage::ask(&mut processes)?;
    let (operations, seconds) = done.split_once(' ').ok_or("two numbers")?;
    let operations: f64 = operations.parse()?;
    let spent = |thread: (&u64, &u64)| (thread.0 - thread.1) as f64 / 1e3;
    let in_workers: Vec<f64> = after
        .workers
        .iter()
        .zip(&before.workers)
        .map(spent)
        .collect();
    let worker_time: f64 = in_workers.iter().sum();
    let total = worker_time + spent((&after.others, &before.others));
    Ok(Run {
        operations,
        seconds: seconds.parse()?,
        cost: total / operations,
        busiest: in_workers.iter().copied().fold(0.0, f64::max) / worker_time,
        in_workers: worker_time / total,
        handed_over: after.handed_over - before.handed_over,
        batch: (after.datagrams - before.datagrams) as f64
            / (after.sends - before.sends).max(1) as f64,
    })
}

/// What all servers together have used.
#[derive(Default)]
struct Usage {
    /// Processor time of each worker, nanoseconds.
    workers: Vec<u64>,
    /// That of all other threads.
    others: u64,
    handed_over: u64,
    datagrams: u64,
    sends: u64,
}

impl Usage {
    fn ask(servers: &mut [Process]) -> Outcome<Self> {
        let mut sum = Self::default();
        for server in servers {
            let line = server.ask()?;
            let numbers: Vec<u64> =
                (line.split_whitespace().map(str::parse)).collect::<Result<_, _>>()?;
            let [workers @ .., others, handed_over, datagrams, sends] = numbers.as_slice() else {
                return Err("too few numbers".into());
            };
            if workers.is_empty() {
                // A single worker is a task among others.
                sum.workers.push(*others);
            } else {
                sum.workers.extend(workers);
                sum.others += others;
            }
            sum.handed_over += handed_over;
            sum.datagrams += datagrams;
            sum.sends += sends;
        }
        Ok(sum)
    }
}

/// Processor time of the threads of this process: each worker's, then all others'.
fn thread_times(workers: usize) -> Outcome<Vec<u64>> {
    let mut times = vec![0; if workers == 1 { 1 } else { workers + 1 }];
    for task in std::fs::read_dir("/proc/self/task")? {
        let path = task?.path();
        let name = std::fs::read_to_string(path.join("comm"))?;
        let spent = std::fs::read_to_string(path.join("schedstat"))?;
        let spent: u64 = spent.split_whitespace().next().ok_or("no time")?.parse()?;
        let worker = name
            .trim()
            .strip_prefix("quic-")
            .and_then(|n| n.parse().ok());
        let rest = times.len() - 1;
        times[worker.unwrap_or(rest)] += spent;
    }
    Ok(times)
}

fn serve(workers: usize, apart: bool) -> Outcome<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(workers)
        .enable_all()
        .build()?;
    // Connections share it: a mebibyte of each one's own would cost more than its handshake.
    let payload = bytes::Bytes::from(vec![7; MEGABYTE as usize]);
    runtime.block_on(async {
        let server = Server::builder()
            .dev_certificate(&DevCertificate::generate(["localhost"])?)
            .alpn(["bench"])
            .tickets(Tickets::Off)
            .retry(RetryPolicy::Never)
            .workers(workers)
            .bind("127.0.0.1:0".parse()?)?;
        println!("{}", server.local_addr());
        for acceptor in server.acceptors() {
            let runtime = if apart {
                tokio::runtime::Handle::current()
            } else {
                acceptor.runtime()
            };
            let payload = payload.clone();
            runtime.spawn(async move {
                while let Some(connection) = acceptor.accept().await {
                    tokio::spawn(answer(connection, payload.clone()));
                }
            });
        }
        let asked = tokio::task::spawn_blocking(move || -> Outcome<()> {
            for line in std::io::stdin().lock().lines() {
                line?;
                let stats = server.endpoint().stats();
                for time in thread_times(workers)? {
                    print!("{time} ");
                }
                println!(
                    "{} {} {}",
                    stats.handed_over, stats.datagrams_sent, stats.sends
                );
            }
            Ok(())
        });
        asked.await?
    })
}

/// Answers each stream with as many bytes as its request wants.
async fn answer(connection: Connection, payload: bytes::Bytes) {
    while let Ok((mut send, mut recv)) = connection.accept_bi().await {
        let payload = payload.clone();
        tokio::spawn(async move {
            let request = recv.read_to_end(REQUEST).await.ok()?;
            let mut left = u64::from_be_bytes(*request.first_chunk()?);
            while left > 0 {
                let part = left.min(MEGABYTE);
                let chunk = payload.slice(..part as usize);
                send.write_chunk(chunk).await.ok()?;
                left -= part;
            }
            send.finish().ok()
        });
    }
}

fn drive(addresses: &[SocketAddr], job: &str, connections: usize, seconds: f64) -> Outcome<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let (in_flight, wanted) = match job {
            "requests" => (SMALL_IN_FLIGHT, Some(SMALL)),
            "bulk" => (1, Some(LARGE)),
            "handshakes" => (1, None),
            other => return Err(format!("unknown job {other}").into()),
        };
        let mut clients = Vec::new();
        for &address in addresses.iter().cycle().take(connections) {
            let client = Client::builder()
                .dangerous_accept_any_certificate()
                .alpn(["bench"])
                .sessions(None)
                .bind("127.0.0.1:0".parse()?)
                .build()?;
            let connection = client.connect_to(address, "localhost").await?;
            connection.handshake_confirmed().await?;
            clients.push((client, connection, address));
        }
        println!("ready");
        std::io::stdin().read_line(&mut String::new())?;
        let started = Instant::now();
        let until = started + Duration::from_secs_f64(seconds);
        let mut tasks = JoinSet::new();
        for (client, connection, address) in &clients {
            for _ in 0..in_flight {
                let (client, connection, address) = (client.clone(), connection.clone(), *address);
                tasks.spawn(async move {
                    match wanted {
                        Some(wanted) => request(&connection, wanted, until).await,
                        None => connect(&client, address, until).await,
                    }
                });
            }
        }
        let mut operations = 0.0;
        while let Some(count) = tasks.join_next().await {
            operations += count??;
        }
        println!("{operations} {}", started.elapsed().as_secs_f64());
        // The other end asks for the numbers before it ends us.
        std::io::stdin().read_line(&mut String::new())?;
        Ok(())
    })
}

/// One request after the other; small ones are counted, of large ones the mebibytes.
async fn request(connection: &Connection, wanted: u64, until: Instant) -> Outcome<f64> {
    let mut request = [0; REQUEST];
    request[..8].copy_from_slice(&wanted.to_be_bytes());
    let mut buffer = vec![0; 64 * 1024];
    let (mut requests, mut bytes) = (0, 0);
    while Instant::now() < until {
        let (mut send, mut recv) = connection.open_bi().await?;
        send.write_all(&request).await?;
        send.finish()?;
        while let Some(n) = recv.read(&mut buffer).await? {
            bytes += n as u64;
        }
        requests += 1;
    }
    Ok(if wanted == SMALL {
        f64::from(requests)
    } else {
        bytes as f64 / MEGABYTE as f64
    })
}

/// One full handshake after the other.
async fn connect(client: &Client, address: SocketAddr, until: Instant) -> Outcome<f64> {
    let mut count = 0.0;
    while Instant::now() < until {
        let connection = client.connect_to(address, "localhost").await?;
        connection.handshake_confirmed().await?;
        connection.close(0, b"");
        count += 1.0;
    }
    Ok(count)
}

/// The other ends, which answer a line with a line.
struct Process {
    child: Child,
    questions: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Process {
    /// Starts this program in another role, and returns what it says first.
    fn start(arguments: &[&str]) -> Outcome<(Self, String)> {
        let mut child = Command::new(std::env::current_exe()?)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let questions = child.stdin.take().ok_or("no stdin")?;
        let answers = BufReader::new(child.stdout.take().ok_or("no stdout")?);
        let mut process = Self {
            child,
            questions,
            answers,
        };
        let first = process.line()?;
        Ok((process, first))
    }

    fn ask(&mut self) -> Outcome<String> {
        writeln!(self.questions)?;
        self.line()
    }

    fn line(&mut self) -> Outcome<String> {
        let mut line = String::new();
        if self.answers.read_line(&mut line)? == 0 {
            return Err("the other process ended".into());
        }
        Ok(line.trim().to_owned())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It has nothing to lose.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
