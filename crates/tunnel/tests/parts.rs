//! Targets, templates, contexts and the policy, without a network.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::net::IpAddr;

use bytes::Bytes;
use proptest::prelude::*;
use swiftwater_tunnel::client::socks::message::{
    Address, Command, Greeting, MessageError, Reply, SocksRequest, UdpMessage,
};
use swiftwater_tunnel::context::{self, ContextId};
use swiftwater_tunnel::policy::{Ports, Prefix, Reserved, TargetPolicy, reserved};
use swiftwater_tunnel::proxy_status::{ProxyError, refused};
use swiftwater_tunnel::target::{Target, TargetError, Template, TemplateError};
use swiftwater_wire::VarInt;

#[test]
fn text_of_targets() {
    for text in [
        "example.net:443",
        "192.0.2.1:53",
        "[2001:db8::1]:1",
        "a_b.c-d.:65535",
    ] {
        assert_eq!(text.parse::<Target>().unwrap().to_string(), text);
    }
    let lower: Target = "EXAMPLE.net:443".parse().unwrap();
    assert_eq!(lower.to_string(), "example.net:443");
    for (text, error) in [
        ("example.net", TargetError::Form("example.net".into())),
        (
            "2001:db8::1:443",
            TargetError::Form("2001:db8::1:443".into()),
        ),
        ("[192.0.2.1]:1", TargetError::Form("[192.0.2.1]:1".into())),
        ("example.net:0", TargetError::Port("0".into())),
        ("example.net:65536", TargetError::Port("65536".into())),
        ("example.net:+1", TargetError::Port("+1".into())),
        ("[fe80::1%eth0]:1", TargetError::Zone("fe80::1%eth0".into())),
        ("0x7f.1:1", TargetError::Host("0x7f.1".into())),
        ("a.0x7f000001:1", TargetError::Host("a.0x7f000001".into())),
        ("-a.net:1", TargetError::Host("-a.net".into())),
        ("a..net:1", TargetError::Host("a..net".into())),
        (":1", TargetError::Host(String::new())),
    ] {
        assert_eq!(text.parse::<Target>(), Err(error), "{text}");
    }
}

#[test]
fn templates() {
    let target: Target = "[2001:db8::1]:443".parse().unwrap();
    let expand = |text: &str| Template::new(text).unwrap().expand(&target).unwrap();
    // The examples of RFC 9298, section 2, and the default template.
    assert_eq!(
        expand("https://example.org/.well-known/masque/udp/{target_host}/{target_port}/"),
        "https://example.org/.well-known/masque/udp/2001%3Adb8%3A%3A1/443/"
    );
    assert_eq!(
        expand("https://proxy.example.org:4443/masque?h={target_host}&p={target_port}"),
        "https://proxy.example.org:4443/masque?h=2001%3Adb8%3A%3A1&p=443"
    );
    assert_eq!(
        expand("https://proxy.example.org:4443/masque{?target_host,target_port}"),
        "https://proxy.example.org:4443/masque?target_host=2001%3Adb8%3A%3A1&target_port=443"
    );
    for address in [
        "example.org:8443",
        "https://example.org:8443",
        "https://example.org:8443/",
    ] {
        assert_eq!(
            expand(address),
            "https://example.org:8443/.well-known/masque/udp/2001%3Adb8%3A%3A1/443/"
        );
        let proxy = Template::new(address).unwrap().proxy().unwrap();
        assert_eq!(proxy, ("example.org".to_owned(), 8443));
    }
    let path = target_path(&expand("example.org"));
    assert_eq!(Target::from_path(&path), Ok(target));
    for (text, is_variable) in [
        ("https://example.org/{target_host}/", true),
        ("https://example.org/{target_port}/", true),
        ("https://example.org/{target_host/{target_port}", false),
        ("http://example.org/{target_host}/{target_port}/", false),
        ("/masque/{target_host}/{target_port}/", false),
        ("https://example.org/path", false),
        ("ftp://example.org", false),
        ("", false),
    ] {
        let error = Template::new(text).unwrap_err();
        let of_variable = matches!(error, TemplateError::Variable { .. });
        assert_eq!(of_variable, is_variable, "{text}: {error}");
    }
}

fn target_path(uri: &http::Uri) -> String {
    uri.path().to_owned()
}

#[test]
fn addresses_that_are_not_public() {
    use Reserved::{
        Broadcast, LinkLocal, Loopback, Multicast, Private, SharedByCarrier, Special, Unallocated,
        Unspecified,
    };
    for (address, expected) in [
        ("0.0.0.0", Unspecified),
        ("::", Unspecified),
        ("127.8.9.1", Loopback),
        ("::1", Loopback),
        ("::ffff:127.0.0.1", Loopback),
        ("::127.0.0.1", Loopback),
        ("64:ff9b::7f00:1", Loopback),
        ("64:ff9b:1::7f00:1", Loopback),
        ("2002:7f00:1::", Loopback),
        ("2001:0:0:0:0:0:80ff:fffe", Loopback),
        ("169.254.169.254", LinkLocal),
        ("fe80::1", LinkLocal),
        ("10.0.0.1", Private),
        ("172.31.255.255", Private),
        ("192.168.0.1", Private),
        ("::ffff:192.168.0.1", Private),
        ("fd00::1", Private),
        ("100.127.0.1", SharedByCarrier),
        ("224.0.0.1", Multicast),
        ("ff02::1", Multicast),
        ("255.255.255.255", Broadcast),
        ("198.19.0.1", Special),
        ("2001:db8::1", Special),
        ("250.0.0.1", Unallocated),
        ("4000::1", Unallocated),
    ] {
        let address: IpAddr = address.parse().unwrap();
        assert_eq!(reserved(address), Some(expected), "{address}");
        assert!(TargetPolicy::default().check_address(address).is_err());
    }
    for address in [
        "8.8.8.8",
        "172.32.0.1",
        "100.128.0.1",
        "2606:4700::1111",
        "::ffff:8.8.8.8",
        "64:ff9b::808:808",
    ] {
        let address: IpAddr = address.parse().unwrap();
        assert_eq!(reserved(address), None, "{address}");
        assert!(TargetPolicy::default().check_address(address).is_ok());
    }
}

#[test]
fn what_is_denied_stays_denied() {
    let policy = TargetPolicy {
        allowed: vec!["10.0.0.0/8".parse().unwrap()],
        denied: vec!["10.9.0.0/16".parse().unwrap(), "8.8.8.8".parse().unwrap()],
        ..TargetPolicy::default()
    };
    let check = |text: &str| policy.check_address(text.parse().unwrap()).is_ok();
    assert!(check("10.1.0.1") && check("::ffff:10.1.0.1") && check("9.9.9.9"));
    for address in [
        "10.9.0.1",
        "::ffff:10.9.0.1",
        "8.8.8.8",
        "64:ff9b::808:808",
        "127.0.0.1",
    ] {
        assert!(!check(address), "{address}");
    }
}

#[test]
fn ports_that_amplify_must_be_named() {
    let all = Ports::all();
    assert!(all.contains(443) && all.contains(1) && all.contains(65_535));
    assert!(!all.contains(53) && !all.contains(11_211) && !all.contains(0));
    assert!(Ports::new([53..=53]).contains(53));
    assert!(Ports::default().contains(443) && !Ports::default().contains(80));
}

#[test]
fn text_of_prefixes() {
    let contains = |prefix: &str, address: &str| {
        let prefix: Prefix = prefix.parse().unwrap();
        prefix.contains(address.parse().unwrap())
    };
    assert!(contains("0.0.0.0/0", "203.0.113.9") && !contains("0.0.0.0/0", "::1"));
    assert!(contains("10.0.0.0/9", "10.127.0.1") && !contains("10.0.0.0/9", "10.128.0.1"));
    assert!(contains("::/0", "2001:db8::1") && contains("2001:db8::1", "2001:db8::1"));
    assert!(!contains("2001:db8::/127", "2001:db8::2"));
    for text in [
        "",
        "10.0.0.0/33",
        "10.0.0/8",
        "::/129",
        "10.0.0.0/",
        "10.0.0.0/-1",
        "a/8",
    ] {
        assert!(text.parse::<Prefix>().is_err(), "{text}");
    }
}

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

#[test]
fn messages_of_socks() {
    let mut bytes = &[5, 2, 2, 0, 5, 1, 0, 3, 1, b'a', 1, 187, b'x'][..];
    let greeting = Greeting::decode(&mut bytes).unwrap();
    assert_eq!(greeting.answer(), [5, 0]);
    let request = SocksRequest::decode(&mut bytes).unwrap();
    assert_eq!(request.command, Command::Connect);
    assert_eq!(request.address.target(), Ok("a:443".parse().unwrap()));
    assert_eq!(bytes, b"x");
    assert_eq!(
        Reply::HostUnreachable.encode("[::1]:258".parse().unwrap()),
        [&[5, 4, 0, 4][..], &[0; 15], &[1, 1, 2]].concat()
    );
    let name = Address::Name("ä".into(), 443);
    assert_eq!(name.target(), Err(MessageError::Name));
}

/// A host and a port as SOCKS has them.
fn address() -> impl Strategy<Value = Address> {
    let ip = any::<(IpAddr, u16)>().prop_map(|address| Address::Ip(address.into()));
    let name = (prop::collection::vec(any::<u8>(), 0..=255), any::<u16>());
    prop_oneof![ip, name.prop_map(|(name, port)| Address::Name(name, port))]
}

proptest! {
    #[test]
    fn datagrams_of_socks_decode_to_what_was_encoded(
        address in address(),
        fragment: u8,
        payload in prop::collection::vec(any::<u8>(), 0..2000),
    ) {
        let message = UdpMessage { fragment, address, payload: &payload };
        let encoded = message.encode();
        prop_assert_eq!(UdpMessage::decode(&encoded), Ok(message));
    }

    #[test]
    fn requests_of_socks_come_in_any_pieces(address in address(), command: u8, rest: [u8; 3]) {
        let datagram = UdpMessage { fragment: 0, address: address.clone(), payload: &rest }.encode();
        let bytes = [&[5, command, 0], &datagram[3..]].concat();
        let len = bytes.len() - rest.len();
        for cut in 0..len {
            let decoded = SocksRequest::decode(&mut &bytes[..cut]);
            prop_assert_eq!(decoded, Err(MessageError::Incomplete));
        }
        let mut left = &bytes[..];
        prop_assert_eq!(SocksRequest::decode(&mut left).unwrap().address, address);
        prop_assert_eq!(left, rest);
    }

    #[test]
    fn any_bytes_are_no_panic_in_socks(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let mut left = &bytes[..];
        if Greeting::decode(&mut left).is_ok() {
            prop_assert!(left.len() < bytes.len());
        }
        let _ = SocksRequest::decode(&mut left).map(|request| request.address.target());
        let _ = UdpMessage::decode(&bytes);
    }

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

    #[test]
    fn targets_survive_the_request(host in "[a-z]{1,20}(\\.[a-z]{1,20}){0,3}", port: u16) {
        prop_assume!(port != 0);
        let target = Target::new(&host, port).unwrap();
        let uri = Template::new("proxy.example").unwrap().expand(&target).unwrap();
        prop_assert_eq!(Target::from_path(uri.path()), Ok(target.clone()));
        prop_assert_eq!(target.to_string().parse::<Target>(), Ok(target));
    }

    #[test]
    fn any_path_is_parsed_without_panic(path: String) {
        let _ = Target::from_path(&path);
        let _ = Target::from_path(&format!("/.well-known/masque/udp/{path}"));
    }
}
