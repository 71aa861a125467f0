//! Resumption and early data on real sockets.

use std::sync::Arc;
use std::time::Duration;

use crate::loopback::{LOOPBACK, NAME, endpoint_config, guard, noise};
use swiftwater_net::quic::{
    ClientConfig, EarlyData, EarlyDataOutcome, RetryPolicy, ServerConfig, TransportConfig,
};
use swiftwater_net::{Connection, Endpoint, EndpointOptions};
use swiftwater_tls::{ClientTls, DevCertificate, MemorySessionStore, ServerTls, Tickets};

/// A server that answers each stream with the same bytes and reports what was early data, and a client.
fn ends(policy: EarlyData) -> (Endpoint, Endpoint, ClientConfig) {
    let certificate = DevCertificate::generate([NAME]).unwrap();
    let tls = ServerTls::from_dev_certificate(&certificate)
        .unwrap()
        .alpn(["test"])
        .tickets(Tickets::SingleUse { capacity: 10 })
        .unwrap()
        .early_data(true);
    let transport = Arc::new(TransportConfig::default());
    let server = ServerConfig {
        retry: RetryPolicy::Never,
        early_data: policy,
        ..ServerConfig::new(Arc::new(tls), Arc::clone(&transport))
    };
    let tls = ClientTls::with_roots([certificate.certificate_der()])
        .unwrap()
        .alpn(["test"])
        .sessions(Arc::new(MemorySessionStore::default()))
        .early_data(true);
    let config = ClientConfig {
        crypto: Arc::new(tls),
        transport,
    };
    let options = EndpointOptions::new(endpoint_config(1), [1; 32]).server(server);
    let server = Endpoint::bind(LOOPBACK.parse().unwrap(), options).unwrap();
    let client = Endpoint::client(LOOPBACK.parse().unwrap(), endpoint_config(2), [2; 32]).unwrap();
    let acceptor = server.clone();
    tokio::spawn(async move {
        while let Some(connection) = acceptor.accept().await {
            tokio::spawn(echo(connection));
        }
    });
    (server, client, config)
}

/// Answers with a byte for whether the request was early data, then the request.
async fn echo(connection: Connection) {
    while let Ok((mut send, mut recv)) = connection.accept_bi().await {
        let mut first = [0];
        recv.read_exact(&mut first).await.unwrap();
        let early = u8::from(recv.is_early_data());
        let rest = recv.read_to_end(1 << 20).await.unwrap();
        send.write_all(&[early]).await.unwrap();
        send.write_all(&first).await.unwrap();
        send.write_all(&rest).await.unwrap();
        send.finish().unwrap();
    }
}

async fn ask(connection: &Connection, seed: u64) -> u8 {
    let data = noise(5_000, seed);
    let (mut send, mut recv) = connection.open_bi().await.unwrap();
    send.write_all(&data).await.unwrap();
    send.finish().unwrap();
    let answer = recv.read_to_end(10_000).await.unwrap();
    assert!(answer[1..] == data);
    answer[0]
}

async fn first_visit(server: &Endpoint, client: &Endpoint, config: &ClientConfig) {
    let connecting = client.connect(config, server.local_addr(), NAME).unwrap();
    let connection = connecting.into_early().unwrap_err().await.unwrap();
    assert_eq!(ask(&connection, 1).await, 0);
    connection.handshake_confirmed().await.unwrap();
    assert_eq!(connection.early_data().await, Ok(None));
    assert!(!connection.stats().resumed);
    // Tickets follow the confirmation, if they don't come with it.
    tokio::time::sleep(Duration::from_millis(100)).await;
}

// On one thread, so that a request is written before the handshake goes on.
#[tokio::test]
async fn the_second_visit_needs_no_handshake_first() {
    guard(async {
        let (server, client, config) = ends(EarlyData::Accept);
        first_visit(&server, &client, &config).await;
        let connecting = client.connect(&config, server.local_addr(), NAME).unwrap();
        let connection = connecting.into_early().unwrap();
        assert!(connection.is_handshaking());
        assert_eq!(ask(&connection, 2).await, 1);
        let outcome = connection.early_data().await;
        assert_eq!(outcome, Ok(Some(EarlyDataOutcome::Accepted)));
        assert!(connection.stats().resumed);
        assert_eq!(ask(&connection, 3).await, 0);
        client.close(0, b"");
        server.close(0, b"");
    })
    .await;
}

// On one thread, so that a request is written before the handshake goes on.
#[tokio::test]
async fn rejected_requests_are_asked_again_by_themselves() {
    guard(async {
        let (server, client, config) = ends(EarlyData::Reject);
        first_visit(&server, &client, &config).await;
        let connecting = client.connect(&config, server.local_addr(), NAME).unwrap();
        let connection = connecting.into_early().unwrap();
        assert_eq!(ask(&connection, 2).await, 0);
        let outcome = connection.early_data().await;
        assert_eq!(outcome, Ok(Some(EarlyDataOutcome::Rejected)));
        client.close(0, b"");
        server.close(0, b"");
    })
    .await;
}
