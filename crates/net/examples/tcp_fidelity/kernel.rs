//! A transfer by the kernel's TCP over the relay of IP packets.

use std::fs;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use socket2::{Domain, SockRef, Socket, Type};
use swiftwater_net::relay::tun::{Site, TunRelay, TunRelayConfig};

use crate::Outcome;
use crate::cells::{Cell, REQUEST};

/// Buffers of the kernel's connections.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Windows {
    /// So large that they never limit.
    Large,
    /// Those of Linux, which grow.
    Default,
}

impl Windows {
    /// Settings of a namespace; nothing is remembered between connections.
    fn settings(self) -> [(&'static str, &'static str); 3] {
        let (read, write) = match self {
            Self::Large => ("4096 16777216 67108864", "4096 16777216 67108864"),
            Self::Default => ("4096 131072 6291456", "4096 16384 4194304"),
        };
        [
            ("tcp_rmem", read),
            ("tcp_wmem", write),
            ("tcp_no_metrics_save", "1"),
        ]
    }
}

/// A transfer is given up after this.
const LIMIT: Duration = Duration::from_secs(300);

/// What the kernel says about a transfer.
pub(crate) struct Measured {
    /// Time from the SYN to the last byte, milliseconds.
    pub(crate) millis: f64,
    /// Time and bytes at each read of the client.
    pub(crate) progress: Vec<(f64, usize)>,
    /// Packets of the client.
    pub(crate) packets_up: u64,
    /// Counters of the server's namespace that are not zero.
    pub(crate) counters: Vec<(String, u64)>,
}

/// Counters that concern loss.
const COUNTERS: [&str; 16] = [
    "RetransSegs",
    "TCPTimeouts",
    "TCPLossProbes",
    "TCPLossProbeRecovery",
    "TCPFastRetrans",
    "TCPSlowStartRetrans",
    "TCPSackRecovery",
    "TCPLostRetransmit",
    "TCPDSACKRecv",
    "TCPDSACKUndo",
    "TCPFullUndo",
    "TCPPartialUndo",
    "TCPLossUndo",
    "TCPSpuriousRTOs",
    "TCPHystartTrainCwnd",
    "TCPHystartDelayCwnd",
];

pub(crate) fn run(cell: &Cell, seed: u64, windows: Windows) -> Outcome<Measured> {
    let link = cell.link(0);
    let relay = TunRelay::start(&TunRelayConfig {
        up: link.clone(),
        down: link,
        seed,
    })?;
    for site in [relay.client(), relay.server()] {
        at(site, move || set_up(windows))??;
    }
    let address = SocketAddr::from((relay.server().address(), 0));
    let listener = at(relay.server(), move || TcpListener::bind(address))??;
    SockRef::from(&listener).set_tcp_congestion(b"cubic")?;
    let server = listener.local_addr()?;
    let bytes = cell.bytes as usize;
    let (finished, done) = mpsc::channel();
    let serving = thread::spawn(move || serve(&listener, bytes, &done));
    let progress = at(relay.client(), move || fetch(server, bytes))??;
    let counters = at(relay.server(), counters)??;
    let packets_up = relay.counters().up.enqueued.packets.get();
    drop(finished);
    drop(relay);
    serving.join().map_err(|_| "the server failed")?.ok();
    Ok(Measured {
        millis: progress.last().map_or(0.0, |last| last.0),
        progress,
        packets_up,
        counters,
    })
}

/// Counters of the namespace that the calling thread is in: pairs of lines, names and values.
fn counters() -> io::Result<Vec<(String, u64)>> {
    let mut counters = Vec::new();
    for file in [
        "/proc/thread-self/net/snmp",
        "/proc/thread-self/net/netstat",
    ] {
        let text = fs::read_to_string(file)?;
        let lines: Vec<&str> = text.lines().collect();
        for pair in lines.chunks_exact(2) {
            let values = pair[1].split(' ').map(|value| value.parse().unwrap_or(0));
            for (name, value) in pair[0].split(' ').zip(values) {
                if COUNTERS.contains(&name) && value > 0 {
                    counters.push((name.to_owned(), value));
                }
            }
        }
    }
    Ok(counters)
}

fn at<T: Send + 'static>(site: &Site, work: impl FnOnce() -> T + Send + 'static) -> Outcome<T> {
    let thread = site.spawn("tcp-fidelity", work)?;
    Ok(thread.join().map_err(|_| "a thread at a site failed")??)
}

/// Settings of the namespace that the calling thread is in.
fn set_up(windows: Windows) -> io::Result<()> {
    for (name, value) in windows.settings() {
        fs::write(format!("/proc/sys/net/ipv4/{name}"), value)?;
    }
    Ok(())
}

fn serve(listener: &TcpListener, bytes: usize, done: &Receiver<()>) -> io::Result<()> {
    let (mut stream, _) = listener.accept()?;
    stream.set_nodelay(true)?;
    let mut request = vec![0; REQUEST as usize + 16];
    stream.read_exact(&mut request)?;
    stream.write_all(&vec![7; bytes])?;
    // Open until the client has all: a FIN behind the response would reveal the loss of its end.
    // The other end of the channel is dropped then.
    let _ = done.recv();
    Ok(())
}

fn fetch(server: SocketAddr, bytes: usize) -> io::Result<Vec<(f64, usize)>> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    socket.set_tcp_congestion(b"cubic")?;
    let begin = Instant::now();
    socket.connect(&server.into())?;
    let mut stream = TcpStream::from(socket);
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(LIMIT))?;
    stream.write_all(&vec![7; REQUEST as usize + 16])?;
    let mut buffer = vec![0; 1 << 16];
    let mut received = 0;
    let mut progress = Vec::new();
    while received < bytes {
        match stream.read(&mut buffer)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            read => received += read,
        }
        progress.push((begin.elapsed().as_secs_f64() * 1e3, received));
    }
    Ok(progress)
}
