//! Certificates of clients: users of a proxy, and sites for known clients.

#![cfg(unix)]

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, DnType,
    ExtendedKeyUsagePurpose, IsCa, Issuer, KeyIdMethod, KeyPair, KeyUsagePurpose,
    RevokedCertParams, SerialNumber, date_time_ymd,
};
use tempfile::TempDir;

use crate::support::{Running, Site, failed, run, succeeded};
use crate::tunnel_proxy::TunnelProxy;

const SECRET: &str = "a-secret-of-the-test";

const USAGE: i32 = 2;
const CONNECTION: i32 = 4;

/// Every version of HTTP to the proxy.
const VERSIONS: [&str; 3] = ["h3", "h2", "h1"];

/// The serial number of the certificate that becomes revoked.
const REVOKED: u64 = 7;

/// An authority of clients, whose files are in a directory.
struct Authority {
    directory: TempDir,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    fn new() -> Self {
        let directory = TempDir::new().unwrap();
        let mut parameters = CertificateParams::default();
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        parameters.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let directory_name = directory.path().to_str().unwrap();
        parameters
            .distinguished_name
            .push(DnType::OrganizationName, directory_name);
        let key = KeyPair::generate().unwrap();
        let certificate = parameters.self_signed(&key).unwrap();
        fs::write(directory.path().join("ca.pem"), certificate.pem()).unwrap();
        let authority = Self {
            directory,
            issuer: Issuer::new(parameters, key),
        };
        authority.revoke(&[]);
        authority
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Writes `NAME.pem` and `NAME.key` of a certificate that expires at the end of the year before `until`.
    fn issue(&self, name: &str, serial: u64, until: i32) {
        let mut parameters = CertificateParams::default();
        parameters.distinguished_name.push(DnType::CommonName, name);
        parameters.serial_number = Some(SerialNumber::from(serial));
        parameters.not_before = date_time_ymd(2015, 1, 1);
        parameters.not_after = date_time_ymd(until, 1, 1);
        parameters.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let key = KeyPair::generate().unwrap();
        let certificate = parameters.signed_by(&key, &self.issuer).unwrap();
        fs::write(self.path(&format!("{name}.pem")), certificate.pem()).unwrap();
        fs::write(self.path(&format!("{name}.key")), key.serialize_pem()).unwrap();
    }

    /// Writes the list of revoked certificates, `crl.pem`.
    fn revoke(&self, serials: &[u64]) {
        let revoked = serials.iter().map(|&serial| RevokedCertParams {
            serial_number: SerialNumber::from(serial),
            revocation_time: date_time_ymd(2020, 1, 1),
            reason_code: None,
            invalidity_date: None,
        });
        let list = CertificateRevocationListParams {
            this_update: date_time_ymd(2020, 1, 1),
            next_update: date_time_ymd(2120, 1, 1),
            crl_number: SerialNumber::from(1),
            issuing_distribution_point: None,
            revoked_certs: revoked.collect(),
            key_identifier_method: KeyIdMethod::Sha256,
        };
        let list = list.signed_by(&self.issuer).unwrap();
        fs::write(self.path("crl.pem"), list.pem().unwrap()).unwrap();
    }
}

/// A proxy for users with certificates.
fn proxy(authority: &Authority, flags: &[&str]) -> TunnelProxy {
    let (ca, crl) = (authority.path("ca.pem"), authority.path("crl.pem"));
    let (ca, crl) = (ca.to_str().unwrap(), crl.to_str().unwrap());
    let flags = [&["--client-ca", ca, "--client-crl", crl], flags].concat();
    TunnelProxy::start(&[("tokens", &format!("alice {SECRET}\n"))], &flags)
}

/// A download from `site` through the proxy, as the user whose certificate is `NAME.pem`.
fn get(
    proxy: &TunnelProxy,
    site: &Site,
    version: &str,
    user: Option<(&Authority, &str)>,
) -> Command {
    let mut get = proxy.get(site, &site.url("/file"));
    get.args(["--proxy-http-version", version]);
    if let Some((authority, name)) = user {
        get.arg("--proxy-cert")
            .arg(authority.path(&format!("{name}.pem")));
        get.arg("--proxy-key")
            .arg(authority.path(&format!("{name}.key")));
    }
    get
}

fn hang_up(proxy: &mut TunnelProxy) {
    let pid = proxy.server.id().to_string();
    let kill = Command::new("kill").args(["-HUP", &pid]).status();
    assert!(kill.unwrap().success());
    while proxy.server.next()["event"] != "reloaded" {}
}

/// The only line of an error.
#[track_caller]
fn refused(output: &Output) -> String {
    let error = failed(output, CONNECTION);
    assert_eq!(error.trim_end().lines().count(), 1, "{error}");
    error
}

#[test]
fn users_are_known_by_their_certificates_over_every_version_of_http() {
    let site = Site::start(&[("file", b"content")]);
    let (authority, foreign) = (Authority::new(), Authority::new());
    authority.issue("bob", 1, 2100);
    authority.issue("expired", 2, 2020);
    authority.issue("gone", REVOKED, 2100);
    authority.revoke(&[REVOKED]);
    foreign.issue("bob", 1, 2100);
    let proxy = proxy(&authority, &[]);
    for version in VERSIONS {
        let get = |user| get(&proxy, &site, version, user).output().unwrap();
        succeeded(&get(Some((&authority, "bob"))));
        let content = fs::read(site.path("received")).unwrap();
        assert_eq!(content, b"content", "{version}");
        let error = refused(&get(None));
        assert!(error.contains("407"), "{version}: {error}");
        for (user, alert) in [
            ((&authority, "expired"), "expired"),
            ((&authority, "gone"), "revoked"),
            ((&foreign, "bob"), "issuer is not trusted"),
        ] {
            let error = refused(&get(Some(user))).to_lowercase();
            assert!(
                error.contains(alert) && error.contains("the certificate of this client"),
                "{version}: {error}"
            );
        }
    }
}

#[test]
fn a_list_of_subjects_is_read_again() {
    let site = Site::start(&[("file", b"content")]);
    let authority = Authority::new();
    authority.issue("bob", 1, 2100);
    authority.issue("eve", 2, 2100);
    fs::write(authority.path("subjects"), "# users\nCN=bob\n").unwrap();
    let subjects = authority.path("subjects");
    let flags = ["--client-subjects", subjects.to_str().unwrap()];
    let mut proxy = proxy(&authority, &flags);
    let get = |proxy: &TunnelProxy, user: &str| {
        let mut get = get(proxy, &site, "h3", Some((&authority, user)));
        get.output().unwrap()
    };
    succeeded(&get(&proxy, "bob"));
    let error = refused(&get(&proxy, "eve"));
    assert!(
        error.contains("403") && error.contains("no user"),
        "{error}"
    );
    fs::write(&subjects, "CN=eve\n").unwrap();
    hang_up(&mut proxy);
    succeeded(&get(&proxy, "eve"));
    assert!(refused(&get(&proxy, "bob")).contains("403"));
}

#[test]
fn a_token_is_enough_where_both_are_accepted() {
    let site = Site::start(&[("file", b"content")]);
    let authority = Authority::new();
    let proxy = proxy(&authority, &["--tokens", "tokens"]);
    let with_token = |text: &str| {
        let file = proxy.file("token");
        fs::write(&file, text).unwrap();
        let mut get = get(&proxy, &site, "h3", None);
        get.arg("--proxy-token-file").arg(file);
        get.output().unwrap()
    };
    succeeded(&with_token(SECRET));
    assert!(refused(&with_token("another-secret-of-the-test")).contains("407"));
}

#[test]
fn reloading_revokes_and_admits() {
    let site = Site::start(&[("file", b"content")]);
    let authority = Authority::new();
    authority.issue("gone", REVOKED, 2100);
    let mut proxy = proxy(&authority, &[]);
    succeeded(
        &get(&proxy, &site, "h3", Some((&authority, "gone")))
            .output()
            .unwrap(),
    );
    authority.revoke(&[REVOKED]);
    hang_up(&mut proxy);
    for version in VERSIONS {
        let mut get = get(&proxy, &site, version, Some((&authority, "gone")));
        let error = refused(&get.output().unwrap());
        assert!(error.contains("revoked"), "{error}");
    }
    authority.revoke(&[]);
    hang_up(&mut proxy);
    let mut get = get(&proxy, &site, "h2", Some((&authority, "gone")));
    succeeded(&get.output().unwrap());
}

#[test]
fn local_addresses_lead_through_a_proxy_that_knows_the_certificate() {
    let authority = Authority::new();
    authority.issue("bob", 1, 2100);
    authority.issue("expired", 2, 2020);
    let proxy = proxy(&authority, &[]);
    let connect = |name: &str, version: &str| {
        let mut command = proxy.connect(&["-L", "tcp:0:127.0.0.1:9"]);
        command.args(["--http-version", version]);
        command
            .arg("--cert")
            .arg(authority.path(&format!("{name}.pem")));
        command
            .arg("--key")
            .arg(authority.path(&format!("{name}.key")));
        command
    };
    for version in VERSIONS {
        let client = Running::start(connect("bob", version));
        assert_eq!(client.first["http"], version);
        assert_eq!(client.interrupt(), Some(0));
    }
    let error = refused(&connect("expired", "h3").output().unwrap());
    assert!(error.contains("expired"), "{error}");
}

#[test]
fn a_site_may_be_for_clients_with_certificates_only() {
    let authority = Authority::new();
    let ca = authority.path("ca.pem");
    let site = Site::start_with(
        &[("file", b"content")],
        &["--client-ca", ca.to_str().unwrap()],
    );
    for protocol in ["h3", "tcp", "http1.1"] {
        let mut get = site.get_http(&["/file"]);
        let output = get.args(["--protocol", protocol]).output().unwrap();
        assert!(!output.status.success());
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(error.contains("403"), "{protocol}: {error}");
    }
}

#[test]
fn what_contradicts_itself_is_refused() {
    let authority = Authority::new();
    let (ca, crl) = (authority.path("ca.pem"), authority.path("crl.pem"));
    let (ca, crl) = (ca.to_str().unwrap(), crl.to_str().unwrap());
    let open = ["tunnel", "serve", "--proxy-for-anyone", "--client-ca", ca];
    failed(&run(open), USAGE);
    let error = failed(&run(["serve", ".", "--client-crl", crl]), USAGE);
    assert!(error.contains("client_ca"), "{error}");
    let args = [
        "tunnel",
        "connect",
        "127.0.0.1:9",
        "--socks",
        "0",
        "--cert",
        ca,
    ];
    failed(&run(args), USAGE);
}
