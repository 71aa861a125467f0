//! Text formats of users, and error messages.

use std::time::Duration;

use swiftwater_link::{
    Buffer, Jitter, LinkConfig, LossModel, Rate, Reorder, ReorderBy, parse_duration,
    parse_probability, parse_rate,
};
use swiftwater_units::{Bandwidth, ByteCount, PacketCount};

#[test]
fn rates() {
    for (text, bps) in [
        ("100mbit", 100_000_000),
        ("12.5Mbit/s", 12_500_000),
        ("800kbps", 800_000),
        (" 1 gbit ", 1_000_000_000),
        ("56000bit", 56_000),
        ("0.1mbps", 100_000),
        ("10000gbit", 10_000_000_000_000),
    ] {
        assert_eq!(parse_rate(text), Ok(Bandwidth::from_bps(bps)), "{text}");
    }
    for (text, part) in [
        ("100", "add a unit"),
        ("10MB/s", "bits, not bytes"),
        ("fast", "such as"),
        ("-1mbit", "such as"),
        ("1e9bit", "units are"),
        ("1.2.3mbit", "such as"),
        (".", "such as"),
        ("", "such as"),
        ("10001gbit", "at most"),
        ("inf", "such as"),
    ] {
        let error = parse_rate(text).unwrap_err().to_string();
        assert!(
            error.contains(part) && error.contains(&format!("'{text}'")),
            "{error}"
        );
    }
    assert_eq!("Unlimited".parse(), Ok(Rate::Unlimited));
    assert_eq!("1mbit".parse(), Ok(Rate::Constant(Bandwidth::from_mbps(1))));
}

#[test]
fn durations() {
    for (text, nanos) in [
        ("30.6ms", 30_600_000),
        ("1s", 1_000_000_000),
        ("250us", 250_000),
        ("250µs", 250_000),
        ("40 NS", 40),
        ("2min", 120_000_000_000),
        ("0", 0),
    ] {
        assert_eq!(
            parse_duration(text),
            Ok(Duration::from_nanos(nanos)),
            "{text}"
        );
    }
    for (text, part) in [
        ("30", "add a unit"),
        ("1h", "units are"),
        ("-1s", "such as"),
        ("99999999999999s", "too long"),
    ] {
        let error = parse_duration(text).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn buffers() {
    let bytes = |n| Buffer::Bytes(ByteCount::new(n));
    for (text, buffer) in [
        ("1bdp", Buffer::Bdp(1.0)),
        ("0.25 BDP", Buffer::Bdp(0.25)),
        ("64kB", bytes(64_000)),
        ("64KiB", bytes(65_536)),
        ("1.5MB", bytes(1_500_000)),
        ("125000", bytes(125_000)),
        ("100p", Buffer::Packets(PacketCount::new(100))),
        ("100pkts", Buffer::Packets(PacketCount::new(100))),
        ("unlimited", Buffer::Unlimited),
    ] {
        assert_eq!(text.parse(), Ok(buffer), "{text}");
        assert_eq!(buffer.to_string().parse(), Ok(buffer));
    }
    for text in ["", "big", "1.5p", "3x", "-1"] {
        let error = text.parse::<Buffer>().unwrap_err().to_string();
        assert!(error.contains("1bdp"), "{error}");
    }
}

#[test]
fn losses() {
    let ge = |p, r, h, k| LossModel::GilbertElliott { p, r, h, k };
    let stepped = |p, r, h, k, nanos| LossModel::GilbertElliottStepped {
        p,
        r,
        h,
        k,
        step: Duration::from_nanos(nanos),
    };
    for (text, model) in [
        ("0.1%", LossModel::Bernoulli(0.001)),
        ("0.001", LossModel::Bernoulli(0.001)),
        ("0", LossModel::None),
        ("none", LossModel::None),
        ("ge:0.01,0.25", ge(0.01, 0.25, 0.0, 1.0)),
        ("ge:1%,25%,0.1", ge(0.01, 0.25, 0.1, 1.0)),
        ("ge:0.01, 0.25, 0.1, 0.99", ge(0.01, 0.25, 0.1, 0.99)),
        (
            "ge:0.2,0.8,0.4,0.99@30ms",
            stepped(0.2, 0.8, 0.4, 0.99, 30_000_000),
        ),
        ("ge:20%,80%@1.5ms", stepped(0.2, 0.8, 0.0, 1.0, 1_500_000)),
        (
            "ge:0,1@1000001us",
            stepped(0.0, 1.0, 0.0, 1.0, 1_000_001_000),
        ),
    ] {
        assert_eq!(text.parse(), Ok(model), "{text}");
        assert_eq!(model.to_string().parse(), Ok(model));
    }
    for text in [
        "",
        "1.5",
        "101%",
        "ge:",
        "ge:0.1",
        "ge:1,1,1,1,1",
        "ge:2,1",
        "ge:0.1,0.2@",
        "ge:0.1,0.2@30",
        "often",
    ] {
        let error = text.parse::<LossModel>().unwrap_err().to_string();
        assert!(error.contains("ge:p,r"), "{error}");
    }
    assert_eq!(parse_probability("100%"), Ok(1.0));
    assert!(parse_probability("5").is_err());
}

#[test]
fn configurations_out_of_range_name_the_field() {
    let config = LinkConfig::default;
    let long = Duration::from_secs(100_000);
    let held = |count, at_most| Reorder {
        probability: 0.1,
        by: ReorderBy::Packets { count, at_most },
    };
    for (config, field) in [
        (config().rate(Bandwidth::ZERO), "rate"),
        (config().rate(Bandwidth::MAX), "rate"),
        (config().delay(long), "delay"),
        (config().bdp_rtt(long), "bdp_rtt"),
        (config().jitter(Jitter::Uniform(long)), "jitter"),
        (
            config().jitter(Jitter::Normal {
                mean: long,
                deviation: long,
            }),
            "jitter",
        ),
        (config().buffer(Buffer::Bytes(ByteCount::ZERO)), "buffer"),
        (
            config().buffer(Buffer::Packets(PacketCount::ZERO)),
            "buffer",
        ),
        (config().buffer(Buffer::Bdp(-1.0)), "buffer"),
        (config().loss(LossModel::Bernoulli(1.1)), "loss"),
        (config().loss(LossModel::Bernoulli(f64::NAN)), "loss"),
        (
            config().loss(LossModel::GilbertElliott {
                p: 0.1,
                r: -0.1,
                h: 0.0,
                k: 1.0,
            }),
            "loss: r",
        ),
        (
            config().loss(LossModel::GilbertElliottStepped {
                p: 0.1,
                r: 0.1,
                h: 2.0,
                k: 1.0,
                step: Duration::from_millis(30),
            }),
            "loss: h",
        ),
        (
            config().loss(LossModel::GilbertElliottStepped {
                p: 0.1,
                r: 0.1,
                h: 0.0,
                k: 1.0,
                step: Duration::from_micros(999),
            }),
            "loss: a step",
        ),
        (config().duplicate(2.0), "duplicate"),
        (config().corrupt(-0.5), "corrupt"),
        (config().reorder(held(0, Duration::ZERO)), "reorder"),
        (config().reorder(held(1, long)), "reorder"),
        (config().mtu(28), "mtu"),
        (config().per_packet_overhead(70_000), "per_packet_overhead"),
        (config().trace_offset(long), "trace_offset"),
    ] {
        let error = config.validate().unwrap_err().to_string();
        assert!(error.contains(field), "{error}");
    }
    assert_eq!(config().validate(), Ok(()));
}
