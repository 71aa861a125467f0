//! The certificate of a server: the user's own, or a self-signed one for development that is
//! created on first use and stored.

use std::env;
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rustls::server::ParsedCertificate;
use swiftwater::tls::ServerTls;
use swiftwater::tls::pki_types::pem::{self, PemObject};
use swiftwater::tls::pki_types::{PrivateKeyDer, ServerName};
use swiftwater::{CertificateDer, DevCertificate};

use crate::digest::{hex, sha256};
use crate::exit::{Exit, Failure, plain_io_error};
use crate::files::{MAX_PEM, read_limited, replace};

/// Names that a development certificate always has.
const DEV_NAMES: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

/// Age at which a development certificate is replaced; it is valid for a year.
const DEV_LIFETIME: Duration = Duration::from_secs(330 * 24 * 60 * 60);

/// Certificate and private key.
const IDENTITY_FILE: &str = "dev-identity.pem";

/// The certificate alone, for clients.
const CERTIFICATE_FILE: &str = "dev-cert.pem";

/// A certificate chain with its key, ready for a server.
#[derive(Clone)]
pub struct Identity {
    /// The chain, PEM.
    pub chain: Vec<u8>,
    /// The private key, PEM.
    pub key: Vec<u8>,
    /// SHA-256 of the end-entity certificate.
    pub fingerprint: [u8; 32],
    /// SHA-256 of its public key (SubjectPublicKeyInfo), as browsers pin it.
    pub spki: [u8; 32],
    /// Path of the certificate, for `--ca` of a client.
    pub certificate_path: PathBuf,
    /// True for a development certificate.
    pub development: bool,
    /// True if the development certificate was created just now.
    pub created: bool,
}

impl Identity {
    /// The fingerprint in the usual notation.
    pub fn fingerprint_text(&self) -> String {
        hex(&self.fingerprint, Some(':'))
    }

    /// The SHA-256 of the public key in base64, for Chromium's `--ignore-certificate-errors-spki-list`.
    pub fn spki_text(&self) -> String {
        STANDARD.encode(self.spki)
    }

    /// A certificate in memory only.
    pub fn of(certificate: &DevCertificate) -> Self {
        Self {
            chain: certificate.certificate_pem().into(),
            key: certificate.private_key_pem().into(),
            fingerprint: sha256(&certificate.certificate_der()),
            spki: spki(&certificate.certificate_der()).unwrap_or_default(),
            certificate_path: PathBuf::new(),
            development: true,
            created: true,
        }
    }

    /// Reads a chain and its key from PEM files, which may be the same file.
    pub fn from_files(chain: &Path, key: &Path) -> Result<Self, Failure> {
        let (chain_pem, key_pem) = (read(chain)?, read(key)?);
        if let Err(error) = PrivateKeyDer::from_pem_slice(&key_pem) {
            let text = match error {
                pem::Error::NoItemsFound => "it holds no private key (PEM)".to_owned(),
                error => format!("no usable private key: {error}"),
            };
            let path = key.display();
            return Err(Failure::new(
                Exit::LocalFile,
                format_args!("{path}: {text}"),
            ));
        }
        Self::from_pem(&chain_pem, &key_pem, chain, chain)
    }

    /// The development certificate stored in `state_dir`, for `localhost` and `names`. It is
    /// created if there is none, if it is about to expire, or if it lacks one of the names.
    pub fn development(state_dir: &Path, names: &[String]) -> Result<Self, Failure> {
        let path = state_dir.join(IDENTITY_FILE);
        let wanted = development_names(names)?;
        let kept = fs::read_to_string(&path)
            .ok()
            .filter(|text| is_current(text, &wanted));
        let created = kept.is_none();
        let text = match kept {
            Some(text) => text,
            None => create(state_dir, &path, &wanted)?,
        };
        let certificate_path = state_dir.join(CERTIFICATE_FILE);
        let mut identity = of_stored(&text, &path, &certificate_path)?;
        let certificate = certificate_part(&text);
        if fs::read_to_string(&certificate_path).ok().as_deref() != Some(certificate) {
            keep(state_dir, &certificate_path, certificate, 0o644)?;
        }
        identity.development = true;
        identity.created = created;
        Ok(identity)
    }

    /// The same, but writes nothing: where it would be created, it is one for now.
    pub fn stored_development(state_dir: &Path, names: &[String]) -> Result<Self, Failure> {
        let path = state_dir.join(IDENTITY_FILE);
        let wanted = development_names(names)?;
        let stored = fs::read_to_string(&path).ok();
        match stored.filter(|text| is_current(text, &wanted)) {
            Some(text) => of_stored(&text, &path, &path),
            None => generate(&wanted).map(|certificate| Self::of(&certificate)),
        }
    }

    fn from_pem(
        chain: &[u8],
        key: &[u8],
        read_from: &Path,
        certificate_path: &Path,
    ) -> Result<Self, Failure> {
        let unusable = |error: &dyn std::fmt::Display| {
            let path = read_from.display();
            Failure::new(
                Exit::LocalFile,
                format_args!("{path}: no usable certificate: {error}"),
            )
        };
        // Detected here rather than later, when the file's name is no longer known.
        ServerTls::from_pem(chain, key).map_err(|error| unusable(&error))?;
        let certificate =
            CertificateDer::from_pem_slice(chain).map_err(|error| unusable(&error))?;
        Ok(Self {
            chain: chain.to_vec(),
            key: key.to_vec(),
            fingerprint: sha256(&certificate),
            spki: spki(&certificate).map_err(|error| unusable(&error))?,
            certificate_path: certificate_path.to_owned(),
            development: false,
            created: false,
        })
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity")
            .field("certificate_path", &self.certificate_path)
            .field("development", &self.development)
            .finish_non_exhaustive()
    }
}

/// Default state directory: `$XDG_STATE_HOME/swiftwater`, else `~/.local/state/swiftwater`, on
/// Windows `%LOCALAPPDATA%\swiftwater`.
pub fn default_state_dir() -> Result<PathBuf, Failure> {
    let absolute = |name: &str| {
        env::var_os(name)
            .map(PathBuf::from)
            .filter(|p| p.is_absolute())
    };
    let base = absolute("XDG_STATE_HOME")
        .or_else(|| absolute("LOCALAPPDATA").filter(|_| cfg!(windows)))
        .or_else(|| absolute("HOME").map(|home| home.join(".local").join("state")))
        .ok_or_else(|| {
            Failure::new(
                Exit::LocalFile,
                "there is no home directory to keep a development certificate in: give --state-dir DIR, or \
                 --cert FILE and --key FILE",
            )
        })?;
    Ok(base.join("swiftwater"))
}

/// Reads the certificates of a PEM file for `--ca`.
pub fn read_certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, Failure> {
    let unusable = |reason: &dyn std::fmt::Display| {
        Failure::new(
            Exit::LocalFile,
            format_args!("{}: {reason}", path.display()),
        )
    };
    let text = read(path)?;
    let certificates = CertificateDer::pem_slice_iter(&text)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| unusable(&error))?;
    if certificates.is_empty() {
        return Err(unusable(&"it holds no certificate (PEM)"));
    }
    Ok(certificates)
}

/// The SHA-256 of a certificate's public key.
fn spki(certificate: &CertificateDer<'_>) -> Result<[u8; 32], rustls::Error> {
    let parsed = ParsedCertificate::try_from(certificate)?;
    Ok(sha256(&parsed.subject_public_key_info()))
}

/// Text before the PEM blocks of an identity: its creation time and names. (Text outside the blocks
/// is a comment in PEM.)
fn header(created: u64, names: &[String]) -> String {
    format!(
        "swiftwater development certificate\ncreated: {created}\nnames: {}\n\n",
        names.join(" ")
    )
}

/// Whether a stored identity is recent enough and has every name in `wanted`.
fn is_current(text: &str, wanted: &[String]) -> bool {
    let field = |name: &str| {
        text.lines()
            .find_map(|line| line.strip_prefix(name))
            .map(str::trim)
    };
    let Some(created) = field("created:").and_then(|seconds| seconds.parse().ok()) else {
        return false;
    };
    let age = now().checked_sub(created);
    let names: Vec<&str> = field("names:").unwrap_or_default().split(' ').collect();
    age.is_some_and(|age| age < DEV_LIFETIME.as_secs())
        && wanted.iter().all(|name| names.contains(&name.as_str()))
}

/// A certificate's name is a host, with an optional `*` label first, or an IP address.
fn check_name(name: &str) -> Result<(), Failure> {
    if ServerName::try_from(name.strip_prefix("*.").unwrap_or(name)).is_ok() {
        return Ok(());
    }
    let text = format!(
        "cannot make a certificate for '{name}': it is neither a host name in ASCII nor an IP address"
    );
    Err(Failure::new(Exit::Usage, text))
}

/// The names of a development certificate: those of this machine, and `names`.
fn development_names(names: &[String]) -> Result<Vec<String>, Failure> {
    let mut wanted: Vec<String> = DEV_NAMES.map(str::to_owned).to_vec();
    for name in names {
        check_name(name)?;
        if !wanted.contains(name) {
            wanted.push(name.clone());
        }
    }
    Ok(wanted)
}

fn create(state_dir: &Path, path: &Path, names: &[String]) -> Result<String, Failure> {
    let certificate = generate(names)?;
    let text = format!(
        "{}{}{}",
        header(now(), names),
        certificate.certificate_pem(),
        certificate.private_key_pem()
    );
    keep(state_dir, path, &text, 0o600)?;
    Ok(text)
}

fn generate(names: &[String]) -> Result<DevCertificate, Failure> {
    DevCertificate::generate(names.iter().map(String::as_str)).map_err(|error| {
        Failure::new(
            Exit::Usage,
            format_args!("cannot make a certificate for these names: {error}"),
        )
    })
}

/// The stored development identity `text` of the file `path`.
fn of_stored(text: &str, path: &Path, certificate_path: &Path) -> Result<Identity, Failure> {
    Identity::from_pem(text.as_bytes(), text.as_bytes(), path, certificate_path)
        .map_err(|error| error.context("development certificate (delete the file to renew it)"))
}

/// The first PEM block of an identity: its certificate.
fn certificate_part(text: &str) -> &str {
    const END: &str = "-----END CERTIFICATE-----\n";
    let start = text.find("-----BEGIN CERTIFICATE-----").unwrap_or(0);
    let end = text.find(END).map_or(text.len(), |end| end + END.len());
    text.get(start..end).unwrap_or(text)
}

/// Writes a file of the state directory.
fn keep(directory: &Path, path: &Path, text: &str, mode: u32) -> Result<(), Failure> {
    replace(directory, path, text, mode).map_err(|error| {
        let (shown, why) = (path.display(), plain_io_error(&error));
        let text = format!(
            "cannot keep a development certificate: {shown}: {why} (--state-dir DIR keeps it elsewhere, \
             --cert FILE --key FILE does without)"
        );
        Failure::new(Exit::LocalFile, text)
    })
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    read_limited(path, MAX_PEM).map_err(|error| local(path, &error))
}

fn local(path: &Path, error: &io::Error) -> Failure {
    Failure::new(
        Exit::LocalFile,
        format_args!("{}: {}", path.display(), plain_io_error(error)),
    )
}

/// Seconds since 1970.
fn now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_secs()
}
