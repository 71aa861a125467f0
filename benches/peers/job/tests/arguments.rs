//! The command line that the runner uses.

#![allow(missing_docs, clippy::unwrap_used, reason = "tests")]

use clap::Parser;
use swiftwater_peers_job::{Arguments, ClientArguments, Controller, Direction, Job, Role};

fn client(words: &str) -> Result<ClientArguments, clap::Error> {
    let all = format!("program client --connect 127.0.0.1:4433 --ca ca.pem {words}");
    match Arguments::try_parse_from(all.split_whitespace())?.role {
        Role::Client(arguments) => Ok(arguments),
        Role::Server(_) => unreachable!("a client was asked for"),
    }
}

#[test]
fn a_server_is_told_all_of_its_settings() {
    let words = "program server --listen [::1]:4433 --cert cert.pem --key key.pem \
                 --mtu 1200 --tuned --lossy --http3 --controller bbr3 --workers 2";
    let arguments = Arguments::try_parse_from(words.split_whitespace()).unwrap();
    let Role::Server(arguments) = arguments.role else {
        unreachable!("a server was asked for");
    };
    assert_eq!(arguments.listen, "[::1]:4433".parse().unwrap());
    assert_eq!(arguments.cert.to_str(), Some("cert.pem"));
    assert_eq!(arguments.key.to_str(), Some("key.pem"));
    assert_eq!((arguments.settings.mtu, arguments.workers), (1200, 2));
    assert!(arguments.settings.tuned && arguments.settings.lossy);
    assert_eq!(arguments.settings.alpn(), b"h3");
    assert!(arguments.settings.require_streams().is_err());
    assert_eq!(arguments.settings.controller, Some(Controller::Bbr3));
}

#[test]
fn defaults_are_what_the_page_says() {
    let arguments = client("bulk --bytes 7").unwrap();
    assert_eq!(arguments.settings.mtu, 1452);
    assert!(!arguments.settings.tuned && !arguments.settings.lossy);
    assert_eq!(arguments.settings.controller, None);
    assert_eq!(arguments.settings.alpn(), b"bench");
    assert!(arguments.settings.require_streams().is_ok());
    assert_eq!(arguments.local(), "0.0.0.0:0".parse().unwrap());
    let Job::Bulk { bytes, direction } = arguments.job else {
        unreachable!("{:?}", arguments.job);
    };
    assert_eq!((bytes, direction), (7, Direction::Download));
}

#[test]
fn jobs_have_their_numbers() {
    assert!(matches!(
        client("bulk --bytes 1 --direction upload").unwrap().job,
        Job::Bulk {
            direction: Direction::Upload,
            ..
        }
    ));
    let requests = client("requests --seconds 0.5 --in-flight 3").unwrap().job;
    let Job::Requests {
        seconds,
        in_flight,
        up,
        down,
    } = requests
    else {
        unreachable!("{requests:?}");
    };
    assert!((seconds - 0.5).abs() < f64::EPSILON);
    assert_eq!((in_flight, up, down), (3, 100, 1024));
    assert!(matches!(
        client("handshakes --count 9").unwrap().job,
        Job::Handshakes {
            count: 9,
            parallel: 4
        }
    ));
    assert!(matches!(
        client("hold --connections 2 --streams 10").unwrap().job,
        Job::Hold {
            connections: 2,
            streams: 10
        }
    ));
}

#[test]
fn what_is_missing_or_unknown_is_refused() {
    for words in [
        "",
        "bulk",
        "bulk --bytes some",
        "bulk --bytes 1 --direction sideways",
        "requests",
        "dance",
        "bulk --bytes 1 --workers 2",
        "--controller bbr4 bulk --bytes 1",
    ] {
        assert!(client(words).is_err(), "{words}");
    }
}
