//! One proxy of a chain: what is known of it, and its text on the command line.

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use swiftwater_tunnel::forwarding::Transform;
use swiftwater_tunnel::proxy::Token;
use swiftwater_tunnel::target::Template;
use thiserror::Error;

use super::connector::HttpVersion;
use super::credentials::{read_identity, read_token};
use crate::exit::Failure;
use crate::identity::{Identity, read_certificates};
use crate::transport::Trust;

/// What a proxy is asked for beyond plain tunnels.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) enum Extension {
    /// Nothing.
    #[default]
    None,
    /// To send packets again that are lost on the way to here.
    Repair,
    /// That, and to report.
    RepairAndReports,
    /// To forward QUIC packets with short headers beside the connection.
    Forwarding(ForwardingTransform),
}

/// What hides forwarded packets from who sees both sides of the proxy.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Deserialize, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum ForwardingTransform {
    /// Encryption without integrity.
    #[default]
    Scramble,
    /// Nothing.
    Identity,
}

impl ForwardingTransform {
    /// The transform of the packets.
    pub(crate) const fn get(self) -> Transform {
        match self {
            Self::Scramble => Transform::Scramble,
            Self::Identity => Transform::Identity,
        }
    }
}

/// A proxy, whom connections to it trust, and how they prove who the user is.
pub(crate) struct ProxyHop {
    pub(crate) template: Template,
    pub(crate) version: HttpVersion,
    pub(crate) token: Option<Token>,
    pub(crate) trust: Trust,
    /// The user's certificate, if there is one.
    pub(crate) identity: Option<Identity>,
    pub(crate) extension: Extension,
}

/// The form of a [`HopArg`].
pub(crate) const HOP_FORM: &str = "PROXY[,OPTION...]";

/// A proxy before another one on the command line:
/// `PROXY[,token-file=FILE][,ca=FILE][,insecure][,cert=FILE,key=FILE][,http-version=VERSION][,repair]
/// [,forwarding[=TRANSFORM]]`.
#[derive(Clone, Debug)]
pub struct HopArg {
    template: Template,
    version: HttpVersion,
    token_file: Option<PathBuf>,
    ca: Option<PathBuf>,
    insecure: bool,
    cert: Option<PathBuf>,
    key: Option<PathBuf>,
    extension: Extension,
}

/// A text that names no proxy.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[error(
    "{why}; write HOST[:PORT] or a URI template, then any of ,token-file=FILE ,ca=FILE ,insecure ,cert=FILE,key=FILE \
     ,http-version=VERSION ,repair ,forwarding"
)]
pub struct HopArgError {
    why: String,
}

impl HopArgError {
    fn new(why: impl Display) -> Self {
        Self {
            why: why.to_string(),
        }
    }
}

impl FromStr for HopArg {
    type Err = HopArgError;

    fn from_str(text: &str) -> Result<Self, HopArgError> {
        let mut options = options(text);
        let template = options.next().unwrap_or_default();
        let mut hop = Self {
            template: Template::new(template).map_err(HopArgError::new)?,
            version: HttpVersion::default(),
            token_file: None,
            ca: None,
            insecure: false,
            cert: None,
            key: None,
            extension: Extension::None,
        };
        for option in options {
            let (name, value) = option.split_once('=').unwrap_or((option, ""));
            let file = || match value {
                "" => Err(HopArgError::new(format_args!("{name} needs a file"))),
                path => Ok(Some(PathBuf::from(path))),
            };
            match name {
                "token-file" => hop.token_file = file()?,
                "ca" => hop.ca = file()?,
                "cert" => hop.cert = file()?,
                "key" => hop.key = file()?,
                "http-version" => {
                    let version = HttpVersion::from_str(value, true);
                    hop.version = version.map_err(|_| {
                        HopArgError::new(format_args!("{value:?} is no version of HTTP"))
                    })?;
                }
                "insecure" if value.is_empty() => hop.insecure = true,
                "repair" if value.is_empty() => hop.extend(Extension::Repair)?,
                "forwarding" => {
                    let transform = match value {
                        "" => ForwardingTransform::default(),
                        name => ForwardingTransform::from_str(name, false).map_err(|_| {
                            HopArgError::new(format_args!("{name:?} is no packet transform"))
                        })?,
                    };
                    hop.extend(Extension::Forwarding(transform))?;
                }
                _ => {
                    return Err(HopArgError::new(format_args!(
                        "there is no option {option:?}"
                    )));
                }
            }
        }
        if hop.cert.is_some() != hop.key.is_some() {
            return Err(HopArgError::new("cert and key go together"));
        }
        if hop.insecure && hop.ca.is_some() {
            return Err(HopArgError::new("ca and insecure contradict each other"));
        }
        Ok(hop)
    }
}

impl HopArg {
    /// Asks for `extension` too; a tunnel has one at most.
    fn extend(&mut self, extension: Extension) -> Result<(), HopArgError> {
        if self.extension != Extension::None && self.extension != extension {
            let why = "repair and forwarding contradict each other";
            return Err(HopArgError::new(why));
        }
        self.extension = extension;
        Ok(())
    }

    /// The proxy, with what is in its files; trusted as `others` are if nothing else was said.
    pub(crate) fn read(&self, others: &Trust) -> Result<ProxyHop, Failure> {
        Ok(ProxyHop {
            template: self.template.clone(),
            version: self.version,
            token: self.token_file.as_deref().map(read_token).transpose()?,
            trust: trust_of(self.insecure, self.ca.as_deref(), others)?,
            identity: read_identity(self.cert.as_deref(), self.key.as_deref())?,
            extension: self.extension,
        })
    }
}

/// The trust in a proxy: everybody, the certificates of a file, or as in `others`.
pub(super) fn trust_of(
    insecure: bool,
    ca: Option<&Path>,
    others: &Trust,
) -> Result<Trust, Failure> {
    match ca {
        _ if insecure => Ok(Trust::Anybody),
        Some(path) => Ok(Trust::Roots(read_certificates(path)?)),
        None => Ok(others.clone()),
    }
}

/// Reads the name of a proxy, or its template.
pub(crate) fn parse_template(text: &str) -> Result<Template, String> {
    Template::new(text).map_err(|error| error.to_string())
}

/// The parts between commas, but for those within the braces of a template.
fn options(text: &str) -> impl Iterator<Item = &str> {
    let mut is_in_braces = false;
    let parts = text.split(move |c| {
        match c {
            '{' => is_in_braces = true,
            '}' => is_in_braces = false,
            _ => {}
        }
        c == ',' && !is_in_braces
    });
    parts.map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hop(text: &str) -> HopArg {
        text.parse().unwrap()
    }

    #[test]
    fn options_follow_names_and_templates() {
        let plain = hop("proxy.example:8443");
        assert_eq!(
            plain.template.proxy().unwrap(),
            ("proxy.example".to_owned(), 8443)
        );
        assert_eq!(plain.version, HttpVersion::Auto);
        assert!(!plain.insecure && plain.token_file.is_none());
        assert_eq!(plain.extension, Extension::None);
        let all = hop(
            "https://proxy.example/masque{?target_host,target_port},token-file=a b,cert=c.pem,key=k.pem,ca=ca.pem,\
             http-version=h2,repair",
        );
        assert_eq!(
            all.template.proxy().unwrap(),
            ("proxy.example".to_owned(), 443)
        );
        assert_eq!(all.token_file, Some("a b".into()));
        assert_eq!(
            (all.cert, all.key),
            (Some("c.pem".into()), Some("k.pem".into()))
        );
        assert_eq!(
            (all.version, all.extension),
            (HttpVersion::H2, Extension::Repair)
        );
        assert!(hop("[::1]:443,insecure").insecure);
        for (text, transform) in [
            ("p,forwarding", ForwardingTransform::Scramble),
            ("p,forwarding=scramble", ForwardingTransform::Scramble),
            ("p,forwarding=identity", ForwardingTransform::Identity),
        ] {
            let wanted = Extension::Forwarding(transform);
            assert_eq!(hop(text).extension, wanted);
        }
    }

    #[test]
    fn texts_that_name_no_proxy_are_refused() {
        for text in [
            "",
            "proxy.example,",
            "proxy.example,token-file",
            "proxy.example,token-file=",
            "proxy.example,cert=c.pem",
            "proxy.example,http-version=h4",
            "proxy.example,insecure=yes",
            "proxy.example,insecure,ca=ca.pem",
            "proxy.example,other=1",
            "proxy.example,forwarding=rot13",
            "proxy.example,repair,forwarding",
            "ftp://proxy.example",
        ] {
            assert!(text.parse::<HopArg>().is_err(), "{text}");
        }
    }
}
