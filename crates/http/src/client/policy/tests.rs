use super::*;

const OPEN: Facts = Facts {
    https: true,
    quic: true,
    proxied: false,
    broken: false,
    pending: false,
    hint: Some(Hint::AltSvc),
};

#[test]
fn each_policy_meets_each_obstacle() {
    let obstacles = [
        (
            Facts {
                https: false,
                ..OPEN
            },
            Why::PlainText,
        ),
        (
            Facts {
                quic: false,
                ..OPEN
            },
            Why::NoQuic,
        ),
        (
            Facts {
                proxied: true,
                ..OPEN
            },
            Why::Proxy,
        ),
    ];
    for (facts, why) in obstacles {
        assert_eq!(decide(Policy::Race, facts), Decision::Tcp(why));
        assert_eq!(decide(Policy::PreferHttp3, facts), Decision::Tcp(why));
        assert_eq!(decide(Policy::NoHttp3, facts), Decision::Tcp(Why::Policy));
        let only = decide(Policy::Http3Only, facts);
        assert_eq!(only, Decision::Impossible(why));
    }
}

#[test]
fn only_a_race_needs_a_hint() {
    let unknown = Facts { hint: None, ..OPEN };
    assert_eq!(decide(Policy::Race, unknown), Decision::Tcp(Why::NoHint));
    let prefer = Decision::Http3 {
        why: Why::Hinted(Hint::Assumed),
        tcp: Tcp::AfterFailure,
    };
    assert_eq!(decide(Policy::PreferHttp3, unknown), prefer);
    let only = Decision::Http3 {
        why: Why::Policy,
        tcp: Tcp::Never,
    };
    assert_eq!(decide(Policy::Http3Only, unknown), only);
    let race = Decision::Http3 {
        why: Why::Hinted(Hint::AltSvc),
        tcp: Tcp::AfterDelay,
    };
    assert_eq!(decide(Policy::Race, OPEN), race);
}

#[test]
fn failures_count_until_a_connection_stands() {
    let broken = Facts {
        broken: true,
        ..OPEN
    };
    let pending = Facts {
        pending: true,
        ..OPEN
    };
    for policy in [Policy::Race, Policy::PreferHttp3] {
        assert_eq!(decide(policy, broken), Decision::Tcp(Why::QuicBroken));
        assert_eq!(decide(policy, pending), Decision::Tcp(Why::QuicPending));
        let stands = Facts {
            hint: Some(Hint::Connected),
            ..broken
        };
        assert!(matches!(decide(policy, stands), Decision::Http3 { .. }));
    }
    let only = decide(Policy::Http3Only, broken);
    assert!(matches!(only, Decision::Http3 { .. }));
}
