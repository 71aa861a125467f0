//! The requests to send: method, fields and content.

use http::header::{
    ACCEPT, ACCEPT_CHARSET, ACCEPT_ENCODING, ACCEPT_LANGUAGE, CACHE_CONTROL, CONTENT_ENCODING,
    CONTENT_LANGUAGE, CONTENT_LENGTH, CONTENT_TYPE, IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH,
    IF_RANGE, IF_UNMODIFIED_SINCE, PRAGMA, RANGE, USER_AGENT,
};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri};
use swiftwater_http::web::body::Body;

use super::args::{Data, Header, RequestArgs};
use super::part::Record;
use super::upload::Upload;
use crate::exit::{Exit, Failure};
use crate::url::{Scheme, Url};

const AGENT: &str = concat!("swiftwater/", env!("CARGO_PKG_VERSION"));

/// Fields without information about the user, which may be sent to another origin. Any other may be a
/// secret: API keys have names of all kinds.
const HARMLESS: [HeaderName; 15] = [
    ACCEPT,
    ACCEPT_CHARSET,
    ACCEPT_ENCODING,
    ACCEPT_LANGUAGE,
    CACHE_CONTROL,
    CONTENT_ENCODING,
    CONTENT_LANGUAGE,
    CONTENT_TYPE,
    IF_MATCH,
    IF_MODIFIED_SINCE,
    IF_NONE_MATCH,
    IF_UNMODIFIED_SINCE,
    PRAGMA,
    RANGE,
    USER_AGENT,
];

/// The settings of every request.
#[derive(Clone, Debug)]
pub(super) struct Order {
    pub(super) method: Method,
    headers: HeaderMap,
    data: Option<Data>,
}

/// One request to be sent.
#[derive(Clone, Debug)]
pub(super) struct Ask {
    pub(super) url: Url,
    pub(super) method: Method,
    /// The content is sent.
    pub(super) with_data: bool,
    /// All fields are sent, not only harmless ones.
    pub(super) trusted: bool,
}

/// Continue after these bytes, if the version is still this one.
#[derive(Clone, Debug)]
pub(super) struct From {
    pub(super) offset: u64,
    pub(super) record: Record,
}

impl Order {
    pub(super) fn of(args: &RequestArgs) -> Result<Self, Failure> {
        let method = match (&args.method, &args.data) {
            _ if args.head => Method::HEAD,
            (Some(method), _) => method.clone(),
            (None, Some(_)) => Method::POST,
            (None, None) => Method::GET,
        };
        if method == Method::CONNECT {
            let text = "CONNECT makes tunnels, which get doesn't";
            return Err(Failure::new(Exit::Usage, text));
        }
        let mut headers = HeaderMap::new();
        for Header { name, value } in &args.headers {
            headers.append(name, value.clone());
        }
        let defaults = [
            (USER_AGENT, Some(AGENT)),
            (ACCEPT, Some("*/*")),
            (
                CONTENT_TYPE,
                args.data.as_ref().map(|data| match data {
                    Data::Text(_) => "application/x-www-form-urlencoded",
                    Data::File(_) | Data::Stdin => "application/octet-stream",
                }),
            ),
        ];
        for (name, value) in defaults {
            if let Some(value) = value
                && !headers.contains_key(&name)
            {
                headers.insert(name, HeaderValue::from_static(value));
            }
        }
        Ok(Self {
            method,
            headers,
            data: args.data.clone(),
        })
    }

    /// The first request for `url`.
    pub(super) fn ask(&self, url: &Url) -> Ask {
        Ask {
            url: url.clone(),
            method: self.method.clone(),
            with_data: self.data.is_some(),
            trusted: true,
        }
    }

    /// The user requests a range.
    pub(super) fn has_range(&self) -> bool {
        self.headers.contains_key(RANGE)
    }

    /// The content can be sent a second time.
    pub(super) fn is_repeatable(&self) -> bool {
        self.data != Some(Data::Stdin)
    }

    /// The request, and a handle of its content.
    pub(super) async fn request(
        &self,
        ask: &Ask,
        from: Option<&From>,
    ) -> Result<(Request<Body>, Option<Upload>), Failure> {
        let mut request = Request::new(Body::empty());
        *request.method_mut() = ask.method.clone();
        *request.uri_mut() = uri(&ask.url)?;
        let mut headers = self.headers.clone();
        if !ask.trusted {
            headers = harmless(&headers);
        }
        if let Some(from) = from {
            let range = format!("bytes={}-", from.offset);
            let malformed =
                |_| Failure::new(Exit::Failure, "the version is not a valid field value");
            headers.insert(RANGE, HeaderValue::from_str(&range).map_err(malformed)?);
            let version = HeaderValue::from_str(&from.record.validator).map_err(malformed)?;
            headers.insert(IF_RANGE, version);
        }
        let upload = match &self.data {
            Some(data) if ask.with_data => Some(Upload::open(data).await?),
            _ => {
                headers.remove(CONTENT_TYPE);
                None
            }
        };
        if let Some(upload) = &upload {
            if let Some(length) = upload.length() {
                headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
            }
            *request.body_mut() = upload.body();
        }
        *request.headers_mut() = headers;
        Ok((request, upload))
    }
}

/// The fields of `headers` that may be sent to any origin.
fn harmless(headers: &HeaderMap) -> HeaderMap {
    let kept = headers.iter().filter(|(name, _)| HARMLESS.contains(name));
    kept.map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

/// Without the port if it is the scheme's default, as servers expect it.
fn uri(url: &Url) -> Result<Uri, Failure> {
    let (scheme, default) = match url.scheme() {
        Scheme::Https => ("https", 443),
        Scheme::Http => ("http", 80),
    };
    let host = url.host();
    let host = if host.contains(':') {
        format!("[{host}]")
    } else {
        host.to_owned()
    };
    let authority = if url.port() == default {
        host
    } else {
        format!("{host}:{}", url.port())
    };
    let uri = Uri::builder().scheme(scheme).authority(authority);
    uri.path_and_query(url.path()).build().map_err(|_| {
        let text = format_args!("{url}: its path has characters that must be percent-encoded");
        Failure::new(Exit::Usage, text)
    })
}
