//! The command line: what is accepted, what is refused and how.

use std::ffi::OsString;
use std::time::Duration;

use clap::CommandFactory;
use proptest::prelude::*;
use swiftwater_cli::cli::{Cli, Command};
use swiftwater_cli::commands::serve::config::effective;
use swiftwater_cli::demo::Story;
use swiftwater_cli::exit::{Exit, Failure};
use swiftwater_cli::get_args::Protocol;
use swiftwater_cli::migrate::{Destination, MigrateAfter};
use swiftwater_cli::size::parse_size;

fn parse(line: &str) -> Result<Cli, Result<(), Failure>> {
    Cli::from_args(line.split_whitespace().map(OsString::from))
}

#[track_caller]
fn refused(line: &str) -> String {
    let failure = parse(line).unwrap_err().unwrap_err();
    assert_eq!(failure.exit, Exit::Usage);
    assert_eq!(failure.message().lines().count(), 1);
    failure.message().to_owned()
}

#[test]
fn definition_is_consistent() {
    Cli::command().debug_assert();
}

#[test]
fn every_command_has_examples() {
    for command in Cli::command().get_subcommands() {
        let inner: Vec<_> = command.get_subcommands().collect();
        let commands = if inner.is_empty() {
            vec![command]
        } else {
            inner
        };
        for command in commands {
            // Where the short help is shorter, `--help` has them.
            let help = command
                .get_after_long_help()
                .or_else(|| command.get_after_help())
                .map(ToString::to_string)
                .unwrap_or_default();
            assert!(
                help.contains("Example"),
                "{} has no example",
                command.get_name()
            );
        }
    }
}

#[test]
fn ports_and_names_are_addresses_to_listen_on() {
    for (text, address) in [
        (":4434", "[::]:4434"),
        ("4434", "[::]:4434"),
        ("localhost:4434", "127.0.0.1:4434"),
    ] {
        let command = format!("swiftwater serve . --listen {text} --metrics {text}");
        let Command::Serve(serve) = parse(&command).unwrap().command else {
            panic!("{command}")
        };
        let address = address.parse().unwrap();
        assert_eq!(serve.listen, Some(address), "{text}");
        assert_eq!(serve.metrics, Some(address), "{text}");
    }
    let message = refused("swiftwater serve . --listen here");
    assert!(message.contains("localhost:4433"), "{message}");
}

#[test]
fn defaults_suit_a_first_try() {
    let Command::Serve(serve) = parse("swiftwater serve .").unwrap().command else {
        panic!()
    };
    let config = effective(&serve).unwrap();
    assert_eq!(config.listen.port(), 4433);
    assert!(config.listen.ip().is_unspecified());
    assert!(config.tcp && config.compression && config.workers == 1);
    assert!(serve.identity.cert.is_none() && !serve.retry && !serve.json);

    let Command::Get(get) = parse("swiftwater get https://h/x").unwrap().command else {
        panic!()
    };
    assert!(get.output.is_none() && get.protocol == Protocol::Auto);
    assert!(!get.force && !get.trust.insecure && get.trust.ca.is_none());
    assert!(get.parallel > 1);

    let Command::Demo(demo) = parse("swiftwater demo").unwrap().command else {
        panic!()
    };
    assert!(demo.story.is_none() && demo.live.recovery.is_empty() && !demo.live.quick);
    let Command::Demo(demo) = parse("swiftwater demo files --json").unwrap().command else {
        panic!()
    };
    let Some(Story::Files(files)) = demo.story else {
        panic!()
    };
    assert!(files.presets.is_empty() && files.json && !files.quick);
    // The default subcommand takes its flags with and without its name.
    assert!(parse("swiftwater demo --loss 3% --json").is_ok());
    assert!(parse("swiftwater demo live --loss 3% --cc cubic --json").is_ok());
    assert!(parse("swiftwater demo files --loss 3%").is_err());
}

#[test]
fn sim_takes_the_documented_line() {
    let line = "swiftwater sim --flow cubic --flow newreno,start=2s,bytes=5MB --rate 100mbit \
                --rtt 30.6ms --buffer 1bdp --loss 0.1% --duration 40s --seed 1 --json";
    let Command::Sim(sim) = parse(line).unwrap().command else {
        panic!()
    };
    assert_eq!(sim.flows.len(), 2);
    assert_eq!(sim.flows[0].controller, "cubic");
    assert_eq!(sim.flows[0].bytes, None);
    assert_eq!(sim.flows[1].start, Duration::from_secs(2));
    assert_eq!(sim.flows[1].bytes, Some(5_000_000));
    assert_eq!(sim.rtt, Duration::from_micros(30_600));
    assert_eq!(sim.duration, Duration::from_secs(40));
    assert!(sim.json);
}

#[test]
fn wrong_values_are_explained_in_one_line() {
    assert!(refused("swiftwater sim --flow carrier-pigeon").contains("cubic"));
    assert!(refused("swiftwater sim --flow cubic,speed=3").contains("start="));
    assert!(refused("swiftwater sim --rate fast").contains("mbit"));
    assert!(refused("swiftwater sim --loss 120%").contains("--loss"));
    assert!(refused("swiftwater sim --rtt 30").contains("unit"));
    assert!(refused("swiftwater get ftp://h/x").contains("https"));
    assert!(refused("swiftwater get").contains("URL"));
    assert!(refused("swiftwater serve . --listen nowhere").contains("--listen"));
    assert!(refused("swiftwater serve . --cert a.pem").contains("--key"));
    assert!(refused("swiftwater serve . --profile slow").contains("bulk"));
    assert!(refused("swiftwater get https://h/x --ca a --insecure").contains("--insecure"));
    assert!(refused("swiftwater get https://h/x -j 0").contains("parallel"));
    assert!(
        refused("swiftwater relay --listen 127.0.0.1:1 --to h:1 --jitter much").contains("5ms")
    );
    assert!(refused("swiftwater frobnicate").contains("frobnicate"));
    assert!(refused("swiftwater").contains("--help"));
}

#[test]
fn transport_flags_may_follow_what_perf_measures() {
    let line = "swiftwater perf client h:1 download --bytes 1G --insecure --suite aes128 --json";
    assert!(parse(line).is_ok());
    assert!(parse("swiftwater perf loopback rps --in-flight 4 --cc newreno").is_ok());
    assert!(parse("swiftwater perf loopback rps --connections 4 --protocol h3").is_ok());
    assert!(refused("swiftwater perf loopback rps --protocol h4").contains("h3"));
    assert!(refused("swiftwater perf loopback rps --connections 0").contains("1..=1000"));
}

#[test]
fn sizes() {
    assert_eq!(parse_size("500000"), Ok(500_000));
    assert_eq!(parse_size("1G"), Ok(1_000_000_000));
    assert_eq!(parse_size("1.5 MB"), Ok(1_500_000));
    assert_eq!(parse_size("16MiB"), Ok(16 << 20));
    assert_eq!(parse_size("0"), Ok(0));
    for bad in [
        "",
        "MB",
        "-1",
        "1.5",
        "1e9",
        "5 apples",
        "99999999999G",
        "1..2k",
        "NaN",
        "infk",
    ] {
        assert!(parse_size(bad).is_err(), "{bad}");
    }
}

proptest! {
    #[test]
    fn no_size_panics(text in ".{0,30}") {
        let _ = parse_size(&text);
    }

    #[test]
    fn whole_sizes_are_exact(n in 0..u64::MAX / 1_000) {
        prop_assert_eq!(parse_size(&format!("{n}k")), Ok(n * 1_000));
    }

    #[test]
    fn no_command_line_panics(words in prop::collection::vec("[ -~]{0,12}", 0..6)) {
        let line = ["swiftwater".to_owned()].into_iter().chain(words);
        let _ = Cli::from_args(line.map(OsString::from));
    }
}

#[test]
fn policies_are_checked_before_anything_starts_and_listed() {
    for line in ["sim", "demo", "get https://h/x", "perf loopback rps"] {
        assert!(parse(&format!("swiftwater {line} --recovery arq")).is_ok());
        let refused = refused(&format!("swiftwater {line} --recovery wishful"));
        assert!(refused.contains("wishful"), "{refused}");
    }
    for command in ["sim", "demo", "serve"] {
        let mut cli = Cli::command();
        let command = cli.find_subcommand_mut(command).unwrap();
        let help = command.render_long_help().to_string();
        let help: Vec<_> = help.split_whitespace().collect();
        for name in swiftwater::policies::names() {
            assert!(help.join(" ").contains(&name), "{name} is not listed");
        }
    }
}

#[test]
fn versions_of_quic_are_a_list_best_first() {
    use swiftwater_cli::transport::QuicVersion;

    for (flag, expected) in [
        ("", &[][..]),
        ("--quic-version 2", &[QuicVersion::Two]),
        ("--quic-version 2,1", &[QuicVersion::Two, QuicVersion::One]),
        ("--quic-version v1", &[QuicVersion::One]),
    ] {
        let Command::Serve(serve) = parse(&format!("swiftwater serve . {flag}"))
            .unwrap()
            .command
        else {
            panic!()
        };
        assert_eq!(serve.tuning.basics.quic_version, expected);
    }
    for (flag, expected) in [("", None), ("--first-version 1", Some(QuicVersion::One))] {
        let Command::Get(get) = parse(&format!("swiftwater get https://h/x {flag}"))
            .unwrap()
            .command
        else {
            panic!()
        };
        assert_eq!(get.tuning.basics.first_version, expected);
    }
    for wrong in ["3", "1,3", "1,,2", "0x6b3343cf"] {
        let message = refused(&format!("swiftwater serve . --quic-version {wrong}"));
        assert!(message.contains("quic-version"), "{message}");
    }
}

#[test]
fn when_and_where_to_migrate() {
    let get = |text: &str| {
        let line = format!("swiftwater get https://h/x --migrate-after {text}");
        match parse(&line).map(|cli| cli.command) {
            Ok(Command::Get(get)) => get.migrate_after,
            _ => None,
        }
    };
    let plan = |bytes, to| Some(MigrateAfter { bytes, to });
    assert_eq!(get("1MB"), plan(1_000_000, Destination::Port));
    assert_eq!(get("0,port"), plan(0, Destination::Port));
    let ip = "192.0.2.7".parse().unwrap();
    assert_eq!(get("5k,192.0.2.7"), plan(5_000, Destination::Ip(ip)));
    let address = "[2001:db8::1]:99".parse().unwrap();
    assert_eq!(
        get("5,[2001:db8::1]:99"),
        plan(5, Destination::Address(address))
    );
    for wrong in [
        "",
        "x",
        "1MB,",
        "1MB,example.org",
        "-1",
        "1MB,192.0.2.7:99999",
    ] {
        assert_eq!(get(wrong), None, "{wrong}");
    }
}
