//! Ends of TCP connections, and windows that close: two connections that exchange datagrams without a
//! network.

use std::time::Duration;

use swiftwater_sim::tcp::{Config, Connection, ConnectionError, Event};
use swiftwater_units::Instant;

/// One way.
const DELAY: Duration = Duration::from_millis(20);

/// Timers expire when they are due.
fn exact() -> Config {
    Config {
        tick: Duration::ZERO,
        ..Config::default()
    }
}

/// Two ends, and datagrams on their way: when they arrive, and whether at the server.
struct Two {
    now: Instant,
    client: Connection,
    server: Option<Connection>,
    config: Config,
    flying: Vec<(Instant, bool, Vec<u8>)>,
    events: Vec<(bool, Event)>,
    /// Datagrams to lose, by direction.
    loses: fn(bool, Instant) -> bool,
}

impl Two {
    fn new(config: Config) -> Self {
        let now = Instant::from_millis(1);
        Self {
            now,
            client: Connection::connect(now, &config),
            server: None,
            config,
            flying: Vec::new(),
            events: Vec::new(),
            loses: |_, _| false,
        }
    }

    /// Established, with everything quiet.
    fn connected(config: Config) -> Self {
        let mut two = Self::new(config);
        two.run(Duration::from_secs(1));
        assert!(two.client.is_established() && two.server().is_established());
        two.events.clear();
        two
    }

    fn server(&mut self) -> &mut Connection {
        self.server.as_mut().unwrap()
    }

    fn drain(&mut self) {
        let mut out = Vec::new();
        for to_server in [true, false] {
            let end = if to_server {
                Some(&mut self.client)
            } else {
                self.server.as_mut()
            };
            let Some(end) = end else { continue };
            while end.poll_transmit(self.now, &mut out) {
                let datagram = std::mem::take(&mut out);
                if !(self.loses)(to_server, self.now) {
                    self.flying.push((self.now + DELAY, to_server, datagram));
                }
            }
            while let Some(event) = end.poll_event() {
                self.events.push((to_server, event));
            }
        }
    }

    fn run(&mut self, time: Duration) {
        let end = self.now + time;
        loop {
            self.drain();
            let timers = [
                self.client.next_timer(),
                self.server.as_ref().and_then(Connection::next_timer),
                self.flying.iter().map(|each| each.0).min(),
            ];
            let next = timers.into_iter().flatten().min();
            let Some(next) = next.filter(|next| *next <= end) else {
                self.now = end;
                return;
            };
            self.now = self.now.max(next);
            let now = self.now;
            let (due, later) = self.flying.drain(..).partition(|each| each.0 <= now);
            self.flying = later;
            for (_, to_server, datagram) in due {
                if !to_server {
                    self.client.on_datagram(now, &datagram);
                } else if let Some(server) = &mut self.server {
                    server.on_datagram(now, &datagram);
                } else {
                    self.server = Connection::accept(now, &self.config, &datagram);
                }
            }
            self.client.on_timer(now);
            if let Some(server) = &mut self.server {
                server.on_timer(now);
            }
        }
    }

    fn count(&self, event: Event) -> usize {
        self.events.iter().filter(|each| each.1 == event).count()
    }
}

fn read_all(connection: &mut Connection, now: Instant) -> Vec<u8> {
    let mut bytes = Vec::new();
    connection.read(now, usize::MAX, &mut bytes);
    bytes
}

#[test]
fn streams_end_one_after_the_other() {
    let mut two = Two::connected(exact());
    two.client.write(b"request");
    two.client.finish();
    two.run(Duration::from_secs(1));
    assert_eq!(two.count(Event::PeerFinished), 1);
    let now = two.now;
    assert_eq!(read_all(two.server(), now), b"request");
    // The other direction still works.
    two.server().write(b"response");
    two.run(Duration::from_secs(1));
    assert_eq!(read_all(&mut two.client, two.now), b"response");
    assert_eq!(two.count(Event::Closed), 0);
    two.server().finish();
    two.run(Duration::from_secs(1));
    assert_eq!(two.count(Event::PeerFinished), 2);
    assert_eq!(two.count(Event::Closed), 2);
    assert!(!two.client.is_over());
    // Repetitions of FIN are answered for a minute.
    two.run(Duration::from_secs(61));
    assert!(two.client.is_over() && two.server().is_over());
}

#[test]
fn a_fin_without_data_takes_one_segment() {
    let mut two = Two::connected(exact());
    two.client.finish();
    two.server().finish();
    two.run(Duration::from_secs(1));
    assert_eq!(two.count(Event::Closed), 2);
    assert_eq!(two.client.sender().unwrap().stats().segments, 1);
}

#[test]
fn the_last_acknowledgement_may_be_lost() {
    let mut two = Two::connected(exact());
    two.client.finish();
    two.run(Duration::from_millis(500));
    // All that the client sends for a while is lost: its acknowledgement of the server's FIN.
    two.server().finish();
    two.loses = |to_server, now| to_server && now < Instant::from_millis(1_700);
    two.run(Duration::from_secs(5));
    assert_eq!(two.count(Event::Closed), 2);
    assert!(two.server().sender().unwrap().stats().retransmissions > 0);
}

#[test]
fn an_abort_resets_the_peer() {
    let mut two = Two::connected(exact());
    two.client.abort();
    two.run(Duration::from_secs(1));
    assert_eq!(two.count(Event::Failed(ConnectionError::Reset)), 1);
    assert!(two.client.is_over() && two.server().is_over());
}

#[test]
fn a_closed_window_opens_when_the_application_reads() {
    for loses_update in [false, true] {
        let mut two = Two::connected(Config {
            receive_window: 20_000,
            max_receive_window: 20_000,
            ..exact()
        });
        let sent: Vec<u8> = (0..60_000_u32).map(|number| number as u8).collect();
        two.server().write(&sent);
        two.run(Duration::from_secs(1));
        let mut received = read_all(&mut two.client, two.now);
        assert!(received.len() <= 20_000 && received.len() > 17_000);
        if loses_update {
            // Only a probe of the window tells the sender then.
            two.loses = |to_server, now| to_server && now < Instant::from_millis(2_500);
        }
        for _ in 0..60 {
            two.run(Duration::from_secs(1));
            received.extend(read_all(&mut two.client, two.now));
        }
        assert!(received == sent, "{} bytes", received.len());
    }
}

#[test]
fn a_full_buffer_asks_for_patience_and_tells_when_there_is_room() {
    let mut two = Two::connected(exact());
    let room = two.server().writable();
    assert!(room >= 10 * 1448);
    two.server().write(&vec![0; room as usize]);
    assert_eq!(two.server().writable(), 0);
    two.server().want_room();
    assert_eq!(two.count(Event::Writable), 0);
    two.run(Duration::from_secs(1));
    assert_eq!(two.count(Event::Writable), 1);
    assert!(two.server().writable() > 0);
}
