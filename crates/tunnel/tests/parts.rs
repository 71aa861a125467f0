//! Targets, templates, contexts and the policy, without a network.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::net::IpAddr;

use bytes::Bytes;
use proptest::prelude::*;
use swiftwater_tunnel::context::{self, ContextId};
use swiftwater_tunnel::policy::{Ports, Prefix, Reserved, TargetPolicy, reserved};
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
