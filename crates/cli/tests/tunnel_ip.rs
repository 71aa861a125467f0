//! `tunnel` for IP packets: a network interface that leads through a proxy, in network namespaces of the test. They need
//! root, TUN devices and the program `ip`; elsewhere these tests say so and test nothing.

#![cfg(target_os = "linux")]

use crate::support;

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::thread;
use std::time::Duration;

use serde_json::Value;
use socket2::{Domain, Protocol, Socket, Type};
use tempfile::TempDir;

use crate::namespaces::Namespace;
use support::{Running, failed, swiftwater};

const TOKENS: &str = "alice a-secret-of-the-test\n";
/// The proxy, behind a router: not on the client's link.
const PROXY: &str = "10.78.0.1";
/// The target, which the client reaches through the proxy only.
const TARGET: [&str; 2] = ["198.51.100.2", "fd00:51::2"];
/// Another address of the client's side of the world that the proxy advertises.
const BESIDE_PROXY: &str = "10.78.0.9";
/// Addresses of IPv6 for the clients of the proxy.
const IPV6_POOL: &str = "fd00:77::/64";
/// A failure without an exit code of its own.
const FAILURE: i32 = 1;
const USAGE: i32 = 2;
const CONNECTION: i32 = 4;

/// A client, a proxy and a target, in a row.
struct Network {
    client: Namespace,
    proxy: Namespace,
    target: Namespace,
    directory: TempDir,
}

impl Network {
    /// `None`, which is printed, where there can be no such network.
    fn build() -> Option<Self> {
        let made =
            Namespace::new().and_then(|client| Ok((client, Namespace::new()?, Namespace::new()?)));
        let (client, proxy, target) = match made {
            Ok(made) => made,
            Err(why) => {
                println!("skipped: {why}");
                return None;
            }
        };
        client.link("c0", &proxy, "p0");
        proxy.link("p1", &target, "t0");
        client.ip("address add 10.77.0.2/24 dev c0");
        client.ip("route add default via 10.77.0.1");
        proxy.ip("address add 10.77.0.1/24 dev p0");
        proxy.ip(&format!("address add {PROXY}/32 dev lo"));
        proxy.ip("address add 198.51.100.1/24 dev p1");
        proxy.ip("address add fd00:51::1/64 dev p1 nodad");
        target.ip("address add 198.51.100.2/24 dev t0");
        target.ip("address add fd00:51::2/64 dev t0 nodad");
        target.ip("route add 198.18.5.0/24 via 198.51.100.1");
        target.ip("route add 198.18.6.0/24 via 198.51.100.1");
        target.ip("route add fd00:77::/64 via fd00:51::1");
        for setting in ["ipv4/ip_forward", "ipv6/conf/all/forwarding"] {
            proxy.run(|| fs::write(format!("/proc/sys/net/{setting}"), "1").unwrap());
        }
        let directory = TempDir::new().unwrap();
        fs::write(directory.path().join("tokens"), TOKENS).unwrap();
        Some(Self {
            client,
            proxy,
            target,
            directory,
        })
    }

    fn proxy(&self) -> Running {
        self.proxy_with_pools(&["198.18.5.0/24", IPV6_POOL])
    }

    /// How the client's kernel routes to `target`, or why not.
    fn way(&self, target: &str) -> String {
        let words = ["route", "get", target];
        let done = self
            .client
            .run(|| Command::new("ip").args(words).output().unwrap());
        let [way, error] = [done.stdout, done.stderr].map(|text| String::from_utf8(text).unwrap());
        way + &error
    }

    /// A proxy with these addresses for its clients.
    fn proxy_with_pools(&self, pools: &[&str]) -> Running {
        let mut command = swiftwater();
        command.args(["tunnel", "serve", "--json", "--grace", "500ms"]);
        command.args(["--listen", &format!("{PROXY}:4443")]);
        for pool in pools {
            command.args(["--ip-pool", pool]);
        }
        command.args(["--tun", "pool0"]);
        for allowed in ["198.51.100.0/24", "fd00:51::/64", "10.78.0.0/16"] {
            command.args(["--allow-target", allowed]);
        }
        command
            .arg("--tokens")
            .arg(self.directory.path().join("tokens"));
        command.arg("--state-dir").arg(self.directory.path());
        self.proxy.run(|| Running::start(command))
    }

    fn connect(&self, flags: &[&str]) -> Command {
        let mut command = swiftwater();
        command.args(["tunnel", "connect", "--json", "--tun", "sw0"]);
        command.arg(format!("{PROXY}:4443")).args(flags);
        let tokens = self.directory.path().join("tokens");
        command.arg("--token-file").arg(tokens);
        let certificate = self.directory.path().join("dev-cert.pem");
        command.args(["--insecure"]);
        assert!(certificate.exists());
        command
    }

    fn client(&self, flags: &[&str]) -> Running {
        let command = self.connect(flags);
        let client = self.client.run(|| Running::start(command));
        assert_eq!(client.first["event"], "listening");
        assert_eq!(
            (&client.first["kind"], &client.first["local"]),
            (&"ip".into(), &"sw0".into())
        );
        client
    }
}

fn texts(value: &Value) -> Vec<&str> {
    let items = value.as_array().unwrap().iter();
    items.map(|item| item.as_str().unwrap()).collect()
}

/// Sends echo requests from here until one is answered.
fn ping(target: &str) {
    let target: IpAddr = target.parse().unwrap();
    let (domain, protocol, request, reply) = match target {
        IpAddr::V4(_) => (Domain::IPV4, Protocol::ICMPV4, 8, 0),
        IpAddr::V6(_) => (Domain::IPV6, Protocol::ICMPV6, 128, 129),
    };
    let mut socket = Socket::new(domain, Type::RAW, Some(protocol)).unwrap();
    socket
        .set_read_timeout(Some(Duration::from_millis(200)))
        .unwrap();
    socket.connect(&SocketAddr::new(target, 0).into()).unwrap();
    let mut message = [request, 0, 0, 0, 0, 7, 0, 1];
    if target.is_ipv4() {
        // The sum over the message; of IPv6 the kernel makes it.
        let sum = !(u16::from_be_bytes([request, 0]) + 7 + 1);
        message[2..4].copy_from_slice(&sum.to_be_bytes());
    }
    for _ in 0..50 {
        socket.send(&message).unwrap();
        let mut buffer = [0; 128];
        match socket.read(&mut buffer) {
            // Of IPv4 the header is there, too.
            Ok(_) if buffer[if target.is_ipv4() { 20 } else { 0 }] == reply => return,
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => panic!("{target}: {error}"),
        }
    }
    panic!("{target} does not answer");
}

/// Starts servers of the target that send everything back, over TCP once a client has finished; their addresses.
fn echoes(address: &str) -> (SocketAddr, SocketAddr) {
    let address: IpAddr = address.parse().unwrap();
    let udp = UdpSocket::bind((address, 0)).unwrap();
    let tcp = TcpListener::bind((address, 0)).unwrap();
    let addresses = (udp.local_addr().unwrap(), tcp.local_addr().unwrap());
    thread::spawn(move || {
        let mut buffer = vec![0; 65536];
        while let Ok((len, peer)) = udp.recv_from(&mut buffer) {
            udp.send_to(&buffer[..len], peer).unwrap();
        }
    });
    thread::spawn(move || {
        for stream in tcp.incoming() {
            let mut stream = stream.unwrap();
            thread::spawn(move || {
                let mut content = Vec::new();
                stream.read_to_end(&mut content).unwrap();
                stream.write_all(&content).unwrap();
            });
        }
    });
    addresses
}

/// Sends datagrams of every one of `sizes` until each has come back unchanged.
fn exchange_udp(target: SocketAddr, sizes: &[usize]) {
    let any: SocketAddr = if target.is_ipv4() {
        "0.0.0.0:0"
    } else {
        "[::]:0"
    }
    .parse()
    .unwrap();
    let socket = UdpSocket::bind(any).unwrap();
    socket.connect(target).unwrap();
    socket
        .set_read_timeout(Some(Duration::from_millis(300)))
        .unwrap();
    for &size in sizes {
        let content: Vec<u8> = (0..size).map(|n| (n * 31 + size) as u8).collect();
        let came_back = (0..30).any(|_| {
            socket.send(&content).unwrap();
            let mut buffer = vec![0; 65536];
            socket
                .recv(&mut buffer)
                .is_ok_and(|len| buffer[..len] == content)
        });
        assert!(came_back, "{size} bytes to {target}");
    }
}

/// Sends 2 MB and checks that they come back.
fn exchange_tcp(target: SocketAddr) {
    let content: Vec<u8> = (0..2_000_000_u32).map(|n| (n >> 3) as u8).collect();
    let mut stream = TcpStream::connect(target).unwrap();
    let mut writing = stream.try_clone().unwrap();
    let sent = content.clone();
    let writer = thread::spawn(move || {
        writing.write_all(&sent).unwrap();
        writing.shutdown(Shutdown::Write).unwrap();
    });
    let mut received = Vec::new();
    stream.read_to_end(&mut received).unwrap();
    writer.join().unwrap();
    assert!(received == content);
}

#[test]
fn packets_pass_through_a_network_interface() {
    let Some(network) = Network::build() else {
        return;
    };
    let before = network.client.state();
    let proxy = network.proxy();
    for version in ["h3", "h2"] {
        let client = network.client(&["--http-version", version]);
        assert_eq!(client.first["http"], version);
        let addresses = texts(&client.first["addresses"]);
        assert!(addresses[0].starts_with("198.18.5."));
        let routes = texts(&client.first["routes"]);
        assert!(routes.contains(&"10.78.0.0/16") && routes.contains(&"1.0.0.0/8"));
        // An address of IPv6 needs a connection that is known to carry its packets.
        network
            .client
            .wait_for(|state| state.contains("fd00:51::/64 dev sw0"));
        let mtu = client.first["mtu"].as_u64().unwrap();
        assert!((1200..=1500).contains(&mtu), "{mtu}");
        // What the proxy advertises leads into the tunnel, the proxy itself does not.
        let way = |to: &str| network.client.ip(&format!("route get {to}"));
        assert!(way(TARGET[0]).contains("dev sw0") && way(BESIDE_PROXY).contains("dev sw0"));
        assert!(way(PROXY).contains("via 10.77.0.1 dev c0"));
        for address in TARGET {
            let (udp, tcp) = network.target.run(|| echoes(address));
            network.client.run(|| {
                ping(address);
                // The last one leaves in fragments.
                exchange_udp(udp, &[1, 1000, 1200, 3000]);
                exchange_tcp(tcp);
            });
        }
        // New settings of the proxy leave its device and tunnels as they are.
        assert!(
            Command::new("kill")
                .args(["-HUP", &proxy.id().to_string()])
                .status()
                .unwrap()
                .success()
        );
        network.client.run(|| ping(TARGET[0]));
        let ended = client.ended();
        assert!(ended["packets_sent"].as_u64().unwrap() > 1000);
        assert!(ended["packets_received"].as_u64().unwrap() > 1000);
        assert_eq!(network.client.state(), before);
    }
    assert!(network.proxy.state().contains("pool0"));
    assert_eq!(proxy.interrupt(), Some(0));
    assert!(!network.proxy.state().contains("pool0"));
}

#[test]
fn only_what_is_wanted_is_routed() {
    let Some(network) = Network::build() else {
        return;
    };
    let before = network.client.state();
    let _proxy = network.proxy();
    for (flags, routes) in [
        (["--tun-scope", TARGET[0]], ["198.51.100.2/32"]),
        (["--route", "198.51.0.0/16"], ["198.51.0.0/16"]),
    ] {
        let client = network.client(&flags);
        assert_eq!(texts(&client.first["routes"])[..], routes);
        network.client.run(|| ping(TARGET[0]));
        client.ended();
    }
    for (flags, exit, told) in [
        (
            ["--route", "203.0.113.0/24"],
            FAILURE,
            "none of the wanted routes",
        ),
        (
            ["--tun-scope", "203.0.113.0/24"],
            CONNECTION,
            "destination_ip_prohibited",
        ),
    ] {
        let mut refused = network.connect(&flags);
        let refused = network.client.run(|| refused.output().unwrap());
        let line = failed(&refused, exit);
        assert!(line.contains(told), "{line}");
    }
    assert_eq!(network.client.state(), before);
}

#[test]
fn a_client_ends_with_its_tunnel() {
    let Some(network) = Network::build() else {
        return;
    };
    let before = network.client.state();
    let proxy = network.proxy();
    let mut command = network.connect(&["--tun-retry-max-time", "0s"]);
    command.stdout(std::process::Stdio::null());
    let client = network.client.run(|| command.spawn().unwrap());
    network
        .client
        .wait_for(|state| state.contains("10.78.0.0/16 dev sw0"));
    // It does not wait for tunnels for ever.
    proxy.interrupt();
    let ended = client.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(CONNECTION));
    assert_eq!(network.client.state(), before);
}

#[test]
fn a_restart_of_the_proxy_ends_no_client() {
    let Some(network) = Network::build() else {
        return;
    };
    let before = network.client.state();
    for version in ["h3", "h2"] {
        let proxy = network.proxy();
        let mut client = network.client(&["--http-version", version]);
        network.client.run(|| ping(TARGET[0]));
        // It does not wait for tunnels for ever.
        proxy.interrupt();
        // Without the tunnel nothing takes another way.
        let way = network.client.ip(&format!("route get {}", TARGET[0]));
        assert!(way.contains("dev sw0"), "{way}");
        let proxy = network.proxy();
        network.client.run(|| ping(TARGET[0]));
        let again = client.next();
        assert_eq!(again["event"], "listening");
        assert_eq!(again["http"], version);
        client.ended();
        assert_eq!(proxy.interrupt(), Some(0));
        assert_eq!(network.client.state(), before);
    }
}

#[test]
fn the_machine_of_the_proxy_is_no_target() {
    /// Public addresses of the proxy's machine, the second one on that link, too, and one of nobody.
    const OWN: [&str; 3] = ["192.5.6.30", "192.5.6.31", "192.5.6.32"];
    let Some(network) = Network::build() else {
        return;
    };
    for own in &OWN[..2] {
        network.proxy.ip(&format!("address add {own}/24 dev p1"));
    }
    let listener = network
        .proxy
        .run(|| TcpListener::bind((OWN[1], 443)).unwrap());
    let proxy = network.proxy();
    let client = network.client(&[]);
    for own in &OWN[..2] {
        assert!(!network.way(own).contains("dev sw0"));
    }
    assert!(network.way(OWN[2]).contains("dev sw0"));
    client.ended();

    let mut command = swiftwater();
    command.args(["tunnel", "connect", "--json", "--insecure"]);
    command.args([
        &format!("{PROXY}:4443"),
        "-L",
        &format!("tcp:0:{}:443", OWN[1]),
    ]);
    command
        .arg("--token-file")
        .arg(network.directory.path().join("tokens"));
    let client = network.client.run(|| Running::start(command));
    let local = client.first["local"].as_str().unwrap();
    let mut received = Vec::new();
    network.client.run(|| {
        let mut stream = TcpStream::connect(local).unwrap();
        stream.write_all(b"hello").unwrap();
        let limit = Some(Duration::from_secs(10));
        stream.set_read_timeout(limit).unwrap();
        // It ends, or is reset.
        let _ = stream.read_to_end(&mut received);
    });
    assert_eq!(client.ended()["failed"], 1);
    listener.set_nonblocking(true).unwrap();
    assert_eq!(listener.accept().unwrap_err().kind(), ErrorKind::WouldBlock);
    assert_eq!(proxy.interrupt(), Some(0));
}

#[test]
fn nothing_leaves_outside_while_a_new_tunnel_begins() {
    let Some(network) = Network::build() else {
        return;
    };
    let before = network.client.state();
    for version in ["h3", "h2"] {
        let proxy = network.proxy();
        let mut client = network.client(&["--http-version", version]);
        network.client.run(|| ping(TARGET[0]));
        // There is no other way to addresses of IPv6, and this one comes later.
        while !network.way(TARGET[1]).contains("dev sw0") {
            thread::sleep(Duration::from_millis(10));
        }
        proxy.interrupt();
        // The addresses are other ones then.
        let proxy = network.proxy_with_pools(&["198.18.6.0/24", IPV6_POOL]);
        let listening = thread::spawn(move || (client.next(), client));
        while !listening.is_finished() {
            for target in TARGET {
                let way = network.way(target);
                assert!(way.contains("dev sw0"), "{way}");
            }
        }
        let (again, client) = listening.join().unwrap();
        assert_eq!(again["event"], "listening");
        let addresses = again["addresses"].to_string();
        assert!(addresses.contains("198.18.6."), "{addresses}");
        for _ in 0..20 {
            for target in TARGET {
                let way = network.way(target);
                assert!(way.contains("dev sw0"), "{way}");
            }
        }
        network.client.run(|| ping(TARGET[0]));
        client.ended();
        assert_eq!(proxy.interrupt(), Some(0));
        assert_eq!(network.client.state(), before);
    }
}

#[test]
fn a_version_of_ip_that_the_new_tunnel_lacks_does_not_leave_outside() {
    let Some(network) = Network::build() else {
        return;
    };
    let proxy = network.proxy();
    let mut client = network.client(&[]);
    network.client.run(|| ping(TARGET[0]));
    proxy.interrupt();
    let proxy = network.proxy_with_pools(&[IPV6_POOL]);
    assert_eq!(client.next()["event"], "listening");
    network.client.run(|| ping(TARGET[1]));
    for target in TARGET {
        let way = network.way(target);
        assert!(way.contains("dev sw0"), "{way}");
    }
    proxy.interrupt();
    // It has an address of IPv4 again.
    let proxy = network.proxy();
    assert_eq!(client.next()["event"], "listening");
    network.client.run(|| ping(TARGET[0]));
    client.ended();
    assert_eq!(proxy.interrupt(), Some(0));
}

/// The message of a program that runs as an ordinary user; `None` if it can't.
fn as_ordinary_user(mut command: Command) -> Option<String> {
    if nix::unistd::geteuid().is_root() {
        command.uid(65534).gid(65534);
    }
    match command.output() {
        Ok(output) => Some(failed(&output, FAILURE)),
        Err(error) => {
            println!("skipped: an ordinary user can't run the program: {error}");
            None
        }
    }
}

#[test]
fn permission_is_asked_for_in_one_line() {
    let directory = TempDir::new().unwrap();
    let mut connect = swiftwater();
    connect.args([
        "tunnel",
        "connect",
        "127.0.0.1:1",
        "--tun",
        "sw0",
        "--insecure",
    ]);
    let mut serve = swiftwater();
    serve.args([
        "tunnel",
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--proxy-for-anyone",
    ]);
    serve.args(["--ip-pool", "198.18.0.0/16"]);
    serve.arg("--state-dir").arg(directory.path());
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o777)).unwrap();
    for command in [connect, serve] {
        let Some(line) = as_ordinary_user(command) else {
            return;
        };
        assert!(line.contains("cannot make the TUN device"), "{line}");
    }
}

#[test]
fn wrong_settings_of_ip_tunnels_are_usage_errors() {
    for (flags, told) in [
        (&["--ip-pool", "198.18.0.0/31"][..], "too small"),
        (
            &["--ip-pool", "198.18.0.0/16", "--ip-pool", "198.19.0.0/16"],
            "one prefix of each version",
        ),
        (
            &["--ip-pool", "198.18.0.0/16", "--tun", "a/b"],
            "network interface",
        ),
    ] {
        let mut serve = swiftwater();
        serve
            .args(["tunnel", "serve", "--proxy-for-anyone", "--check-config"])
            .args(flags);
        let line = failed(&serve.output().unwrap(), USAGE);
        assert!(line.contains(told), "{line}");
    }
    // A check makes no device, and so needs no permission.
    let directory = TempDir::new().unwrap();
    let mut check = swiftwater();
    check.args([
        "tunnel",
        "serve",
        "--proxy-for-anyone",
        "--check-config",
        "--ip-pool",
        "198.18.0.0/16",
    ]);
    check.arg("--state-dir").arg(directory.path());
    support::succeeded(&check.output().unwrap());
}
