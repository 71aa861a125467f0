//! `relay` with several legs, and faults in the course of time.

#![cfg(target_os = "linux")]

use std::fs;
use std::net::UdpSocket;
use std::time::Duration;

use crate::support::{Running, failed, swiftwater};
use serde_json::Value;

/// A server that sends everything back, for as long as the test runs.
fn echo() -> u16 {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = socket.local_addr().unwrap().port();
    std::thread::spawn(move || {
        let mut buffer = [0; 2048];
        while let Ok((length, from)) = socket.recv_from(&mut buffer) {
            socket.send_to(&buffer[..length], from).unwrap();
        }
    });
    port
}

/// A client of one leg.
struct Client(UdpSocket);

impl Client {
    fn of(leg: &Value) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(leg["listen"].as_str().unwrap()).unwrap();
        socket
            .set_read_timeout(Some(Duration::from_millis(500)))
            .unwrap();
        Self(socket)
    }

    /// Whether a datagram comes back.
    fn is_answered(&self) -> bool {
        self.0.send(&[1; 100]).unwrap();
        self.0.recv(&mut [0; 200]).is_ok()
    }
}

/// A relay of two legs to `server`: the events that announce them come first.
fn two_legs(server: u16, flags: &[&str]) -> (Running, [Value; 2]) {
    let mut command = swiftwater();
    command
        .args(["relay", "--json", "--to", &format!("127.0.0.1:{server}")])
        .args(["--leg", "name=wifi,listen=127.0.0.1:0,rate=40mbit,rtt=2ms"])
        .args(["--leg", "name=lte,listen=127.0.0.1:0,rtt=10ms,loss=none"])
        .args(flags);
    let mut relay = Running::start(command);
    let legs = [relay.first.clone(), relay.next()];
    for (leg, name) in legs.iter().zip(["wifi", "lte"]) {
        assert_eq!(leg["event"], "listening");
        assert_eq!(leg["leg"], name);
    }
    (relay, legs)
}

/// The next event of this kind.
fn next(relay: &mut Running, event: &str) -> Value {
    loop {
        let row = relay.next();
        if row["event"] == event {
            return row;
        }
    }
}

#[test]
fn one_leg_is_cut_and_restored_while_the_other_works() {
    let changes = ["--change", "wifi,cut@100ms", "--change", "wifi,restore@2s"];
    let (mut relay, legs) = two_legs(echo(), &changes);
    let [wifi, lte] = [Client::of(&legs[0]), Client::of(&legs[1])];
    // Times count from here.
    assert!(wifi.is_answered());
    let cut = next(&mut relay, "changed");
    assert_eq!(
        (&cut["leg"], &cut["change"]),
        (&"wifi".into(), &"cut".into())
    );
    assert!(!wifi.is_answered());
    assert!(lte.is_answered());
    assert_eq!(next(&mut relay, "changed")["change"], "restore");
    assert!(wifi.is_answered());
}

#[test]
fn a_leg_may_fail_in_one_direction() {
    for (change, arrives) in [("wifi,cut-up@0s", 0), ("wifi,cut-down@0s", 1)] {
        let flags = ["--change", change, "--stats", "100ms"];
        let (mut relay, legs) = two_legs(echo(), &flags);
        // Begins the schedule.
        assert!(Client::of(&legs[1]).is_answered());
        next(&mut relay, "changed");
        assert!(!Client::of(&legs[0]).is_answered());
        let counters = loop {
            let row = next(&mut relay, "counters");
            if row["leg"] == "wifi" && row["up"]["packets"] == 1 {
                break row;
            }
        };
        assert_eq!(counters["up"]["delivered_packets"], arrives, "{counters}");
        assert_eq!(counters["down"]["packets"], arrives, "{counters}");
        assert_eq!(counters["down"]["delivered_packets"], 0, "{counters}");
    }
}

#[test]
fn the_address_of_a_client_may_choose_the_leg() {
    let server = echo();
    let mut command = swiftwater();
    command
        .args(["relay", "--json", "--to", &format!("127.0.0.1:{server}")])
        .args(["--leg", "name=wifi,listen=127.0.0.1:0"])
        .args(["--leg", "name=lte,from=127.0.0.2"])
        .args(["--change", "lte,cut@0s"]);
    let mut relay = Running::start(command);
    let wifi = relay.first.clone();
    let lte = relay.next();
    assert_eq!(lte["listen"], wifi["listen"]);
    assert_eq!(lte["from"], "127.0.0.2");
    let client = |ip: &str| {
        let socket = UdpSocket::bind((ip, 0)).unwrap();
        socket.connect(wifi["listen"].as_str().unwrap()).unwrap();
        let limit = Some(Duration::from_millis(500));
        socket.set_read_timeout(limit).unwrap();
        Client(socket)
    };
    let [first, second] = ["127.0.0.1", "127.0.0.2"].map(client);
    assert!(first.is_answered());
    next(&mut relay, "changed");
    assert!(!second.is_answered());
    assert!(first.is_answered());
}

#[test]
fn deliveries_are_recorded() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("deliveries.csv");
    let flags = ["--record", path.to_str().unwrap()];
    let (relay, legs) = two_legs(echo(), &flags);
    for leg in &legs {
        assert!(Client::of(leg).is_answered());
    }
    let lines = loop {
        let lines = fs::read_to_string(&path).unwrap();
        if lines.lines().count() == 5 {
            break lines;
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    drop(relay);
    let mut lines = lines.lines();
    assert_eq!(lines.next(), Some("ms,leg,direction,bytes"));
    let mut rows: Vec<_> = lines
        .map(|line| line.split_once(',').unwrap().1.to_owned())
        .collect();
    rows.sort();
    let expected = ["lte,down,100", "lte,up,100", "wifi,down,100", "wifi,up,100"];
    assert_eq!(rows, expected);
}

#[test]
fn impossible_legs_and_changes_are_refused() {
    let leg = "name=wifi,listen=127.0.0.1:0";
    for (flags, expected) in [
        (vec!["--leg", "rate=1mbit"], "listen="),
        (vec!["--leg", "from=127.0.0.2"], "listens"),
        (vec!["--leg", "nonsense"], "ecn-threshold"),
        (vec!["--leg", "listen=127.0.0.1:0,rate=fast"], "rate=fast"),
        (vec!["--leg", leg, "--leg", leg], "two legs"),
        (vec!["--leg", leg, "--listen", "127.0.0.1:0"], "--listen"),
        (vec!["--leg", leg, "--change", "lte,cut@1s"], "wifi"),
        (vec!["--leg", leg, "--change", "wifi,broken@1s"], "cut-up"),
        (vec!["--leg", leg, "--change", "delay:0.5@1s"], "1 to 1000"),
        (vec![], "--listen"),
    ] {
        let mut relay = swiftwater();
        relay.args(["relay", "--to", "127.0.0.1:1"]).args(&flags);
        let message = failed(&relay.output().unwrap(), 2);
        assert!(message.contains(expected), "{flags:?}: {message}");
    }
}
