//! What the kernel's TCP drops and achieves on an emulated link, for comparison with `swiftwater sim`.
//!
//! ```sh
//! cargo run --release -p swiftwater-net --features tun --example kernel_tcp -- \
//!     CONGESTION_CONTROL RATE RTT BUFFER LOSS FLOWS BYTES [REPEATS]
//! cargo run --release -p swiftwater-net --features tun --example kernel_tcp -- \
//!     cubic 50mbit 24ms 312500 none 1 1000000 5
//! ```
//!
//! Each repeat has network namespaces of its own, so that no route remembers the path. All flows start
//! together, from server to client; loss is on the way of the data. Needs Linux, root and `/dev/net/tun`.

use std::error::Error;
use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use socket2::SockRef;
use swiftwater_link::{Buffer, LinkConfig, LossModel, Rate, parse_duration};
use swiftwater_net::relay::tun::{Site, TunRelay, TunRelayConfig};

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// Settings of each namespace: windows that never limit, and nothing remembered between connections.
const SETTINGS: [(&str, &str); 4] = [
    ("tcp_rmem", "4096 16777216 67108864"),
    ("tcp_wmem", "4096 16777216 67108864"),
    ("tcp_no_metrics_save", "1"),
    ("tcp_slow_start_after_idle", "0"),
];

/// A flow is given up after this.
const LIMIT: Duration = Duration::from_secs(120);

struct Plan {
    controller: String,
    config: TunRelayConfig,
    flows: usize,
    bytes: usize,
}

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [
        controller,
        rate,
        rtt,
        buffer,
        loss,
        flows,
        bytes,
        repeats @ ..,
    ] = &arguments[..]
    else {
        return Err("CONGESTION_CONTROL RATE RTT BUFFER LOSS FLOWS BYTES [REPEATS]".into());
    };
    let rate: Rate = rate.parse()?;
    let delay = parse_duration(rtt)? / 2;
    let up = LinkConfig::default()
        .rate(rate.clone())
        .delay(delay)
        .buffer(Buffer::Unlimited);
    let down = LinkConfig::default()
        .rate(rate)
        .delay(delay)
        .buffer(buffer.parse()?)
        .loss(loss.parse::<LossModel>()?);
    let repeats: u64 = repeats.first().map_or(Ok(1), |text| text.parse())?;
    println!("dropped | offered | goodput of each flow, Mbit/s");
    for seed in 1..=repeats {
        let (up, down) = (up.clone(), down.clone());
        run(&Plan {
            controller: controller.clone(),
            config: TunRelayConfig { up, down, seed },
            flows: flows.parse()?,
            bytes: bytes.parse()?,
        })?;
    }
    Ok(())
}

fn run(plan: &Plan) -> Outcome<()> {
    let relay = TunRelay::start(&plan.config)?;
    for site in [relay.client(), relay.server()] {
        at(site, set_up)??;
    }
    let address = SocketAddr::from((relay.server().address(), 0));
    let listener = at(relay.server(), move || TcpListener::bind(address))??;
    // Connections that it accepts inherit it.
    SockRef::from(&listener).set_tcp_congestion(plan.controller.as_bytes())?;
    let server = listener.local_addr()?;
    let (flows, bytes) = (plan.flows, plan.bytes);
    let sending = thread::spawn(move || serve(&listener, flows, bytes));
    let mut receivers = Vec::new();
    for _ in 0..flows {
        receivers.push(at(relay.client(), move || TcpStream::connect(server))??);
    }
    let receivers = receivers
        .into_iter()
        .map(|stream| thread::spawn(move || receive(stream)));
    let receivers: Vec<_> = receivers.collect();
    let mut goodputs = Vec::new();
    for receiver in receivers {
        goodputs.push(receiver.join().map_err(|_| "a receiver failed")??);
    }
    sending.join().map_err(|_| "the server failed")??;
    let down = relay.stop().down;
    let goodputs: Vec<_> = goodputs.iter().map(|mbps| format!("{mbps:.2}")).collect();
    println!(
        "{} | {} | {}",
        down.dropped_queue.packets.get(),
        down.enqueued.packets.get(),
        goodputs.join(" ")
    );
    Ok(())
}

fn at<T: Send + 'static>(site: &Site, work: impl FnOnce() -> T + Send + 'static) -> Outcome<T> {
    let thread = site.spawn("kernel-tcp", work)?;
    Ok(thread.join().map_err(|_| "a thread at a site failed")??)
}

/// Settings of the namespace that the calling thread is in.
fn set_up() -> std::io::Result<()> {
    for (name, value) in SETTINGS {
        fs::write(format!("/proc/sys/net/ipv4/{name}"), value)?;
    }
    Ok(())
}

/// Accepts all flows, then starts them at once.
fn serve(listener: &TcpListener, flows: usize, bytes: usize) -> std::io::Result<()> {
    let streams: Result<Vec<_>, _> = (0..flows).map(|_| listener.accept()).collect();
    let senders = streams?
        .into_iter()
        .map(|(mut stream, _)| thread::spawn(move || stream.write_all(&vec![7; bytes])));
    let senders: Vec<_> = senders.collect();
    for sender in senders {
        sender
            .join()
            .map_err(|_| std::io::Error::other("a sender failed"))??;
    }
    Ok(())
}

/// Goodput in Mbit/s, from now to the last byte.
fn receive(mut stream: TcpStream) -> std::io::Result<f64> {
    stream.set_read_timeout(Some(LIMIT))?;
    let begin = Instant::now();
    let mut buffer = vec![0; 1 << 16];
    let mut bytes = 0_u64;
    loop {
        match stream.read(&mut buffer)? {
            0 => break,
            read => bytes += read as u64,
        }
    }
    Ok(bytes as f64 * 8.0 / begin.elapsed().as_secs_f64() / 1e6)
}
