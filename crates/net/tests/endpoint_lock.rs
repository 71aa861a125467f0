//! Packets are processed without the endpoint's lock: whatever runs on a connection may use the endpoint.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use crate::loopback::{LOOPBACK, Pair, configs_with, echo, endpoint_config, noise};
use swiftwater_net::quic::TransportConfig;
use swiftwater_net::quic::observe::{Observation, Observer, ObserverFactory};
use swiftwater_net::{Endpoint, EndpointOptions};
use swiftwater_units::{Instant, Side};

/// Makes observers that use the endpoint whenever a packet is processed, once there is one.
#[derive(Debug, Default)]
struct Using {
    endpoint: Mutex<Option<Endpoint>>,
    used: AtomicU64,
}

#[derive(Debug)]
struct Factory(Arc<Using>);

struct EndpointUser(Arc<Using>);

impl ObserverFactory for Factory {
    fn observer(&self, _: Side) -> Option<Box<dyn Observer>> {
        Some(Box::new(EndpointUser(Arc::clone(&self.0))))
    }
}

impl Observer for EndpointUser {
    fn observe(&mut self, _: Instant, observation: &Observation<'_>) {
        if !matches!(observation, Observation::PacketReceived { .. }) {
            return;
        }
        let endpoint = self.0.endpoint.lock().unwrap().clone();
        if let Some(endpoint) = endpoint {
            assert!(endpoint.stats().datagrams_sent > 0);
            assert!(endpoint.local_addr().port() > 0);
            endpoint.set_server_config(None);
            self.0.used.fetch_add(1, Ordering::Relaxed);
        }
    }
}

async fn use_the_endpoint() {
    let using = Arc::new(Using::default());
    let observed = TransportConfig {
        observer: Some(Arc::new(Factory(Arc::clone(&using)))),
        ..TransportConfig::default()
    };
    let (server, client) = configs_with(observed, TransportConfig::default());
    let options = EndpointOptions::new(endpoint_config(1), [1; 32]).server(server);
    let pair = Pair::on(LOOPBACK, LOOPBACK, options, client);
    let (client, server) = pair.connect().await;
    tokio::spawn(echo(server));
    *using.endpoint.lock().unwrap() = Some(pair.server.clone());
    let data = noise(200_000, 1);
    let (mut send, mut recv) = client.open_bi().await.unwrap();
    let writing = async {
        send.write_all(&data).await.unwrap();
        send.finish().unwrap();
    };
    let ((), read) = tokio::join!(writing, recv.read_to_end(data.len()));
    assert!(read.unwrap() == data);
    using.endpoint.lock().unwrap().take();
    assert!(using.used.load(Ordering::Relaxed) > 0);
}

#[test]
fn an_observer_of_packets_uses_the_endpoint() {
    let (done, finished) = mpsc::channel();
    let runner = thread::spawn(move || {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_all().build().unwrap();
        runtime.block_on(use_the_endpoint());
        done.send(()).unwrap();
    });
    // A thread that waits for a lock it holds itself can't be interrupted.
    match finished.recv_timeout(Duration::from_secs(60)) {
        Err(mpsc::RecvTimeoutError::Timeout) => panic!("the worker waits for its own lock"),
        _ => runner.join().unwrap(),
    }
}
