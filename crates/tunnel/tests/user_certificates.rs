//! Users that present a certificate.

use std::sync::Arc;

use http::StatusCode;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use swiftwater_net::quic::TransportConfig;
use swiftwater_tls::ClientAuthorities;
use swiftwater_tls::pki_types::{CertificateDer, PrivateKeyDer};
use swiftwater_tunnel::client::TunnelClient;
use swiftwater_tunnel::proxy::{Access, Limits, ProxyConfig, TunnelProxy};

use crate::stage::{Stage, config, echo, guard, refused, token};

/// An authority of users.
struct Authority {
    certificate: CertificateDer<'static>,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    fn new() -> Self {
        let mut parameters = CertificateParams::default();
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let certificate = parameters.self_signed(&key).unwrap().der().clone();
        let issuer = Issuer::new(parameters, key);
        Self {
            certificate,
            issuer,
        }
    }

    fn issue(
        &self,
        common_name: Option<&str>,
    ) -> (CertificateDer<'static>, PrivateKeyDer<'static>) {
        let mut parameters = CertificateParams::default();
        parameters.distinguished_name = rcgen::DistinguishedName::new();
        if let Some(name) = common_name {
            parameters.distinguished_name.push(DnType::CommonName, name);
        }
        let key = KeyPair::generate().unwrap();
        let certificate = parameters.signed_by(&key, &self.issuer).unwrap();
        let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        (certificate.der().clone(), key)
    }

    fn accepted(&self) -> ClientAuthorities {
        ClientAuthorities::new([self.certificate.clone()], []).unwrap()
    }
}

/// A proxy for users with certificates of `authorities`, or with alice's token.
fn proxy(authorities: &Arc<ClientAuthorities>) -> TunnelProxy {
    proxy_for(authorities, None)
}

/// The same, for certificates with these subjects only.
fn proxy_for(authorities: &Arc<ClientAuthorities>, subjects: Option<&[&str]>) -> TunnelProxy {
    let subjects = subjects.map(|them| them.iter().map(ToString::to_string).collect());
    TunnelProxy::new(ProxyConfig {
        access: Access::Certificates {
            authorities: Arc::clone(authorities) as _,
            subjects: subjects.map(Arc::new),
            tokens: Arc::new([token()]),
        },
        limits: Limits {
            tunnels_per_user: 2,
            ..Limits::default()
        },
        ..config()
    })
}

fn stage(
    proxy: &TunnelProxy,
    authorities: &Arc<ClientAuthorities>,
    identity: Option<(CertificateDer<'static>, PrivateKeyDer<'static>)>,
) -> Stage {
    let transport = TransportConfig {
        initial_max_datagram_size: 1252,
        ..TransportConfig::default()
    };
    let asked = Arc::clone(authorities);
    Stage::with_tls(
        transport,
        proxy.clone(),
        |tls| tls.client_certificates(asked).unwrap(),
        |tls| match identity {
            Some((certificate, key)) => tls.identity(vec![certificate], key).unwrap(),
            None => tls,
        },
    )
}

/// The status and the Proxy-Status with which a tunnel is refused.
async fn refusal(client: &TunnelClient) -> (StatusCode, String) {
    refused(client.open(&echo().await).await)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_certificate_or_a_token_is_enough_and_nothing_is_not() {
    guard(async {
        let authority = Authority::new();
        let authorities = Arc::new(authority.accepted());
        let proxy = proxy(&authorities);
        let known = stage(&proxy, &authorities, Some(authority.issue(Some("bob"))));
        let mut tunnel = known.client_with(None).open(&echo().await).await.unwrap();
        tunnel.send(b"hello").await.unwrap();
        assert_eq!(tunnel.recv().await.unwrap(), "hello");
        let unknown = stage(&proxy, &authorities, None);
        let client = unknown.client_with(Some(&token()));
        client.open(&echo().await).await.unwrap();
        let (status, why) = refusal(&unknown.client_with(None)).await;
        assert_eq!(status, StatusCode::PROXY_AUTHENTICATION_REQUIRED);
        assert!(why.contains("neither a certificate nor"), "{why}");
        // Somebody, but who?
        let nameless = stage(&proxy, &authorities, Some(authority.issue(None)));
        let (status, _) = refusal(&nameless.client_with(None)).await;
        assert_eq!(status, StatusCode::PROXY_AUTHENTICATION_REQUIRED);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_of_subjects_excludes_others_with_a_certificate() {
    guard(async {
        let authority = Authority::new();
        let authorities = Arc::new(authority.accepted());
        let proxy = proxy_for(&authorities, Some(&["CN=bob"]));
        let target = echo().await;
        let bob = stage(&proxy, &authorities, Some(authority.issue(Some("bob"))));
        bob.client_with(None).open(&target).await.unwrap();
        let eve = stage(&proxy, &authorities, Some(authority.issue(Some("eve"))));
        let (status, why) = refusal(&eve.client_with(None)).await;
        assert_eq!(status, StatusCode::FORBIDDEN);
        assert!(why.contains("no user of this proxy"), "{why}");
        // A token is as good as ever.
        eve.client_with(Some(&token())).open(&target).await.unwrap();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_value_of_a_subject_reads_as_a_further_attribute() {
    guard(async {
        let authority = Authority::new();
        let authorities = Arc::new(authority.accepted());
        let proxy = proxy_for(&authorities, Some(&["CN=bob, O=Example", "CN=a\\, b\\=c"]));
        let target = echo().await;
        let identity = authority.issue(Some("bob, O=Example"));
        let pretender = stage(&proxy, &authorities, Some(identity));
        let (status, _) = refusal(&pretender.client_with(None)).await;
        assert_eq!(status, StatusCode::FORBIDDEN);
        let known = stage(&proxy, &authorities, Some(authority.issue(Some("a, b=c"))));
        known.client_with(None).open(&target).await.unwrap();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_with_one_subject_are_one_user() {
    guard(async {
        let authority = Authority::new();
        let authorities = Arc::new(authority.accepted());
        let proxy = proxy(&authorities);
        let target = echo().await;
        let mut tunnels = Vec::new();
        for _ in 0..2 {
            // The second certificate of the same user.
            let bob = stage(&proxy, &authorities, Some(authority.issue(Some("bob"))));
            tunnels.push(bob.client_with(None).open(&target).await.unwrap());
        }
        let bob = stage(&proxy, &authorities, Some(authority.issue(Some("bob"))));
        let (status, _) = refusal(&bob.client_with(None)).await;
        assert_eq!(status, StatusCode::TOO_MANY_REQUESTS);
        let carol = stage(&proxy, &authorities, Some(authority.issue(Some("carol"))));
        carol.client_with(None).open(&target).await.unwrap();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_open_connection_gets_no_tunnel_once_its_certificate_is_not_accepted() {
    guard(async {
        let authority = Authority::new();
        let authorities = Arc::new(authority.accepted());
        let bob = Some(authority.issue(Some("bob")));
        let stage = stage(&proxy(&authorities), &authorities, bob);
        let client = stage.client_with(None);
        let mut tunnel = client.open(&echo().await).await.unwrap();
        authorities.replace_with(&Authority::new().accepted());
        let (status, _) = refusal(&client).await;
        assert_eq!(status, StatusCode::PROXY_AUTHENTICATION_REQUIRED);
        // What is open stays.
        tunnel.send(b"still").await.unwrap();
        assert_eq!(tunnel.recv().await.unwrap(), "still");
    })
    .await;
}
