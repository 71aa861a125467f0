//! The configuration file of `serve`: its meaning and its errors.

use std::fs;
use std::path::{Path, PathBuf};

use swiftwater_cli::commands::serve::config::acme::Acme;
use swiftwater_cli::commands::serve::config::values::HostPattern;
use swiftwater_cli::commands::serve::config::{Config, ConfigError, parse};
use tempfile::TempDir;

use crate::support::{failed, run, succeeded};

fn example() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/serve.toml")
}

/// The line and the message of what is wrong with `text`.
#[track_caller]
fn wrong(text: &str) -> (usize, String) {
    match parse(text, Path::new("serve.toml")).unwrap_err() {
        ConfigError::Wrong { line, expected, .. } => (line, expected),
        error @ ConfigError::Unreadable { .. } => panic!("{error}"),
    }
}

#[test]
fn the_example_is_what_it_says() {
    let text = fs::read_to_string(example()).unwrap();
    let config = parse(&text, Path::new("/etc/serve.toml")).unwrap();
    let mut expected = Config::default();
    assert_eq!(config.limits.connections, expected.limits.connections);
    assert_eq!(
        config.certificates[0].cert,
        Path::new("/etc/tls/example.org.pem")
    );
    assert_eq!(
        config.certificates[1].key,
        Path::new("/etc/tls/example.net.key")
    );
    assert_eq!(
        config.log.access.as_deref(),
        Some(Path::new("/var/log/swiftwater/access.log"))
    );
    assert_eq!(
        config.metrics.listen,
        Some("127.0.0.1:9464".parse().unwrap())
    );
    let sites: Vec<_> = config.sites.iter().map(toml::Spanned::get_ref).collect();
    let names = |index: usize| -> Vec<&str> {
        sites[index].hosts.iter().map(HostPattern::as_str).collect()
    };
    assert_eq!(names(0), ["example.org", "www.example.org"]);
    assert_eq!(names(1), ["*.example.net"]);
    assert!(names(2).is_empty());
    let [files, api, app, billing, _, _, old, tunnels] = &sites[0].routes[..] else {
        panic!("eight routes")
    };
    let tunnels = tunnels.get_ref().tunnels.as_ref().unwrap();
    assert_eq!(
        tunnels.tokens.as_deref(),
        Some(Path::new("/etc/tokens.txt"))
    );
    let ports: Vec<String> = tunnels.ports.iter().map(ToString::to_string).collect();
    assert_eq!(ports, ["443", "8000-8999"]);
    let (app, old) = (app.get_ref(), old.get_ref());
    let ca = billing.get_ref().upstream_ca.as_deref();
    assert_eq!(ca, Some(Path::new("/etc/tls/internal-ca.pem")));
    let key = billing.get_ref().upstream_key.as_deref();
    assert_eq!(key, Some(Path::new("/etc/tls/to-billing.key")));
    let (_, others) = app.upstream.as_ref().unwrap().split().unwrap();
    assert!(others.len() == 1 && app.health_path.is_some());
    assert!(old.redirect.is_some() && old.directory.is_none());
    assert_eq!(sites[0].headers.iter().count(), 2);
    let (files, api) = (files.get_ref(), api.get_ref());
    assert_eq!(files.directory.as_deref(), Some(Path::new("/srv/www")));
    assert!(files.precompressed && !files.listing && files.spa.is_none());
    assert_eq!((files.path.as_str(), api.path.as_str()), ("/", "/api"));
    assert!(api.upstream.is_some() && api.preserve_host && !api.strip_path);
    assert_eq!(sites[1].routes[0].get_ref().path.as_str(), "/");
    // Whatever has no comment of another default is the default.
    expected.listen = config.listen;
    expected.certificates.clone_from(&config.certificates);
    let acme = config.acme.as_ref().unwrap().get_ref();
    assert_eq!(acme.domains, ["shop.example.org"]);
    assert!(acme.accept_terms && acme.contact == ["admin@example.org"]);
    let default = Acme::default();
    assert_eq!(acme.directory, default.directory);
    assert_eq!(acme.challenge, default.challenge);
    expected.acme.clone_from(&config.acme);
    expected.limits.idle_timeout = config.limits.idle_timeout;
    expected.log.clone_from(&config.log);
    expected.metrics.clone_from(&config.metrics);
    expected.http.clone_from(&config.http);
    expected.sites.clone_from(&config.sites);
    expected.transport.profile = Some("web".to_owned());
    assert!(
        config
            .transport
            .tecc
            .as_ref()
            .is_some_and(|tecc| !tecc.get_ref())
    );
    expected.transport.tecc.clone_from(&config.transport.tecc);
    assert_eq!(config, expected);
}

#[test]
fn the_example_has_every_key() {
    let text = fs::read_to_string(example()).unwrap();
    for section in [
        "",
        "[acme]",
        "[tls]",
        "[limits]",
        "[log]",
        "[http]",
        "[metrics]",
        "[transport]",
        "[[certificate]]",
        "[[site]]",
        "[[site]]\n[[site.route]]",
        "[[site]]\n[[site.route]]\n[site.route.tunnels]",
    ] {
        let (_, message) = wrong(&format!("{section}\nunknown-key = 1\n"));
        let names: Vec<&str> = message.split('`').skip(3).step_by(2).collect();
        assert!(!names.is_empty(), "{message}");
        for name in names {
            let is_shown = [
                format!("{name} = "),
                format!("[{name}]"),
                format!("{name}]]"),
                format!(".{name}]"),
            ];
            assert!(
                is_shown.iter().any(|shown| text.contains(shown)),
                "{section} {name}"
            );
        }
    }
}

#[test]
fn a_printed_configuration_means_the_same() {
    let home = TempDir::new().unwrap();
    let example = example();
    let first = succeeded(&run([
        "serve",
        "--config",
        example.to_str().unwrap(),
        "--print-config",
    ]));
    let copy = home.path().join("copy.toml");
    fs::write(&copy, &first).unwrap();
    let copy = copy.to_str().unwrap();
    let second = succeeded(&run(["serve", "--config", copy, "--print-config"]));
    assert_eq!(first, second);
    let flags = [
        "serve",
        "--config",
        copy,
        "--print-config",
        "--cc",
        "cubic",
        "--max-requests",
        "7",
    ];
    let third = parse(&succeeded(&run(flags)), Path::new("x")).unwrap();
    assert_eq!(third.transport.cc.as_deref(), Some("cubic"));
    assert_eq!(third.limits.requests.get(), 7);
    // A directory on the command line replaces all sites.
    let flags = [
        "serve",
        "public",
        "--config",
        copy,
        "--print-config",
        "--no-tcp",
    ];
    // A certificate authority would connect over TCP.
    let refused = run(flags);
    let text = String::from_utf8(refused.stderr).unwrap();
    assert!(
        !refused.status.success() && text.contains("tls-alpn-01 needs"),
        "{text}"
    );
    assert_eq!(text.lines().count(), 1, "{text}");
    let mut without: toml::Table = first.parse().unwrap();
    assert!(without.remove("acme").is_some());
    fs::write(copy, without.to_string()).unwrap();
    let fourth = parse(&succeeded(&run(flags)), Path::new("/x/y")).unwrap();
    let [site] = &fourth.sites[..] else {
        panic!("one site")
    };
    let directory = site.get_ref().routes[0].get_ref().directory.clone();
    assert_eq!(directory.unwrap(), Path::new("/x/public"));
    assert!(!fourth.tcp && fourth.limits == third_limits(copy));
}

/// What the file itself says.
fn third_limits(file: &str) -> swiftwater_cli::commands::serve::config::Limits {
    let text = fs::read_to_string(file).unwrap();
    parse(&text, Path::new(file)).unwrap().limits
}

#[test]
fn errors_name_the_line() {
    let (line, message) = wrong("tcp = true\nlisten = \"https\"\n");
    assert!(line == 2 && message.contains("[::]:4433"), "{message}");
    let (line, message) = wrong("[limits]\nrequests = 5\nheader_size = 3\n");
    assert!(line == 3 && message.contains("8192"), "{message}");
    let (line, message) = wrong("\n[limits]\nheader_sise = 9000\n");
    assert!(line == 3 && message.contains("header_size"), "{message}");
    let (line, message) = wrong("grace = \"30\"\n");
    assert!(line == 1 && message.contains("unit"), "{message}");
    let (line, message) = wrong("[transport]\ncc = \"pigeon\"\n");
    assert!(line == 2 && message.contains("cubic"), "{message}");
    let (line, message) = wrong("[tls]\nmin_version = \"1.1\"\n");
    assert!(line == 2 && message.contains("1.2"), "{message}");
    let (line, _) = wrong("tcp = true\ntcp = \n");
    assert_eq!(line, 2);
}

#[test]
fn sites_must_make_sense() {
    let route = "[[site.route]]\ndirectory = \"a\"\n";
    let (line, message) = wrong("[[site]]\nhosts = [\"a.example:443\"]\n");
    assert!(line == 2 && message.contains("without a port"), "{message}");
    for host in ["", "a*.example", "*", "a b", "*.", "a/b"] {
        assert_eq!(
            wrong(&format!("[[site]]\nhosts = [\"{host}\"]\n{route}")).0,
            2,
            "{host}"
        );
    }
    let (line, message) = wrong("tcp = true\n[[site]]\n");
    assert!(line == 2 && message.contains("[[site.route]]"), "{message}");
    let (line, message) = wrong(&format!("[[site]]\n{route}[[site]]\n{route}"));
    assert!(line == 4 && message.contains("no hosts"), "{message}");
    let named = format!("[[site]]\nhosts = [\"A.example\"]\n{route}");
    let (line, message) = wrong(&format!("{named}{named}").replacen("A.", "a.", 1));
    assert!(line == 5 && message.contains("a.example"), "{message}");
}

#[test]
fn routes_must_make_sense() {
    let start = "[[site]]\n[[site.route]]\n";
    for path in [
        "", "api", "//", "/a//b", "/../a", "/a/..", "/a?b", "/a%2fb", "/a b",
    ] {
        let (line, _) = wrong(&format!("{start}path = \"{path}\"\ndirectory = \"a\"\n"));
        assert_eq!(line, 3, "{path}");
    }
    let both = format!("{start}directory = \"a\"\nupstream = \"http://b/\"\n");
    assert!(wrong(&both).1.contains("either"));
    let (line, message) = wrong(&format!("{start}path = \"/a\"\n"));
    assert!(line == 2 && message.contains("either"), "{message}");
    assert!(
        wrong(&format!("{start}directory = \"a\"\nstrip_path = true\n"))
            .1
            .contains("upstream")
    );
    let spa = format!("{start}upstream = \"http://b/\"\nspa = \"index.html\"\n");
    assert!(wrong(&spa).1.contains("directory"));
    for (text, expected) in [
        ("redirect = \"a\"", "begins with"),
        ("redirect = \"/a\"\nstatus = 200", "301"),
        ("redirect = \"/a\"\nlisting = true", "directory"),
        ("redirect = \"/a\"\ndirectory = \"b\"", "either"),
        ("directory = \"a\"\nstatus = 301", "redirection"),
        ("directory = \"a\"\nhead_timeout = \"1s\"", "upstream"),
        ("upstream = []", "empty"),
        ("upstream = 1", "upstream"),
        (
            "upstream = \"http://b/\"\nhealth_interval = \"1s\"",
            "health_path",
        ),
        ("upstream = \"http://b/\"\nhealth_path = \"a\"", "path"),
        (
            "upstream = \"http://b/\"\nhealth_path = \"/\"\nhealth_interval = \"0s\"",
            "longer",
        ),
        ("directory = \"a\"\nheaders = { \"a b\" = \"c\" }", "name"),
        (
            "directory = \"a\"\nheaders = { Content-Length = \"1\" }",
            "server",
        ),
    ] {
        let (_, message) = wrong(&format!("{start}{text}\n"));
        assert!(message.contains(expected), "{text}: {message}");
    }
    let (line, message) = wrong(&format!("{start}upstream = \"ftp://b/\"\n"));
    assert!(line == 3 && message.contains("http://"), "{message}");
    let twice = format!(
        "{start}path = \"/a/\"\ndirectory = \"a\"\n[[site.route]]\npath = \"/a\"\ndirectory = \"b\"\n"
    );
    let (line, message) = wrong(&twice);
    assert!(line == 5 && message.contains("/a"), "{message}");
    let (line, _) = wrong(&format!(
        "{start}directory = \"a\"\ncache_control = \"a\\nb\"\n"
    ));
    assert_eq!(line, 4);
}

#[test]
fn a_check_looks_at_files_too() {
    let home = TempDir::new().unwrap();
    let file = home.path().join("serve.toml");
    let check = |text: &str| {
        let state = "[tls]\nstate_dir = \"state\"\n";
        fs::write(&file, format!("{text}{state}")).unwrap();
        run([
            "serve",
            "--config",
            file.to_str().unwrap(),
            "--check-config",
        ])
    };
    let site = "[[site]]\n[[site.route]]\ndirectory = \"files\"\n";
    assert!(failed(&check(site), 7).contains("files"));
    fs::create_dir(home.path().join("files")).unwrap();
    succeeded(&check(site));
    assert!(!home.path().join("state").exists());
    let missing = format!("[[certificate]]\ncert = \"a.pem\"\nkey = \"a.key\"\n{site}");
    assert!(failed(&check(&missing), 7).contains("a.pem"));
    let message = failed(&check("workers = -1\n"), 7);
    assert!(message.contains("serve.toml:1: "), "{message}");
    assert!(failed(&check(""), 2).contains("[[site]]"));
    let message = failed(&run(["serve", "--config", "/nonexistent/serve.toml"]), 7);
    assert!(message.contains("/nonexistent/serve.toml"), "{message}");
}
