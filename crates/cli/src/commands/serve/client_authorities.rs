//! Certificates of clients: the authorities whose certificates are accepted, and sites for clients that have one.

use std::path::Path;
use std::sync::Arc;

use http::{Request, StatusCode};
use swiftwater::tls::ClientAuthorities;
use swiftwater::tls::pki_types::CertificateRevocationListDer;
use swiftwater::tls::pki_types::pem::PemObject;
use swiftwater_http::web::body::{Body, text_response};
use swiftwater_http::web::connection_info::ConnectionInfo;
use swiftwater_http::web::response_fields::ResponseFields;
use tower::{ServiceExt, service_fn};

use super::config::Config;
use crate::exit::{Exit, Failure, plain_io_error};
use crate::files::read_limited;
use crate::identity::read_certificates;
use crate::web_content::{Content, boxed};

/// The largest file of revocation lists that is read, bytes.
const MAX_LISTS: u64 = 64 << 20;

/// The authorities of the configuration, as its files are now; `None` if clients are not asked for certificates.
pub(super) fn authorities(config: &Config) -> Result<Option<Arc<ClientAuthorities>>, Failure> {
    let Some(file) = &config.tls.client_ca else {
        return Ok(None);
    };
    let lists = config.tls.client_crl.as_deref().map(revocation_lists);
    let lists = lists.transpose()?.unwrap_or_default();
    let authorities = ClientAuthorities::new(read_certificates(file)?, lists);
    let authorities = authorities.map_err(|error| {
        Failure::new(
            Exit::Certificate,
            format_args!("{}: {error}", file.display()),
        )
    })?;
    Ok(Some(Arc::new(authorities)))
}

/// The lists of a file, PEM.
fn revocation_lists(file: &Path) -> Result<Vec<CertificateRevocationListDer<'static>>, Failure> {
    let failure = |why: &dyn std::fmt::Display| {
        Failure::new(Exit::LocalFile, format_args!("{}: {why}", file.display()))
    };
    let text = read_limited(file, MAX_LISTS).map_err(|error| failure(&plain_io_error(&error)))?;
    let lists = CertificateRevocationListDer::pem_slice_iter(&text)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| failure(&error))?;
    if lists.is_empty() {
        return Err(failure(&"it holds no revocation list (PEM)"));
    }
    Ok(lists)
}

/// `content` for clients that have a certificate, and a refusal with `fields` for others.
pub(super) fn for_known_clients(content: Content, fields: ResponseFields) -> Content {
    boxed(service_fn(move |request: Request<Body>| {
        let (content, fields) = (content.clone(), fields.clone());
        async move {
            let connection = request.extensions().get::<ConnectionInfo>();
            if connection.is_some_and(|it| it.client_chain.is_some()) {
                return content.oneshot(request).await;
            }
            let text = "this host needs a client certificate";
            let mut response = text_response(StatusCode::FORBIDDEN, text);
            fields.apply(response.headers_mut());
            Ok(response)
        }
    }))
}
