//! The flags for a certificate from an authority.

use std::path::PathBuf;

use clap::Args;
use swiftwater_acme::LETS_ENCRYPT;

use super::config::acme::{Acme, Challenge};

/// A certificate from an authority.
#[derive(Args, Debug, Default)]
#[command(next_help_heading = "Certificate by ACME")]
pub struct AcmeArgs {
    /// Get and renew a certificate for this name; repeat it for further names
    #[arg(long = "acme", value_name = "NAME", conflicts_with = "cert")]
    pub acme: Vec<String>,

    /// Agree to the terms of service of the authority
    #[arg(long, requires = "acme")]
    pub acme_accept_terms: bool,

    /// Directory of the authority [default: Let's Encrypt]
    #[arg(long, value_name = "URL", requires = "acme")]
    pub acme_directory: Option<String>,

    /// Address of e-mail for the authority
    #[arg(long, value_name = "ADDRESS", requires = "acme")]
    pub acme_contact: Vec<String>,

    /// How names are validated: over TLS at port 443, or over HTTP at port 80 (--http-redirect) [default: tls-alpn-01]
    #[arg(long, value_name = "KIND", requires = "acme")]
    pub acme_challenge: Option<Challenge>,

    /// Certificates that are trusted for the authority's own server, PEM
    #[arg(long, value_name = "FILE", requires = "acme")]
    pub acme_ca: Option<PathBuf>,
}

impl AcmeArgs {
    /// Whether there is any.
    pub fn is_used(&self) -> bool {
        !self.acme.is_empty()
    }

    /// The configuration that they stand for, in the place of that of a file.
    pub fn config(&self) -> Option<Acme> {
        let directory = self.acme_directory.clone();
        self.is_used().then(|| Acme {
            domains: self.acme.clone(),
            accept_terms: self.acme_accept_terms,
            directory: directory.unwrap_or_else(|| LETS_ENCRYPT.to_owned()),
            contact: self.acme_contact.clone(),
            challenge: self.acme_challenge.unwrap_or_default(),
            ca: self.acme_ca.clone(),
            ..Acme::default()
        })
    }
}
