//! Targets and templates, without a network.

use proptest::prelude::*;
use swiftwater_tunnel::target::{Target, TargetError, Template, TemplateError};

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

proptest! {
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
