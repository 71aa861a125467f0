//! Tunnels for IP packets into a TUN device, whose kernel answers: in a network namespace of its own, which needs root.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod packets;
mod stage;

use std::net::IpAddr;
use std::time::Duration;

use nix::sched::{CloneFlags, unshare};
use nix::unistd::geteuid;
use swiftwater_tunnel::client::{FromIpTunnel, IpTunnel};
use swiftwater_tunnel::device::TunDevice;
use swiftwater_tunnel::ip::{IpHeader, Scope};
use swiftwater_tunnel::policy::Prefix;
use swiftwater_tunnel::proxy::{IpNetwork, SystemResolver, TunnelProxy, interface_addresses};
use tokio::runtime::Handle;
use tokio::time::timeout;

use packets::{internet_checksum, packet};
use stage::{Stage, config, guard};

/// A device in a namespace that nothing else is in.
fn device(prefixes: Vec<Prefix>) -> TunDevice {
    let runtime = Handle::current();
    let making = std::thread::spawn(move || {
        unshare(CloneFlags::CLONE_NEWNET).unwrap();
        let _entered = runtime.enter();
        let own = interface_addresses(&prefixes).unwrap();
        TunDevice::open("tunnels", &own, 1400).unwrap()
    });
    making.join().unwrap()
}

/// An echo request (RFC 792; RFC 4443), of which `number` is the sequence number.
fn ping(from: IpAddr, to: IpAddr, number: u16) -> Vec<u8> {
    let mut message = vec![if from.is_ipv4() { 8 } else { 128 }, 0, 0, 0, 0, 7];
    message.extend(number.to_be_bytes());
    message.extend(b"content");
    let mut checked = Vec::new();
    if let (IpAddr::V6(from), IpAddr::V6(to)) = (from, to) {
        checked.extend(from.octets());
        checked.extend(to.octets());
        checked.extend((message.len() as u32).to_be_bytes());
        checked.extend([0, 0, 0, 58]);
    }
    checked.extend(&message);
    let sum = internet_checksum(&checked).to_be_bytes();
    message[2..4].copy_from_slice(&sum);
    let protocol = if from.is_ipv4() { 1 } else { 58 };
    packet(from, to, protocol, 64, &message)
}

/// The number of the next echo reply from `from`.
async fn reply(tunnel: &mut IpTunnel, from: IpAddr) -> u16 {
    loop {
        let FromIpTunnel::Packet(packet) = tunnel.recv().await.unwrap() else {
            continue;
        };
        let header = IpHeader::parse(&packet).unwrap();
        let message = &packet[header.length..];
        let is_reply = message[0] == if from.is_ipv4() { 0 } else { 129 };
        if header.source == from && is_reply {
            // The kernel begins with 64, the proxy takes one.
            assert_eq!(header.hop_limit, 63);
            return u16::from_be_bytes([message[6], message[7]]);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_kernel_answers() {
    if !geteuid().is_root() {
        eprintln!("not root: no network namespace, nothing is tested");
        return;
    }
    guard(async {
        let pools: Vec<Prefix> = ["198.18.77.0/24", "fd00:77::/64"]
            .map(|text| text.parse().unwrap())
            .to_vec();
        let network = IpNetwork::new(device(pools.clone()), &pools).unwrap();
        let mut config = config();
        config.policy.allowed.clone_from(&pools);
        let proxy = TunnelProxy::with_network(config, SystemResolver, &network);
        let stage = Stage::serving(proxy);
        let mut tunnel = stage.client().open_ip(&Scope::ANY).await.unwrap();
        while tunnel.sender().addresses().len() < 2 {
            tunnel.recv().await.unwrap();
        }
        let own = tunnel.sender().addresses();
        for (from, to) in own.iter().map(Prefix::address).zip(network.own_addresses()) {
            // An address of IPv6 is in use once it was looked for duplicates.
            let mut number = 0;
            let answered = loop {
                number += 1;
                tunnel.send(&ping(from, to, number)).await.unwrap();
                let waiting = timeout(Duration::from_millis(200), reply(&mut tunnel, to));
                if let Ok(answered) = waiting.await {
                    break answered;
                }
            };
            assert!((1..=number).contains(&answered));
        }
    })
    .await;
}
