//! Sockets that fail and clocks that jump. What is bounded is counted, in calls and in turns of the
//! worker.

#![cfg(target_os = "linux")]
use crate::watchdog;

use std::future::Future;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use crate::loopback::{LOOPBACK, NAME, Pair, configs, echo, endpoint_config, noise};
use swiftwater_net::quic::{ConnectionError, TransportConfig};
use swiftwater_net::{Connection, Endpoint, EndpointOptions, SocketFaults};

// Error numbers of Linux.
const EPERM: i32 = 1;
const EAGAIN: i32 = 11;
const EMSGSIZE: i32 = 90;
const ENETDOWN: i32 = 100;
const ENETUNREACH: i32 = 101;
const ENOBUFS: i32 = 105;
const ECONNREFUSED: i32 = 111;
const EHOSTUNREACH: i32 = 113;

/// Which calls fail with which error. Zero is no error.
#[derive(Debug, Default)]
struct Faults {
    send_error: AtomicI32,
    receive_error: AtomicI32,
    /// Only sends of datagrams larger than this fail.
    fits: AtomicU64,
    /// One call in this many works in spite of the error; zero: none.
    one_works_in: AtomicU64,
    sends: AtomicU64,
    receives: AtomicU64,
}

impl Faults {
    fn fail(&self, send: i32, receive: i32) {
        self.send_error.store(send, Ordering::Relaxed);
        self.receive_error.store(receive, Ordering::Relaxed);
    }

    fn outcome(&self, error: &AtomicI32, call: u64) -> Option<io::Error> {
        let error = error.load(Ordering::Relaxed);
        let one_in = self.one_works_in.load(Ordering::Relaxed);
        let works = one_in > 0 && call.is_multiple_of(one_in);
        (error != 0 && !works).then(|| io::Error::from_raw_os_error(error))
    }

    fn calls(&self) -> (u64, u64) {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        (get(&self.sends), get(&self.receives))
    }
}

impl SocketFaults for Faults {
    fn on_send(&self, _datagrams: usize, size: usize) -> Option<io::Error> {
        let call = self.sends.fetch_add(1, Ordering::Relaxed);
        let fits = size as u64 <= self.fits.load(Ordering::Relaxed);
        self.outcome(&self.send_error, call).filter(|_| !fits)
    }

    fn on_receive(&self) -> Option<io::Error> {
        let call = self.receives.fetch_add(1, Ordering::Relaxed);
        self.outcome(&self.receive_error, call)
    }
}

/// A pair with an echoing server, and the switch for the server's socket and for the client's.
struct Faulty {
    pair: Pair,
    server: Arc<Faults>,
    client: Arc<Faults>,
}

impl Faulty {
    fn new(change: impl FnOnce(&mut TransportConfig)) -> Self {
        let mut transport = TransportConfig {
            initial_rtt: Duration::from_millis(20),
            ..TransportConfig::default()
        };
        change(&mut transport);
        let (config, client_config) = configs(transport);
        let faults = [(); 2].map(|()| Arc::new(Faults::default()));
        let [server_faults, client_faults] = faults;
        let mut options = EndpointOptions::new(endpoint_config(1), [1; 32]).server(config);
        options.faults = Some(server_faults.clone());
        let server = Endpoint::bind(LOOPBACK.parse().unwrap(), options).unwrap();
        let mut options = EndpointOptions::new(endpoint_config(2), [2; 32]);
        options.faults = Some(client_faults.clone());
        let client = Endpoint::bind(LOOPBACK.parse().unwrap(), options).unwrap();
        let accepting = server.clone();
        tokio::spawn(async move {
            while let Some(connection) = accepting.accept().await {
                tokio::spawn(echo(connection));
            }
        });
        Self {
            pair: Pair {
                server,
                client,
                config: client_config,
            },
            server: server_faults,
            client: client_faults,
        }
    }

    async fn connect(&self) -> Connection {
        let address = self.pair.server.local_addr();
        let connecting = self.pair.client.connect(&self.pair.config, address, NAME);
        connecting.unwrap().await.unwrap()
    }

    fn wakeups(&self) -> u64 {
        self.pair.server.stats().wakeups + self.pair.client.stats().wakeups
    }
}

async fn transfer(connection: &Connection, len: usize) {
    let data = noise(len, len as u64);
    let (mut send, mut recv) = connection.open_bi().await.unwrap();
    let expected = data.clone();
    let writer = tokio::spawn(async move {
        send.write_all(&data).await.unwrap();
        send.finish().unwrap();
        send.stopped().await.unwrap();
    });
    assert!(recv.read_to_end(len).await.unwrap() == expected);
    writer.await.unwrap();
}

/// Runs a test on one thread whose clock may jump; fails it if it hangs in real time.
fn run(test: impl Future<Output = ()> + Send + 'static) {
    let (done, finished) = mpsc::channel();
    let runner = thread::spawn(move || {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let watched = async {
            watchdog::watch_this_thread();
            test.await;
        };
        runtime.enable_all().build().unwrap().block_on(watched);
        done.send(()).unwrap();
    });
    match finished.recv_timeout(Duration::from_secs(60)) {
        Err(mpsc::RecvTimeoutError::Timeout) => panic!("the test hangs"),
        _ => runner.join().unwrap(),
    }
}

/// The clock jumps, as after a suspension or while the process is stopped: timers are late, and the
/// network did nothing.
async fn jump(by: Duration) {
    tokio::time::pause();
    tokio::time::advance(by).await;
    tokio::time::resume();
}

/// Whatever the system says to a send, the datagrams count as lost and the connection goes on once
/// sending works again. Meanwhile probes are sent ever more rarely.
#[test]
fn outages_shorter_than_the_idle_timeout_are_survived() {
    for error in [
        ENOBUFS,
        EPERM,
        ENETUNREACH,
        ENETDOWN,
        EHOSTUNREACH,
        ECONNREFUSED,
    ] {
        run(async move {
            let faulty = Faulty::new(|_| {});
            let connection = faulty.connect().await;
            transfer(&connection, 100_000).await;
            let ((sends, _), wakeups) = (faulty.client.calls(), faulty.wakeups());
            faulty.client.fail(error, 0);
            let going_on = transfer(&connection, 200_000);
            let outage = async {
                tokio::time::sleep(Duration::from_millis(400)).await;
                let (sent, _) = faulty.client.calls();
                // A window of data, each datagram of a refused batch once more alone, and probes.
                assert!(sent - sends < 600, "{error}: {} calls", sent - sends);
                let woken = faulty.wakeups() - wakeups;
                assert!(woken < 600, "{error}: {woken} wake-ups");
                assert!(faulty.pair.client.stats().send_errors > 0);
                faulty.client.fail(0, 0);
            };
            tokio::join!(going_on, outage);
            assert!(connection.close_reason().is_none());
        });
    }
}

/// Nothing leaves for longer than the idle timeout: both ends time out, each on its own.
#[test]
fn an_outage_that_lasts_ends_in_the_idle_timeout() {
    run(async {
        let faulty = Faulty::new(|transport| {
            transport.max_idle_timeout = Some(Duration::from_millis(300));
        });
        let connection = faulty.connect().await;
        transfer(&connection, 1000).await;
        faulty.client.fail(ENETUNREACH, ENETDOWN);
        faulty.server.fail(ENETUNREACH, ENETDOWN);
        let (mut send, _) = connection.open_bi().await.unwrap();
        send.write_all(&noise(10_000, 1)).await.unwrap();
        assert_eq!(connection.closed().await, ConnectionError::TimedOut);
        faulty.pair.server.wait_idle().await;
        // The endpoints have lost nothing: the next connection works.
        faulty.client.fail(0, 0);
        faulty.server.fail(0, 0);
        transfer(&faulty.connect().await, 10_000).await;
    });
}

/// A handshake into a network that is down fails with its own error.
#[test]
fn connecting_without_a_network_times_out() {
    run(async {
        let faulty = Faulty::new(|transport| {
            transport.handshake_timeout = Duration::from_millis(200);
        });
        faulty.client.fail(ENETUNREACH, 0);
        let address = faulty.pair.server.local_addr();
        let connecting = faulty
            .pair
            .client
            .connect(&faulty.pair.config, address, NAME)
            .unwrap();
        assert_eq!(
            connecting.await.unwrap_err(),
            ConnectionError::HandshakeTimedOut
        );
        assert!(faulty.client.calls().0 < 50, "{:?}", faulty.client.calls());
    });
}

/// The socket says "not now" to four of five sends and reads, and has room again at once.
#[test]
fn storms_of_would_block_cost_calls_but_no_data() {
    run(async {
        let faulty = Faulty::new(|_| {});
        let connection = faulty.connect().await;
        for faults in [&faulty.client, &faulty.server] {
            faults.one_works_in.store(5, Ordering::Relaxed);
            faults.fail(EAGAIN, EAGAIN);
        }
        let before = (faulty.wakeups(), faulty.pair.client.stats());
        let calls = faulty.client.calls().0;
        transfer(&connection, 1_000_000).await;
        let after = faulty.pair.client.stats();
        let sends = after.sends - before.1.sends;
        let calls = faulty.client.calls().0 - calls;
        assert!(sends > 0 && calls <= 5 * sends + 5, "{calls} for {sends}");
        assert_eq!(after.send_errors, before.1.send_errors, "none was dropped");
    });
}

/// A socket that fails at each read is asked again, but not in a busy loop: nine times, and then
/// after a pause of 10 ms.
#[test]
fn a_socket_that_fails_to_receive_is_not_asked_all_the_time() {
    for error in [ENETDOWN, ECONNREFUSED, ENOBUFS] {
        run(async move {
            let faulty = Faulty::new(|_| {});
            let connection = faulty.connect().await;
            let receives = faulty.server.calls().1;
            let sent = faulty.pair.client.stats().datagrams_sent;
            faulty.server.fail(0, error);
            let started = Instant::now();
            let going_on = transfer(&connection, 50_000);
            let outage = async {
                tokio::time::sleep(Duration::from_millis(300)).await;
                let asked = faulty.server.calls().1 - receives;
                let pauses = started.elapsed().as_millis() as u64 / 10 + 1;
                // Whatever else wakes the worker gives it another try: datagrams, and timers.
                let arrived = faulty.pair.client.stats().datagrams_sent - sent;
                let bound = 9 * (pauses + arrived + 20);
                assert!(
                    asked <= bound,
                    "{error}: {asked} in {pauses}, {arrived} came"
                );
                faulty.server.fail(0, 0);
            };
            tokio::join!(going_on, outage);
            assert!(faulty.pair.server.stats().receive_errors > 0);
        });
    }
}

/// ICMP answers show up as errors of reads, one now and then: no datagram is lost for it.
#[test]
fn single_errors_of_reads_cost_nothing() {
    run(async {
        let faulty = Faulty::new(|_| {});
        let connection = faulty.connect().await;
        for faults in [&faulty.client, &faulty.server] {
            faults.one_works_in.store(2, Ordering::Relaxed);
            faults.fail(0, ECONNREFUSED);
        }
        transfer(&connection, 500_000).await;
        assert!(faulty.pair.server.stats().receive_errors > 0);
        assert!(connection.close_reason().is_none());
    });
}

/// A link that takes 1200 bytes and no more, seen as errors of the system.
#[test]
fn datagrams_too_large_for_the_link_are_dropped() {
    run(async {
        let faulty = Faulty::new(|_| {});
        for faults in [&faulty.client, &faulty.server] {
            faults.fits.store(1200, Ordering::Relaxed);
            faults.fail(EMSGSIZE, 0);
        }
        let connection = faulty.connect().await;
        transfer(&connection, 300_000).await;
    });
}

/// Ten seconds without the processor: late, but within the idle timeout of 30 s.
#[test]
fn a_pause_of_the_process_is_survived() {
    run(async {
        let faulty = Faulty::new(|_| {});
        let connection = faulty.connect().await;
        let transfers = transfer(&connection, 3_000_000);
        let before = faulty.wakeups();
        let pause = async {
            tokio::task::yield_now().await;
            jump(Duration::from_secs(10)).await;
        };
        tokio::join!(transfers, pause);
        jump(Duration::from_secs(10)).await;
        transfer(&connection, 10_000).await;
        assert!(connection.close_reason().is_none());
        // Far more than one per batch of packets would be spinning.
        let packets = faulty.pair.client.stats().datagrams_sent;
        let woken = faulty.wakeups() - before;
        assert!(woken < 4 * packets + 1000, "{woken} for {packets} packets");
    });
}

/// The clock jumps by hours: connections are over, with the error that says so, and the endpoints
/// serve the next ones.
#[test]
fn hours_that_pass_at_once_end_connections_properly() {
    run(async {
        let faulty = Faulty::new(|_| {});
        let connection = faulty.connect().await;
        transfer(&connection, 10_000).await;
        let before = faulty.wakeups();
        jump(Duration::from_secs(5 * 3600)).await;
        assert_eq!(connection.closed().await, ConnectionError::TimedOut);
        faulty.pair.server.wait_idle().await;
        assert!(faulty.wakeups() - before < 200);
        transfer(&faulty.connect().await, 10_000).await;

        // In the middle of a handshake whose packets get lost.
        faulty.client.fail(ENETUNREACH, 0);
        let address = faulty.pair.server.local_addr();
        let client = &faulty.pair.client;
        let connecting = client.connect(&faulty.pair.config, address, NAME).unwrap();
        let (outcome, ()) = tokio::join!(connecting, async {
            tokio::task::yield_now().await;
            jump(Duration::from_secs(3600)).await;
        });
        assert_eq!(outcome.unwrap_err(), ConnectionError::HandshakeTimedOut);
    });
}

/// With keep-alive and no idle timeout not even hours end a connection.
#[test]
fn a_connection_without_idle_timeout_outlives_hours() {
    run(async {
        let faulty = Faulty::new(|transport| {
            transport.max_idle_timeout = None;
            transport.keep_alive_interval = Some(Duration::from_secs(15));
        });
        let connection = faulty.connect().await;
        // Until then the server's handshake may not be over.
        transfer(&connection, 1000).await;
        for _ in 0..3 {
            jump(Duration::from_secs(3 * 3600)).await;
            transfer(&connection, 100_000).await;
        }
        assert!(connection.close_reason().is_none());
    });
}
