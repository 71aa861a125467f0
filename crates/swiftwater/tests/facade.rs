//! Client and server through the public API.

use std::future::Future;
use std::time::Duration;

use swiftwater::congestion;
use swiftwater::{
    BuildError, CertificateDer, Client, ClientBuilder, ClientError, Connection, ConnectionError,
    DevCertificate, Profile, Server, ServerBuilder, TransportConfig,
};

async fn guard<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(60), work)
        .await
        .expect("the test hangs")
}

/// Closing lasts three probe timeouts, which without an RTT sample are those of the assumed RTT.
fn nearby(transport: &mut TransportConfig) {
    transport.initial_rtt = Duration::from_millis(20);
}

fn server(
    change: impl FnOnce(ServerBuilder) -> ServerBuilder,
) -> (Server, CertificateDer<'static>) {
    let certificate = DevCertificate::generate(["localhost", "127.0.0.1"]).unwrap();
    let builder = Server::builder()
        .dev_certificate(&certificate)
        .alpn(["test"])
        .transport(nearby);
    let server = change(builder)
        .bind("127.0.0.1:0".parse().unwrap())
        .unwrap();
    (server, certificate.certificate_der())
}

fn client() -> ClientBuilder {
    Client::builder().alpn(["test"]).transport(nearby)
}

async fn connect(
    server: &Server,
    client: &Client,
) -> Result<(Connection, Connection), ClientError> {
    let address = format!("127.0.0.1:{}", server.local_addr().port());
    let ours = client.connect(&address).await?;
    Ok((
        ours,
        server.accept().await.expect("the server is not closed"),
    ))
}

#[tokio::test]
async fn every_profile_and_controller_carries_data() {
    guard(async {
        for profile in Profile::ALL {
            for name in &congestion::names() {
                let (server, certificate) =
                    server(|builder| builder.profile(profile).congestion(name));
                let client = client()
                    .profile(profile)
                    .congestion(name)
                    .trust_only([certificate]);
                let client = client.build().unwrap();
                let (ours, theirs) = connect(&server, &client).await.unwrap();
                let mut send = ours.open_uni().await.unwrap();
                send.write_all(&vec![3; 50_000]).await.unwrap();
                send.finish().unwrap();
                let mut recv = theirs.accept_uni().await.unwrap();
                assert_eq!(recv.read_to_end(50_000).await.unwrap(), vec![3; 50_000]);
                assert_eq!(ours.stats().paths[0].controller, name);
                client.close().await;
                server.close().await;
            }
        }
    })
    .await;
}

#[test]
fn live_starts_with_32_packets_and_250_ms() {
    let live = Profile::Live.transport();
    assert_eq!(live.initial_window, Some((32 * 1200).into()));
    assert_eq!(live.initial_rtt, Duration::from_millis(250));
    assert_eq!(live.controller.name(), "bbr1-xquic");
    let web = Profile::Web.transport();
    assert_eq!(
        (web.initial_window, web.initial_rtt),
        (None, Duration::from_millis(333))
    );
}

#[test]
fn video_profiles_repair_losses_with_replicas() {
    let repairs = |profile: Profile| {
        let reinjector = profile.transport().policies.reinjector();
        !reinjector.is_inert()
    };
    assert_eq!(
        Profile::ALL.map(repairs),
        [false, true, true, false],
        "web, live, interactive, bulk"
    );
}

#[test]
fn profiles_have_names() {
    for profile in Profile::ALL {
        assert_eq!(profile.to_string().parse(), Ok(profile));
    }
    assert_eq!("LIVE".parse(), Ok(Profile::Live));
    assert!("fast".parse::<Profile>().is_err());
}

#[tokio::test]
async fn certificates_are_verified_by_default() {
    guard(async {
        let (server, certificate) = server(|builder| builder);
        // A platform without any authority is allowed to refuse earlier.
        if let Ok(stranger) = client().build() {
            let error = connect(&server, &stranger).await.unwrap_err();
            assert!(matches!(
                error,
                ClientError::Connection(ConnectionError::Transport(_))
            ));
        }
        for builder in [
            client().trust(certificate),
            client().dangerous_accept_any_certificate(),
        ] {
            let client = builder.build().unwrap();
            connect(&server, &client).await.unwrap();
            client.close().await;
        }
        server.close().await;
    })
    .await;
}

#[tokio::test]
async fn the_name_is_part_of_the_proof() {
    guard(async {
        let (server, certificate) = server(|builder| builder);
        let client = client().trust_only([certificate]).build().unwrap();
        let error = client
            .connect_to(server.local_addr(), "example.org")
            .await
            .unwrap_err();
        assert!(matches!(
            error,
            ClientError::Connection(ConnectionError::Transport(_))
        ));
        client
            .connect_to(server.local_addr(), "localhost")
            .await
            .unwrap();
        server.close().await;
    })
    .await;
}

#[tokio::test]
async fn addresses_that_do_not_answer_are_passed_over() {
    guard(async {
        let (server, certificate) = server(|builder| builder);
        let client = client().trust_only([certificate]);
        // Without passing over, nothing would happen for an hour.
        let client = client
            .transport(|transport| transport.handshake_timeout = Duration::from_secs(3600))
            .build()
            .unwrap();
        let silent = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let nowhere = "0.0.0.0:1".parse().unwrap();
        let addresses = vec![nowhere, silent.local_addr().unwrap(), server.local_addr()];
        let connection = client.connect_any(addresses, "localhost").await.unwrap();
        assert_eq!(connection.remote_address(), server.local_addr());
        let error = client
            .connect_any(vec![nowhere], "localhost")
            .await
            .unwrap_err();
        assert!(matches!(error, ClientError::Connect(_)), "{error}");
        let error = client.connect_any(vec![], "localhost").await.unwrap_err();
        assert!(matches!(error, ClientError::NoAddress(_)), "{error}");
        server.close().await;
    })
    .await;
}

#[tokio::test]
async fn protocols_must_match() {
    guard(async {
        let (server, certificate) = server(|builder| builder);
        let client = Client::builder()
            .alpn(["other"])
            .trust_only([certificate])
            .build()
            .unwrap();
        let error = client
            .connect_to(server.local_addr(), "localhost")
            .await
            .unwrap_err();
        let ClientError::Connection(ConnectionError::PeerTransport(error)) = error else {
            panic!("{error}");
        };
        // no_application_protocol (RFC 7301), as a QUIC code.
        assert_eq!(error.code, swiftwater::quic::wire::ErrorCode::crypto(120));
        server.close().await;
    })
    .await;
}

#[tokio::test]
async fn retry_is_transparent() {
    guard(async {
        let (server, certificate) =
            server(|builder| builder.retry(swiftwater::RetryPolicy::Always));
        let client = client().trust_only([certificate]).build().unwrap();
        connect(&server, &client).await.unwrap();
        assert_eq!(server.endpoint().stats().routing.retries_sent, 1);
        server.close().await;
    })
    .await;
}

#[tokio::test]
async fn mistakes_are_told() {
    guard(async {
        let any = "127.0.0.1:0".parse().unwrap();
        let error = Server::builder().bind(any).unwrap_err();
        assert!(matches!(error, BuildError::NoCertificate));
        let missing = Server::builder().certificate_files("no/such.pem", "no/such.key");
        let error = missing.bind(any).unwrap_err();
        assert!(error.to_string().contains("no/such.pem"), "{error}");
        let garbage = Server::builder()
            .certificate_pem("nothing", "nothing")
            .bind(any);
        assert!(matches!(garbage, Err(BuildError::Tls(_))));
        let error = client().congestion("warp").build().unwrap_err();
        assert!(error.to_string().contains("cubic"), "{error}");

        let (server, certificate) = server(|builder| builder);
        let taken = Server::builder().tls(
            swiftwater::tls::ServerTls::from_dev_certificate(
                &DevCertificate::generate(["localhost"]).unwrap(),
            )
            .unwrap(),
        );
        let error = taken.bind(server.local_addr()).unwrap_err();
        assert!(
            error.to_string().contains(&server.local_addr().to_string()),
            "{error}"
        );

        let client = client().trust_only([certificate]).build().unwrap();
        for address in ["localhost", "localhost:http", ":4433"] {
            let error = client.connect(address).await.unwrap_err();
            assert!(matches!(error, ClientError::Address(_)), "{error}");
        }
        // Too long for a DNS query, so that no name server is involved.
        let impossible = format!("{}:1", "x".repeat(300));
        let error = client.connect(&impossible).await.unwrap_err();
        assert!(matches!(error, ClientError::Resolve { .. }), "{error}");
    })
    .await;
}

#[tokio::test]
async fn pem_files_work() {
    guard(async {
        let certificate = DevCertificate::generate(["localhost"]).unwrap();
        let builder = Server::builder()
            .certificate_pem(certificate.certificate_pem(), certificate.private_key_pem())
            .alpn(["test"])
            .transport(nearby);
        let server = builder.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let client = client()
            .trust_only([certificate.certificate_der()])
            .build()
            .unwrap();
        client
            .connect_to(server.local_addr(), "localhost")
            .await
            .unwrap();
        server.close().await;
    })
    .await;
}

#[tokio::test]
async fn policies_and_logs_are_checked_when_the_endpoint_is_made() {
    let unknown = client().recovery("wishful").build().unwrap_err();
    assert!(matches!(unknown, BuildError::Recovery(_)), "{unknown}");
    let file = std::env::current_exe().unwrap();
    let taken = client().qlog(&file).build().unwrap_err();
    assert!(matches!(taken, BuildError::Qlog { .. }), "{taken}");
    for name in swiftwater::policies::names() {
        drop(client().recovery(&name).build().unwrap());
    }
}

/// Workers, connection IDs, secrets and accept policy through the builder.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_server_decides_at_the_door_and_has_workers() {
    use std::sync::Arc;
    use swiftwater::quic::{AcceptDecision, Incoming, QuicLbCids, QuicLbCodec, QuicLbFormat};
    use swiftwater::tls::{Aes128Block, EndpointSecrets};

    guard(async {
        let cipher = Arc::new(Aes128Block::new([3; 16]));
        let codec = QuicLbCodec::new(QuicLbFormat::default(), Some(cipher)).unwrap();
        let cids = QuicLbCids::new(codec, &[42]).unwrap();
        let mut bulk = TransportConfig::default();
        nearby(&mut bulk);
        bulk.controller = congestion::by_name("newreno").unwrap();
        let bulk = Arc::new(bulk);
        let nobody = DevCertificate::generate(["nobody"]).unwrap();
        let unwelcome = client()
            .trust_only([nobody.certificate_der()])
            .build()
            .unwrap();
        let shunned = unwelcome.endpoint().local_addr().port();
        let (server, certificate) = server(|builder| {
            builder
                .workers(2)
                .connection_ids(cids)
                .secrets(EndpointSecrets::random())
                .accept_policy(move |incoming: &Incoming| {
                    if incoming.remote.port() == shunned {
                        AcceptDecision::Refuse
                    } else {
                        AcceptDecision::AcceptWith(Arc::clone(&bulk))
                    }
                })
        });
        let address = server.local_addr();
        assert_eq!(server.endpoint().worker_stats().len(), 2);
        assert!(unwelcome.connect_to(address, "localhost").await.is_err());
        let client = client().trust_only([certificate]).build().unwrap();
        let connecting = client.connect_to(address, "localhost");
        let (connection, accepted) = tokio::join!(connecting, server.accept());
        let (_connection, accepted) = (connection.unwrap(), accepted.unwrap());
        assert_eq!(accepted.stats().paths[0].controller, "newreno");
        assert_eq!(server.endpoint().stats().routing.refused, 1);
    })
    .await;
}

#[tokio::test]
async fn versions_of_quic_are_chosen_by_the_server_and_fallen_back_to() {
    use swiftwater::{VERSION_1, VERSION_2};

    guard(async {
        for (servers, clients, expected) in [
            (
                vec![VERSION_1, VERSION_2],
                vec![VERSION_1, VERSION_2],
                VERSION_1,
            ),
            (
                vec![VERSION_2, VERSION_1],
                vec![VERSION_1, VERSION_2],
                VERSION_2,
            ),
            (vec![VERSION_1, VERSION_2], vec![VERSION_2], VERSION_2),
            // The server doesn't support the version that the client starts with.
            (vec![VERSION_2], vec![VERSION_1, VERSION_2], VERSION_2),
            (vec![VERSION_1], vec![VERSION_2, VERSION_1], VERSION_1),
        ] {
            let (server, certificate) = server(|builder| builder.versions(servers));
            let client = client()
                .trust_only([certificate])
                .versions(clients)
                .build()
                .unwrap();
            let (ours, theirs) = connect(&server, &client).await.unwrap();
            for connection in [&ours, &theirs] {
                assert_eq!(connection.stats().version, expected);
            }
            let mut stream = ours.open_uni().await.unwrap();
            stream.write_all(b"hello").await.unwrap();
            stream.finish().unwrap();
            let mut stream = theirs.accept_uni().await.unwrap();
            assert_eq!(stream.read_to_end(100).await.unwrap(), b"hello"[..]);
            client.close().await;
        }
    })
    .await;
}

#[tokio::test]
async fn versions_that_are_not_supported_are_refused() {
    let client = client().versions([7]).build();
    assert!(matches!(client, Err(BuildError::Version(7))));
}

#[tokio::test]
async fn clients_begin_only_in_a_version_that_they_support() {
    use swiftwater::{VERSION_1, VERSION_2};

    let chosen = |first| client().versions([VERSION_2]).first_version(first).build();
    assert!(chosen(VERSION_2).is_ok());
    assert!(matches!(
        chosen(VERSION_1),
        Err(BuildError::Version(VERSION_1))
    ));
}

#[tokio::test]
async fn servers_leave_room_for_reports_to_a_client_with_tecc() {
    guard(async {
        let (server, certificate) = server(ServerBuilder::tecc);
        let largest = async |change: fn(ClientBuilder) -> ClientBuilder| {
            let client = change(client().trust_only([certificate.clone()]));
            let client = client.build().unwrap();
            let (ours, theirs) = connect(&server, &client).await.unwrap();
            // Loopback carries all packets of the search for larger datagrams.
            let (sent, received) = tokio::join!(
                async {
                    let mut stream = theirs.open_uni().await.unwrap();
                    stream.write_all(&vec![0; 1_000_000]).await.unwrap();
                    stream.finish().unwrap();
                },
                async {
                    let mut stream = ours.accept_uni().await.unwrap();
                    stream.read_to_end(1_000_000).await.unwrap().len()
                }
            );
            assert_eq!((sent, received), ((), 1_000_000));
            theirs.stats().paths[0].max_datagram_size
        };
        assert!(largest(|builder| builder).await > 1_400);
        let limited = largest(ClientBuilder::tecc).await;
        assert!((1_200..=1_334).contains(&limited), "{limited}");
    })
    .await;
}
