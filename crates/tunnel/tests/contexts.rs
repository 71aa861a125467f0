//! HTTP datagrams with their contexts, and the errors of Proxy-Status, without a network.

use bytes::Bytes;
use proptest::prelude::*;
use swiftwater_tunnel::context::{self, ContextId};
use swiftwater_tunnel::proxy_status::{ProxyError, refused};
use swiftwater_wire::VarInt;

#[test]
fn errors_in_proxy_status() {
    let field = refused(ProxyError::ConnectionRefused, "nobody \"listens\"").unwrap();
    let text = field.to_str().unwrap();
    assert_eq!(
        ProxyError::in_field(text),
        Some(ProxyError::ConnectionRefused)
    );
    // The proxy that is nearest to the target is the first (RFC 9209, section 2).
    for (text, error) in [
        (
            "a;error=dns_error, b;error=http_request_denied",
            Some(ProxyError::DnsError),
        ),
        (
            "a;next-hop=x, \"b c\";error=dns_timeout;rcode=\"NXDOMAIN\"",
            Some(ProxyError::DnsTimeout),
        ),
        ("a;error=of_the_future", None),
        ("a;error=\"dns_error\"", None),
        ("a", None),
        ("(a b);error=dns_error", None),
        ("a;;", None),
        ("", None),
    ] {
        assert_eq!(ProxyError::in_field(text), error, "{text}");
    }
}

proptest! {
    #[test]
    fn datagrams_decode_to_what_was_encoded(number in 0_u64..1 << 62, payload: Vec<u8>) {
        let context = ContextId::new(VarInt::new(number).unwrap());
        let datagram = Bytes::from(context::encode(context, &payload));
        prop_assert_eq!(datagram.len(), context.size() + payload.len());
        prop_assert_eq!(context::decode(datagram), Some((context, payload.into())));
    }

    #[test]
    fn any_bytes_decode_without_panic(bytes: Vec<u8>) {
        let _ = context::decode(bytes.into());
    }
}
