//! Files: the account, and the certificate with its key. They are readable by their owner only, and written as a
//! whole or not at all.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use instant_acme::AccountCredentials;
use sha2::{Digest as _, Sha256};
use tempfile::NamedTempFile;

use crate::certificate::Certificate;
use crate::error::AcmeError;
use crate::settings::Settings;

/// Characters of a hash in names of files.
const HASH: usize = 12;

/// Where the files of some settings are.
#[derive(Debug)]
pub(crate) struct Store {
    account: PathBuf,
    certificate: PathBuf,
}

impl Store {
    pub(crate) fn new(settings: &Settings) -> Self {
        let authority = hash(settings.directory());
        let names = hash(&settings.names().join(" "));
        let first = settings.names().first().map_or("", String::as_str);
        let directory = settings.state();
        Self {
            account: directory.join(format!("account-{authority}.json")),
            certificate: directory.join(format!("{first}-{names}-{authority}.pem")),
        }
    }

    /// The file of the certificate and its key.
    pub(crate) fn certificate_path(&self) -> &Path {
        &self.certificate
    }

    pub(crate) fn certificate(&self) -> Result<Option<Certificate>, AcmeError> {
        let text = read(&self.certificate)?;
        // Chain and key are each found in the file of both.
        text.map(|text| Certificate::from_pem(&text, &text))
            .transpose()
    }

    pub(crate) fn keep_certificate(&self, certificate: &Certificate) -> Result<(), AcmeError> {
        let (chain, key) = (certificate.chain_pem(), certificate.key_pem());
        let text = format!("{}\n{}\n", chain.trim_end(), key.trim_end());
        write(&self.certificate, &text)
    }

    pub(crate) fn account(&self) -> Result<Option<AccountCredentials>, AcmeError> {
        let damaged = |_| AcmeError::Account {
            path: self.account.clone(),
        };
        let text = read(&self.account)?;
        let account = text.map(|text| serde_json::from_str(&text));
        account.transpose().map_err(damaged)
    }

    pub(crate) fn keep_account(&self, account: &AccountCredentials) -> Result<(), AcmeError> {
        let damaged = |_| AcmeError::Account {
            path: self.account.clone(),
        };
        write(
            &self.account,
            &serde_json::to_string(account).map_err(damaged)?,
        )
    }
}

fn hash(text: &str) -> String {
    let digest = Sha256::digest(text.as_bytes());
    let hex = digest.iter().map(|byte| format!("{byte:02x}"));
    hex.collect::<String>()[..HASH].to_owned()
}

fn read(path: &Path) -> Result<Option<String>, AcmeError> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(failed(path, error)),
    }
}

fn write(path: &Path, text: &str) -> Result<(), AcmeError> {
    let directory = path.parent().unwrap_or_else(|| Path::new("."));
    make_directory(directory).map_err(|error| failed(directory, error))?;
    // Temporary files are readable by their owner only.
    let written = NamedTempFile::new_in(directory).and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.as_file().sync_all()?;
        file.persist(path).map_err(|error| error.error)
    });
    written.map(drop).map_err(|error| failed(path, error))
}

fn make_directory(path: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::DirBuilderExt as _;
        builder.mode(0o700);
    }
    builder.create(path)
}

fn failed(path: &Path, error: io::Error) -> AcmeError {
    AcmeError::File {
        path: path.to_owned(),
        error,
    }
}
