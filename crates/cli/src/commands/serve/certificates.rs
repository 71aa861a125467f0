//! Loads the certificates of the configuration.

use std::time::SystemTime;

use swiftwater::{Client, DevCertificate};
use swiftwater_acme::{Acme, Answers, Progress};
use swiftwater_http::client::{HttpClient, Policy};
use swiftwater_http::tcp::{Certificates, TlsAlpnChallenges};
use swiftwater_http::web::http_challenge::HttpChallenges;

use super::config::Config;
use super::config::acme::Challenge;
use crate::exit::{Exit, Failure};
use crate::identity::{Identity, default_state_dir, read_certificates};

/// Answers to validations of both kinds.
#[derive(Clone, Default)]
pub(super) struct Challenges {
    pub(super) tls: TlsAlpnChallenges,
    pub(super) http: HttpChallenges,
}

/// Whether files of the server's own that are missing are created.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum StateFiles {
    Created,
    Read,
}

/// Reads them; the first is the default. At least one.
pub(super) fn identities(config: &Config, files: StateFiles) -> Result<Vec<Identity>, Failure> {
    let given = config.certificates.iter();
    let mut identities = given
        .map(|files| Identity::from_files(&files.cert, &files.key))
        .collect::<Result<Vec<_>, _>>()?;
    identities.extend(of_authority(config)?);
    if !identities.is_empty() {
        return Ok(identities);
    }
    if let Some(acme) = &config.acme {
        // Until the authority has issued one.
        let names = &acme.get_ref().domains;
        let temporary = DevCertificate::generate(names.iter().map(String::as_str));
        let temporary = temporary.map_err(|error| Failure::new(Exit::Certificate, error))?;
        return Ok(vec![Identity::of(&temporary)]);
    }
    let state_dir = match &config.tls.state_dir {
        Some(directory) => directory.clone(),
        None => default_state_dir()?,
    };
    let names = &config.tls.names;
    Ok(vec![match files {
        StateFiles::Created => Identity::development(&state_dir, names)?,
        StateFiles::Read => Identity::stored_development(&state_dir, names)?,
    }])
}

/// The stored certificate of an authority, if there is one that is valid now.
fn of_authority(config: &Config) -> Result<Option<Identity>, Failure> {
    let Some(acme) = &config.acme else {
        return Ok(None);
    };
    let settings = acme.get_ref().settings(config)?;
    // A damaged file is replaced by the next certificate.
    let stored = settings.stored().ok().flatten();
    let valid = stored.filter(|certificate| certificate.is_valid_at(SystemTime::now()));
    let path = settings.certificate_path();
    valid
        .map(|_| Identity::from_files(&path, &path))
        .transpose()
}

/// The certificates for handshakes.
pub(super) fn certificates(identities: &[Identity]) -> Result<Certificates, Failure> {
    let pairs = identities.iter();
    let pairs = pairs.map(|identity| (identity.chain.as_slice(), identity.key.as_slice()));
    Certificates::from_pems(pairs).map_err(|error| Failure::new(Exit::Certificate, error))
}

/// Who gets and renews the certificate of the configuration; `None` if it asks for none.
pub(super) fn authority(config: &Config, challenges: &Challenges) -> Result<Option<Acme>, Failure> {
    let Some(acme) = &config.acme else {
        return Ok(None);
    };
    let acme = acme.get_ref();
    let mut trust = Client::builder();
    if let Some(path) = &acme.ca {
        trust = trust.trust_only(read_certificates(path)?);
    }
    let failure = |error: &dyn std::fmt::Display| Failure::new(Exit::Certificate, error);
    let tls = trust.tls_over_tcp().map_err(|error| failure(&error))?;
    let client = HttpClient::builder()
        .tls(tls)
        .policy(Policy::NoHttp3)
        .build();
    let client = client.map_err(|error| failure(&error))?;
    let answers = match acme.challenge {
        Challenge::TlsAlpn01 => Answers::TlsAlpn(challenges.tls.clone()),
        Challenge::Http01 => Answers::Http(challenges.http.clone()),
    };
    Ok(Some(Acme::new(acme.settings(config)?, client, answers)))
}

/// Keeps the certificate of `authority` up to date; `report` is called whenever something happened. Pending for ever
/// without one.
pub(super) async fn maintain(authority: Option<&Acme>, report: impl FnMut(Progress<'_>)) {
    match authority {
        Some(authority) => authority.maintain(report).await,
        None => std::future::pending().await,
    }
}
