//! URI templates of proxies (RFC 9298, section 2; RFC 6570).

use http::Uri;
use http::uri::Authority;
use iri_string::spec::UriSpec;
use iri_string::template::UriTemplateString;
use iri_string::template::simple_context::SimpleContext;
use thiserror::Error;

use super::{Target, WELL_KNOWN};

/// How a proxy is asked for a target: an absolute URI with the variables `target_host` and `target_port`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Template(UriTemplateString);

/// Text that is no template of a proxy.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum TemplateError {
    /// It is not a URI template.
    #[error("{0:?} is not a URI template (RFC 6570)")]
    Syntax(String),
    /// One of the variables is missing.
    #[error("{template:?} has no variable {variable}")]
    Variable {
        /// The template.
        template: String,
        /// The missing variable.
        variable: &'static str,
    },
    /// What it expands to is not an `https` URI with an authority and a path.
    #[error("{0:?} is not https://HOST[:PORT]/PATH")]
    Uri(String),
}

impl Template {
    /// A template. Without variables it is the address of a proxy, `https://host:port` or `host:port`, whose
    /// template is the default one (RFC 9298, section 3.1).
    pub fn new(text: &str) -> Result<Self, TemplateError> {
        let full = match (text.contains('{'), text.contains("://")) {
            (true, _) => text.to_owned(),
            (false, true) => with_default_path(text)?,
            (false, false) => with_default_path(&format!("https://{text}"))?,
        };
        let syntax = || TemplateError::Syntax(full.clone());
        let parsed = UriTemplateString::try_from(full.clone()).map_err(|_| syntax())?;
        for variable in ["target_host", "target_port"] {
            if !full.contains(variable) {
                return Err(TemplateError::Variable {
                    template: full,
                    variable,
                });
            }
        }
        let template = Self(parsed);
        let probe = Target::new("target.invalid", 443).map_err(|_| syntax())?;
        template.expand(&probe)?;
        Ok(template)
    }

    /// The URI of a request for `target`.
    pub fn expand(&self, target: &Target) -> Result<Uri, TemplateError> {
        let mut variables = SimpleContext::new();
        variables.insert("target_host", target.host().to_string());
        variables.insert("target_port", target.port().to_string());
        let wrong = || TemplateError::Uri(self.0.to_string());
        let expanded = self.0.expand::<UriSpec, _>(&variables);
        let text = expanded.map_err(|_| wrong())?.to_string();
        let uri: Uri = text.parse().map_err(|_| wrong())?;
        let is_whole = uri.scheme_str() == Some("https")
            && uri.authority().is_some()
            && uri.path().starts_with('/');
        is_whole.then_some(uri).ok_or_else(wrong)
    }

    /// The authority of the proxy: its host, and the port if the template has one.
    pub fn authority(&self) -> Result<Authority, TemplateError> {
        let wrong = || TemplateError::Uri(self.0.to_string());
        let probe = Target::new("target.invalid", 443).map_err(|_| wrong())?;
        let uri = self.expand(&probe)?;
        uri.into_parts().authority.ok_or_else(wrong)
    }

    /// The host and the port of the proxy.
    pub fn proxy(&self) -> Result<(String, u16), TemplateError> {
        let probe = Target::new("target.invalid", 443);
        let probe = probe.map_err(|_| TemplateError::Uri(self.0.to_string()))?;
        let uri = self.expand(&probe)?;
        let host = uri.host().unwrap_or_default();
        let host = host.trim_start_matches('[').trim_end_matches(']');
        Ok((host.to_owned(), uri.port_u16().unwrap_or(443)))
    }
}

/// The default template of the proxy at `address`.
fn with_default_path(address: &str) -> Result<String, TemplateError> {
    let wrong = || TemplateError::Uri(address.to_owned());
    let uri: Uri = address.parse().map_err(|_| wrong())?;
    if !matches!(uri.path(), "" | "/") || uri.query().is_some() {
        return Err(wrong());
    }
    let scheme = uri.scheme_str().ok_or_else(wrong)?;
    let authority = uri.authority().ok_or_else(wrong)?;
    Ok(format!(
        "{scheme}://{authority}{WELL_KNOWN}{{target_host}}/{{target_port}}/"
    ))
}

impl std::fmt::Display for Template {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}
