//! Small requests over loopback: 100 bytes up and 1 KiB down on a stream each, 32 in flight on one
//! connection. Server and client have a thread each.
//!
//! ```text
//! cargo bench -p swiftwater-net --bench requests -- [SECONDS] [tasks | hosted]
//! ```
//!
//! `tasks`: a task for each request at both ends, as most programs have it. `hosted`: both ends run
//! inside the workers ([`Application`]). Processor time is what the system counts for the threads
//! (Linux).

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a benchmark"
)]

#[path = "../tests/loopback/mod.rs"]
mod loopback;

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::task::Waker;
use std::thread;
use std::time::Duration;

use swiftwater_net::quic::{
    ClientConfig, Connection as Core, Event, ReadOutcome, ServerConfig, StreamEvent,
    TransportConfig,
};
use swiftwater_net::{Application, Connection, Endpoint, EndpointOptions, EndpointStats};
use swiftwater_units::{Dir, Instant, StreamId};
use tokio::sync::oneshot;

const IN_FLIGHT: usize = 32;
static UP: [u8; 100] = [7; 100];
static DOWN: [u8; 1024] = [8; 1024];

fn main() {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let seconds = arguments.iter().find_map(|word| word.parse().ok());
    let duration = Duration::from_secs_f64(seconds.unwrap_or(3.0));
    let wants = |name| {
        let named = |word: &String| ["tasks", "hosted"].contains(&word.as_str());
        !arguments.iter().any(named) || arguments.iter().any(|word| word == name)
    };
    for (name, hosted) in [("tasks", false), ("hosted", true)] {
        if wants(name) {
            measure(name, hosted, duration);
        }
    }
}

/// What an end used.
#[derive(Clone, Copy)]
struct Usage {
    cpu: Duration,
    stats: EndpointStats,
}

impl Usage {
    fn of(endpoint: &Endpoint) -> Self {
        Self {
            cpu: thread_time(),
            stats: endpoint.stats(),
        }
    }

    fn print(&self, end: &str, requests: u64) {
        let each = |n: u64| n as f64 / requests as f64;
        println!(
            "  {end}: {:.2} us of processor time, {:.3} datagrams and {:.3} sends, {:.3} wake-ups each",
            self.cpu.as_secs_f64() * 1e6 / requests as f64,
            each(self.stats.datagrams_sent),
            each(self.stats.sends),
            each(self.stats.wakeups),
        );
    }
}

fn measure(name: &str, hosted: bool, duration: Duration) {
    let transport = TransportConfig {
        initial_max_datagram_size: 1452,
        ..TransportConfig::default()
    };
    let (server_config, config) = loopback::configs(transport);
    let (bound, address) = mpsc::channel();
    let (stop, stopped) = oneshot::channel::<()>();
    let server = thread::spawn(move || {
        block_on(async {
            let server = serve(server_config, hosted, &bound).await;
            let _ = stopped.await;
            server
        })
    });
    let address = address.recv().unwrap();
    let (requests, took, client) = block_on(request(config, address, hosted, duration));
    drop(stop);
    let server = server.join().unwrap();
    println!(
        "{name}: {:.0} requests per second",
        requests as f64 / took.as_secs_f64()
    );
    server.print("server", requests);
    client.print("client", requests);
}

fn block_on<T>(work: impl Future<Output = T>) -> T {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_all().build().unwrap().block_on(work)
}

/// Processor time of the calling thread; zero where the system doesn't say.
fn thread_time() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanos = text.split(' ').next().and_then(|word| word.parse().ok());
    Duration::from_nanos(nanos.unwrap_or(0))
}

/// Serves one connection to its end.
async fn serve(config: ServerConfig, hosted: bool, bound: &mpsc::Sender<SocketAddr>) -> Usage {
    let options = EndpointOptions::new(loopback::endpoint_config(1), [1; 32]).server(config);
    let server = Endpoint::bind(loopback::LOOPBACK.parse().unwrap(), options).unwrap();
    bound.send(server.local_addr()).unwrap();
    let connection = server.accept().await.unwrap();
    if hosted {
        connection.host(Arc::new(Responder::default()));
        connection.closed().await;
    } else {
        while let Ok((mut send, mut recv)) = connection.accept_bi().await {
            tokio::spawn(async move {
                // At the end the client closes in the middle of it.
                if recv.read_to_end(4096).await.is_ok() && send.write_all(&DOWN).await.is_ok() {
                    let _ = send.finish();
                }
            });
        }
    }
    Usage::of(&server)
}

/// Makes requests until the time is over; how many, in which time, and what that took.
async fn request(
    config: ClientConfig,
    address: SocketAddr,
    hosted: bool,
    duration: Duration,
) -> (u64, Duration, Usage) {
    let client = Endpoint::client(
        loopback::LOOPBACK.parse().unwrap(),
        loopback::endpoint_config(2),
        [2; 32],
    );
    let client = client.unwrap();
    let connecting = client.connect(&config, address, loopback::NAME).unwrap();
    let connection = connecting.await.unwrap();
    connection.handshake_confirmed().await.unwrap();
    let start = tokio::time::Instant::now();
    let before = thread_time();
    let requests = if hosted {
        let requester = Arc::new(Requester::default());
        connection.host(requester.clone());
        connection.with_core(|_, core| (0..IN_FLIGHT).for_each(|_| Requester::ask(core)));
        tokio::time::sleep(duration).await;
        requester.answered.load(Ordering::Relaxed)
    } else {
        let tasks: Vec<_> = (0..IN_FLIGHT)
            .map(|_| tokio::spawn(ask(connection.clone(), start + duration)))
            .collect();
        let mut requests = 0;
        for task in tasks {
            requests += task.await.unwrap();
        }
        requests
    };
    let took = start.elapsed();
    let mut usage = Usage::of(&client);
    usage.cpu -= before;
    connection.close(0, b"");
    client.wait_idle().await;
    (requests, took, usage)
}

/// One request after another.
async fn ask(connection: Connection, until: tokio::time::Instant) -> u64 {
    let mut requests = 0;
    while tokio::time::Instant::now() < until {
        let (mut send, mut recv) = connection.open_bi().await.unwrap();
        send.write_all(&UP).await.unwrap();
        send.finish().unwrap();
        assert_eq!(recv.read_to_end(4096).await.unwrap().len(), DOWN.len());
        requests += 1;
    }
    requests
}

/// Answers from inside the worker.
#[derive(Default)]
struct Responder {
    buffer: Mutex<Vec<u8>>,
}

impl Responder {
    fn answer(&self, core: &mut Core, id: StreamId) {
        if is_read(&self.buffer, core, id) {
            let mut stream = core.send_stream(id);
            // Windows are larger than this; at the end the client closes in the middle of it.
            if stream.write(&DOWN) == Ok(DOWN.len()) {
                stream.finish().unwrap();
            }
        }
    }
}

impl Application for Responder {
    fn on_event(&self, _: Instant, core: &mut Core, event: &Event, _: &mut Vec<Waker>) {
        match *event {
            Event::Stream(StreamEvent::Opened { dir: Dir::Bi }) => {
                while let Some(id) = core.accept(Dir::Bi) {
                    self.answer(core, id);
                }
            }
            Event::Stream(StreamEvent::Readable { id }) => self.answer(core, id),
            _ => {}
        }
    }
}

/// Asks from inside the worker, as soon as an answer is there.
#[derive(Default)]
struct Requester {
    buffer: Mutex<Vec<u8>>,
    answered: AtomicU64,
}

impl Requester {
    fn ask(core: &mut Core) {
        let id = core.open(Dir::Bi).unwrap();
        let mut stream = core.send_stream(id);
        assert_eq!(stream.write(&UP), Ok(UP.len()));
        stream.finish().unwrap();
    }
}

impl Application for Requester {
    fn on_event(&self, _: Instant, core: &mut Core, event: &Event, _: &mut Vec<Waker>) {
        if let Event::Stream(StreamEvent::Readable { id }) = *event
            && !core.is_closed()
            && is_read(&self.buffer, core, id)
        {
            self.answered.fetch_add(1, Ordering::Relaxed);
            Self::ask(core);
        }
    }
}

/// Reads what is there; true at the end of the stream.
fn is_read(buffer: &Mutex<Vec<u8>>, core: &mut Core, id: StreamId) -> bool {
    let mut buffer = buffer.lock().unwrap();
    buffer.resize(4096, 0);
    loop {
        match core.recv_stream(id).read(&mut buffer) {
            Ok(ReadOutcome::Data(_)) => {}
            Ok(ReadOutcome::Finished) => return true,
            Ok(ReadOutcome::Blocked) | Err(_) => return false,
        }
    }
}
