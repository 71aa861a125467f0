use super::*;

fn proxies(variables: &[(&str, &str)]) -> Result<Proxies, ProxyAddressError> {
    Proxies::from_variables(|name| {
        let found = variables.iter().find(|(key, _)| *key == name);
        found.map(|(_, value)| (*value).to_owned())
    })
}

/// The authority of the proxy for `uri`.
fn proxy_of(proxies: &Proxies, uri: &str) -> Option<String> {
    let origin = Origin::of(&uri.parse().unwrap()).unwrap();
    proxies.of(&origin).map(|proxy| proxy.origin.authority())
}

#[test]
fn variables_are_chosen_by_scheme() {
    let some = proxies(&[("HTTPS_PROXY", "http://a:1"), ("http_proxy", "b:2")]).unwrap();
    assert_eq!(proxy_of(&some, "https://x/").as_deref(), Some("a:1"));
    assert_eq!(proxy_of(&some, "http://x/").as_deref(), Some("b:2"));
    let all = proxies(&[
        ("ALL_PROXY", "c:3"),
        ("HTTP_PROXY", "d:4"),
        ("https_proxy", ""),
    ])
    .unwrap();
    assert_eq!(proxy_of(&all, "https://x/").as_deref(), Some("c:3"));
    assert_eq!(proxy_of(&all, "http://x/").as_deref(), Some("c:3"));
    assert_eq!(proxies(&[]).unwrap(), Proxies::none());
}

#[test]
fn exceptions_are_names_suffixes_addresses_and_ports() {
    let none = "one.test, .two.test,*.three.test,10.0.0.1,[::1]:8443,four.test:8080";
    let some = proxies(&[("https_proxy", "p:1"), ("NO_PROXY", none)]).unwrap();
    for (uri, proxied) in [
        ("https://one.test/", false),
        ("https://www.one.test/", false),
        ("https://none.test/", true),
        ("https://www.two.test/", false),
        ("https://a.three.test/", false),
        ("https://10.0.0.1/", false),
        ("https://10.0.0.11/", true),
        ("https://[::1]:8443/", false),
        ("https://[::1]/", true),
        ("https://four.test:8080/", false),
        ("https://four.test/", true),
    ] {
        assert_eq!(proxy_of(&some, uri).is_some(), proxied, "{uri}");
    }
    let all = proxies(&[("https_proxy", "p:1"), ("no_proxy", "*")]).unwrap();
    assert_eq!(proxy_of(&all, "https://x/"), None);
}

#[test]
fn credentials_are_decoded_and_kept_to_themselves() {
    let some = proxies(&[("https_proxy", "http://Aladdin:open%20sesame@p:1")]).unwrap();
    let origin = Origin::of(&"https://x/".parse().unwrap()).unwrap();
    let proxy = some.of(&origin).unwrap();
    // The example of RFC 7617, section 2.
    let expected = "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==";
    assert_eq!(proxy.credentials.as_ref().unwrap(), expected);
    assert!(!format!("{some:?}").contains("Aladdin"));
    assert!(!format!("{some:?}").contains("QWxh"));
}

#[test]
fn base64_is_that_of_the_rfc() {
    for (text, expected) in [
        ("", ""),
        ("f", "Zg=="),
        ("fo", "Zm8="),
        ("foo", "Zm9v"),
        ("foob", "Zm9vYg=="),
        ("fooba", "Zm9vYmE="),
        ("foobar", "Zm9vYmFy"),
    ] {
        assert_eq!(base64(text.as_bytes()), expected);
    }
}

#[test]
fn other_kinds_of_proxies_are_refused() {
    for value in ["https://p:1", "socks5://p:1", "http://", "::"] {
        let error = proxies(&[("HTTPS_PROXY", value)]).unwrap_err();
        assert_eq!(error.name, "HTTPS_PROXY", "{value}");
    }
}
