//! Addresses for `get`.

use proptest::prelude::*;
use swiftwater_cli::url::{Scheme, Url, percent_decode, percent_encode};

fn url(text: &str) -> Url {
    text.parse().unwrap()
}

#[test]
fn parts() {
    let full = url("https://Example.NET:4433/a/b.mp4?x=1#part");
    assert_eq!(
        (full.host(), full.port(), full.path()),
        ("example.net", 4433, "/a/b.mp4?x=1")
    );
    assert_eq!(full.to_string(), "https://example.net:4433/a/b.mp4?x=1");
    let plain = url("https://10.0.0.7/x");
    assert_eq!((plain.host(), plain.port()), ("10.0.0.7", 443));
    let v6 = url("https://[::1]:9/x");
    assert_eq!(
        (v6.host(), v6.port(), v6.to_string()),
        ("::1", 9, "https://[::1]:9/x".to_owned())
    );
    let open = url("HTTP://h/x");
    assert_eq!((open.scheme(), open.port()), (Scheme::Http, 80));
    assert_eq!(open.to_string(), "http://h:80/x");
    assert_eq!(url("https://h").path(), "/");
    assert_eq!(url("https://h?q").path(), "/?q");
    assert_eq!(url("https://h/with space/ü").path(), "/with%20space/%C3%BC");
}

/// The examples of RFC 3986, section 5.4, that make sense without other schemes.
#[test]
fn references() {
    let base = url("http://a/b/c/d;p?q");
    for (reference, path) in [
        ("g", "/b/c/g"),
        ("./g", "/b/c/g"),
        ("g/", "/b/c/g/"),
        ("/g", "/g"),
        ("?y", "/b/c/d;p?y"),
        ("g?y", "/b/c/g?y"),
        ("#s", "/b/c/d;p?q"),
        ("g#s", "/b/c/g"),
        ("g?y#s", "/b/c/g?y"),
        (";x", "/b/c/;x"),
        ("", "/b/c/d;p?q"),
        (".", "/b/c/"),
        ("./", "/b/c/"),
        ("..", "/b/"),
        ("../", "/b/"),
        ("../g", "/b/g"),
        ("../..", "/"),
        ("../../g", "/g"),
        ("../../../g", "/g"),
        ("/./g", "/g"),
        ("/../g", "/g"),
        ("..g", "/b/c/..g"),
        ("./g/.", "/b/c/g/"),
        ("g/./h", "/b/c/g/h"),
        ("g/../h", "/b/c/h"),
        ("g?y/../x", "/b/c/g?y/../x"),
        ("with space", "/b/c/with%20space"),
    ] {
        let joined = base.join(reference).unwrap();
        assert_eq!(joined.path(), path, "{reference}");
        assert!(joined.has_origin_of(&base), "{reference}");
    }
    let elsewhere = base.join("//g/x").unwrap();
    assert_eq!(elsewhere.to_string(), "http://g:80/x");
    assert!(!elsewhere.has_origin_of(&base));
    let secure = base.join("https://a/y").unwrap();
    assert_eq!(secure.to_string(), "https://a:443/y");
    assert!(!secure.has_origin_of(&base));
    for bad in ["ftp://a/x", "mailto:x", "//", "https://user@a/"] {
        assert!(base.join(bad).is_err(), "{bad}");
    }
    assert!(base.join(&"x/".repeat(10_000)).is_err());
}

#[test]
fn refused() {
    for bad in [
        "",
        "h/x",
        "ftp://h/x",
        "https://",
        "https:///x",
        "https://h:0/x",
        "https://h:65536/x",
        "https://h:port/x",
        "https://user@h/x",
        "https://[::1/x",
        "https://[h]:1/x",
        "https://[::1]9/x",
        "https://a b/x",
        "https://h\n/x",
        "https://h:/x",
    ] {
        assert!(bad.parse::<Url>().is_err(), "{bad}");
    }
    assert!(
        format!("https://h/{}", "x".repeat(10_000))
            .parse::<Url>()
            .is_err()
    );
}

#[test]
fn file_names() {
    assert_eq!(url("https://h/a/b.mp4?x=1").file_name().unwrap(), "b.mp4");
    assert_eq!(
        url("https://h/with%20space").file_name().unwrap(),
        "with space"
    );
    for bad in [
        "https://h",
        "https://h/",
        "https://h/a/",
        "https://h/..",
        "https://h/.hidden",
        "https://h/%2e%2e",
        "https://h/a%2fb",
        "https://h/a%5cb",
        "https://h/%00",
        "https://h/%zz",
        "https://h/a%0ab",
        "https://h/c%3ax",
    ] {
        assert!(url(bad).file_name().is_err(), "{bad}");
    }
}

proptest! {
    #[test]
    fn nothing_panics(text in ".{0,80}") {
        if let Ok(url) = format!("https://{text}").parse::<Url>() {
            let _ = url.file_name();
        }
        let _ = percent_decode(&text);
    }

    /// What servers say in redirects leads to what can be read again, or to an error.
    #[test]
    fn references_lead_to_addresses(text in "[/.?#:a%ü ]{0,30}") {
        if let Ok(joined) = url("https://h/a/b?c").join(&text) {
            prop_assert_eq!(joined.to_string().parse::<Url>().unwrap(), joined);
        }
    }

    #[test]
    fn what_is_printed_is_read_again(host in "[a-z]{1,10}", port in 1u16.., path in "(/[ -~]{0,8}){0,3}") {
        let url: Url = format!("https://{host}:{port}{path}").parse().unwrap();
        prop_assert_eq!(url.to_string().parse::<Url>().unwrap(), url);
    }

    #[test]
    fn encoding_is_undone_by_decoding(text in "[^%]{0,40}") {
        prop_assert_eq!(percent_decode(&percent_encode(&text)), Some(text.into_bytes()));
    }

    /// Whatever a server's address says, the name stays in the directory.
    #[test]
    fn file_names_are_plain(path in "(/|\\.|%2e|%2F|%5c|a|b| |:|%00){0,10}") {
        let url: Url = format!("https://h/{path}").parse().unwrap();
        if let Ok(name) = url.file_name() {
            let file_name = std::path::Path::new(&name).file_name();
            prop_assert_eq!(file_name.and_then(|n| n.to_str()), Some(name.as_str()));
        }
    }
}
