//! What a path policy opens and abandons, as addresses come and go.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use swiftwater::paths::{
    AccessTechnology, AddressFamilies, InterfaceAddress, LocalEnd, PathAction, PathPlanner,
    PathPolicy, PathRule, TechnologyOrder, is_possible_pair,
};
use swiftwater::quic::policy::{PathPreference, PathStatus};
use swiftwater::units::{Instant, PathId};

const WIFI: &str = "192.168.1.5";
const LTE: &str = "100.64.0.9";
const WIFI_V6: &str = "2001:db8::5";
const SERVER: &str = "203.0.113.1:443";
const SERVER_V6: &str = "[2001:db8:1::1]:443";

fn ip(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

fn address(text: &str) -> SocketAddr {
    text.parse().expect("an address")
}

fn interface(name: &str, text: &str) -> InterfaceAddress {
    InterfaceAddress {
        interface: name.to_owned(),
        ip: ip(text),
        scope_id: 0,
    }
}

fn wifi_and_lte() -> Vec<InterfaceAddress> {
    vec![
        interface("lo", "127.0.0.1"),
        interface("wlan0", WIFI),
        interface("wlan0", WIFI_V6),
        interface("wwan0", LTE),
    ]
}

fn of_interface(name: &str) -> PathRule {
    PathRule::new(LocalEnd::Interface(name.to_owned()))
}

fn of_address(text: &str) -> PathRule {
    PathRule::new(LocalEnd::Address(ip(text)))
}

fn at(seconds: f64) -> Instant {
    Instant::ZERO + Duration::from_secs_f64(seconds)
}

/// A planner whose first rule has path 0 from the Wi-Fi address.
fn connected(policy: PathPolicy) -> PathPlanner {
    let mut planner = PathPlanner::new(policy, vec![address(SERVER)]);
    let adopted = planner.adopt(at(0.0), PathId::ZERO, ip(WIFI), &wifi_and_lte());
    assert_eq!(adopted, Some(0));
    planner
}

fn both() -> PathPolicy {
    PathPolicy::new([of_interface("wlan0"), of_interface("wwan0")])
}

fn opens(rule: usize, local: &str, remote: &str) -> PathAction {
    PathAction::Open {
        rule,
        local: SocketAddr::new(ip(local), 0),
        remote: address(remote),
    }
}

#[test]
fn each_rule_gets_one_path_and_keeps_it() {
    let mut planner = connected(both());
    let (open, second) = ([PathId::ZERO], PathId::new(1));
    let actions = planner.plan(at(0.0), &wifi_and_lte(), &open);
    assert_eq!(actions, [opens(1, LTE, SERVER)]);
    planner.on_opening(1, second, ip(LTE));
    let open = [PathId::ZERO, second];
    assert_eq!(planner.plan(at(0.0), &wifi_and_lte(), &open), []);
    planner.on_opened(at(0.1), second);
    assert_eq!(planner.plan(at(100.0), &wifi_and_lte(), &open), []);
    assert_eq!(planner.next_attempt(), None);
}

#[test]
fn a_path_follows_its_address() {
    let mut planner = connected(both());
    let second = PathId::new(1);
    planner.on_opening(1, second, ip(LTE));
    let open = [PathId::ZERO, second];
    // The interface goes, the path with it; at once when it is back, perhaps with another address.
    let without = &wifi_and_lte()[..3];
    let actions = planner.plan(at(1.0), without, &open);
    assert_eq!(actions, [PathAction::Abandon { path: second }]);
    assert_eq!(planner.plan(at(1.0), without, &[PathId::ZERO]), []);
    let mut back = without.to_vec();
    back.push(interface("wwan0", "100.64.7.7"));
    let actions = planner.plan(at(1.1), &back, &[PathId::ZERO]);
    assert_eq!(actions, [opens(1, "100.64.7.7", SERVER)]);
    planner.on_opening(1, PathId::new(2), ip("100.64.7.7"));
    // The address changes while the interface stays.
    let actions = planner.plan(at(2.0), &wifi_and_lte(), &[PathId::ZERO, PathId::new(2)]);
    let abandons = PathAction::Abandon {
        path: PathId::new(2),
    };
    assert_eq!(actions, [abandons, opens(1, LTE, SERVER)]);
}

#[test]
fn the_last_path_is_never_abandoned() {
    let mut planner = connected(both());
    let lte = &wifi_and_lte()[3..];
    let actions = planner.plan(at(0.0), lte, &[PathId::ZERO]);
    assert_eq!(actions, [opens(1, LTE, SERVER)]);
    planner.on_opening(1, PathId::new(1), ip(LTE));
    // Now there is another one.
    let open = [PathId::ZERO, PathId::new(1)];
    let abandons = PathAction::Abandon { path: PathId::ZERO };
    assert_eq!(planner.plan(at(0.1), lte, &open), [abandons]);
}

#[test]
fn failures_pause_a_rule_twice_as_long_each_time() {
    let mut planner = connected(PathPolicy {
        longest_pause: Duration::from_secs(5),
        ..both()
    });
    let open = [PathId::ZERO];
    let mut now = 0.0;
    for (nth, pause) in [1.0, 2.0, 4.0, 5.0, 5.0].into_iter().enumerate() {
        let id = PathId::new(nth as u32 + 1);
        assert_eq!(planner.plan(at(now), &wifi_and_lte(), &open).len(), 1);
        planner.on_opening(1, id, ip(LTE));
        planner.on_ended(at(now), id);
        assert_eq!(planner.next_attempt(), Some(at(now + pause)));
        assert_eq!(
            planner.plan(at(now + pause - 0.01), &wifi_and_lte(), &open),
            []
        );
        now += pause;
    }
    // One that worked for long starts afresh; so does one whose interface was gone.
    planner.on_opening(1, PathId::new(9), ip(LTE));
    planner.on_opened(at(now), PathId::new(9));
    planner.on_ended(at(now + 30.0), PathId::new(9));
    assert_eq!(planner.next_attempt(), Some(at(now + 31.0)));
    assert_eq!(
        planner.plan(at(now + 30.1), &wifi_and_lte()[..3], &open),
        []
    );
    assert_eq!(
        planner.plan(at(now + 30.2), &wifi_and_lte(), &open).len(),
        1
    );
    // What can't be bound or opened waits, too.
    planner.on_refused(at(now + 30.2), 1);
    assert_eq!(planner.plan(at(now + 30.3), &wifi_and_lte(), &open), []);
}

#[test]
fn nothing_is_opened_beyond_the_limits() {
    let mut planner = connected(PathPolicy {
        max_paths: 1,
        ..both()
    });
    assert_eq!(planner.plan(at(0.0), &wifi_and_lte(), &[PathId::ZERO]), []);
    let mut planner = connected(both());
    planner.set_available(false);
    assert_eq!(planner.plan(at(0.0), &wifi_and_lte(), &[PathId::ZERO]), []);
    planner.set_available(true);
    let actions = planner.plan(at(0.0), &wifi_and_lte(), &[PathId::ZERO]);
    assert_eq!(actions.len(), 1);
}

#[test]
fn status_and_cost_are_set_once_for_each_path() {
    let metered = of_interface("wwan0").backup().cost(3);
    let mut planner = connected(PathPolicy::new([of_interface("wlan0"), metered]));
    let id = PathId::new(1);
    let _ = planner.plan(at(0.0), &wifi_and_lte(), &[PathId::ZERO]);
    planner.on_opening(1, id, ip(LTE));
    let preference = PathPreference {
        status: PathStatus::Backup,
        cost: 3,
    };
    let open = [PathId::ZERO, id];
    let actions = planner.plan(at(0.0), &wifi_and_lte(), &open);
    let prefers = PathAction::Prefer {
        path: id,
        preference,
    };
    assert_eq!(actions, [prefers]);
    assert_eq!(planner.plan(at(0.1), &wifi_and_lte(), &open), []);
}

#[test]
fn a_server_with_several_addresses_is_reached_by_the_family_that_fits() {
    let rules = [of_interface("wwan0"), of_interface("wlan0")];
    let remotes = vec![address(SERVER_V6), address(SERVER)];
    let mut planner = PathPlanner::new(PathPolicy::new(rules.clone()), remotes.clone());
    let actions = planner.plan(at(0.0), &wifi_and_lte(), &[PathId::ZERO]);
    let expected = [opens(0, LTE, SERVER), opens(1, WIFI_V6, SERVER_V6)];
    assert_eq!(actions, expected);
    let only_v4 = PathPolicy {
        families: AddressFamilies::V4,
        ..PathPolicy::new(rules)
    };
    let mut planner = PathPlanner::new(only_v4, remotes);
    let actions = planner.plan(at(0.0), &wifi_and_lte(), &[PathId::ZERO]);
    assert_eq!(actions, [opens(0, LTE, SERVER), opens(1, WIFI, SERVER)]);
    let to = of_address(LTE).to(address("198.51.100.2:444"));
    let mut planner = PathPlanner::new(PathPolicy::new([to]), vec![address(SERVER)]);
    let actions = planner.plan(at(0.0), &wifi_and_lte(), &[]);
    assert_eq!(actions, [opens(0, LTE, "198.51.100.2:444")]);
}

#[test]
fn impossible_pairs_are_never_tried() {
    let rules = [
        of_address("127.0.0.1"),
        of_address("127.0.0.2"),
        of_address(WIFI_V6),
    ];
    let mut planner = PathPlanner::new(PathPolicy::new(rules.clone()), vec![address(SERVER)]);
    assert_eq!(planner.plan(at(0.0), &wifi_and_lte(), &[]), []);
    // Every address of 127/8 is this host's.
    let mut planner = PathPlanner::new(PathPolicy::new(rules), vec![address("127.0.0.1:443")]);
    let actions = planner.plan(at(0.0), &wifi_and_lte(), &[]);
    let expected = [
        opens(0, "127.0.0.1", "127.0.0.1:443"),
        opens(1, "127.0.0.2", "127.0.0.1:443"),
    ];
    assert_eq!(actions, expected);
}

#[test]
fn pairs_need_one_family_and_one_scope() {
    let link_local = |scope: u32, text: &str| -> SocketAddr {
        let mut address = address(text);
        if let SocketAddr::V6(v6) = &mut address {
            v6.set_scope_id(scope);
        }
        address
    };
    let possible = [
        (address("10.0.0.1:0"), address("203.0.113.1:443")),
        (address("127.0.0.2:0"), address("127.0.0.1:443")),
        (address("[::1]:0"), address("[::1]:443")),
        (address("169.254.1.1:0"), address("169.254.1.2:443")),
        (link_local(2, "[fe80::1]:0"), link_local(2, "[fe80::2]:443")),
        (address("[2001:db8::1]:0"), address("[2001:db8::2]:443")),
        (address("10.0.0.1:0"), address("[::ffff:203.0.113.1]:443")),
    ];
    for (local, remote) in possible {
        assert!(is_possible_pair(local, remote), "{local} {remote}");
    }
    let impossible = [
        (address("10.0.0.1:0"), address("[2001:db8::2]:443")),
        (address("127.0.0.1:0"), address("203.0.113.1:443")),
        (address("10.0.0.1:0"), address("127.0.0.1:443")),
        (link_local(2, "[fe80::1]:0"), address("[2001:db8::2]:443")),
        (address("[2001:db8::1]:0"), link_local(2, "[fe80::2]:443")),
        (link_local(2, "[fe80::1]:0"), link_local(3, "[fe80::2]:443")),
        (address("169.254.1.1:0"), address("203.0.113.1:443")),
        (address("0.0.0.0:0"), address("203.0.113.1:443")),
        (address("10.0.0.1:0"), address("224.0.0.1:443")),
    ];
    for (local, remote) in impossible {
        assert!(!is_possible_pair(local, remote), "{local} {remote}");
    }
}

/// Wi-Fi, then LTE on `wwan0`.
fn by_technology(cellular: AccessTechnology) -> PathPolicy {
    PathPolicy::new([
        of_interface("wlan0").over(AccessTechnology::WiFi),
        of_interface("wwan0").over(cellular),
        of_address("192.0.2.77"),
    ])
}

#[test]
fn the_best_access_technology_opens_first() {
    let first = |policy: &PathPolicy, order: &TechnologyOrder| {
        let policy = policy.clone().ordered_by(order);
        policy.first_local(address(SERVER), &wifi_and_lte())
    };
    let at_port_0 = |text: &str| Some(SocketAddr::new(ip(text), 0));
    let table = TechnologyOrder::default();
    let lte = by_technology(AccessTechnology::Lte);
    assert_eq!(first(&lte, &table), at_port_0(WIFI));
    for better in [
        AccessTechnology::FiveGStandalone,
        AccessTechnology::FiveGNonStandalone,
    ] {
        assert_eq!(first(&by_technology(better), &table), at_port_0(LTE));
    }
    // Another table, as for another country.
    let lte_first = TechnologyOrder::new([AccessTechnology::Lte, AccessTechnology::WiFi]);
    assert_eq!(first(&lte, &lte_first), at_port_0(LTE));
    let unnamed = TechnologyOrder::new([]);
    assert_eq!(first(&lte, &unnamed), at_port_0(WIFI), "as the rules come");
}

#[test]
fn backups_and_unknown_technologies_open_last() {
    let mut policy = by_technology(AccessTechnology::FiveGStandalone);
    policy.rules[1].preference.status = PathStatus::Backup;
    policy.rules.swap(0, 2);
    let ordered = policy.ordered_by(&TechnologyOrder::default());
    let technologies: Vec<_> = ordered.rules.iter().map(|rule| rule.technology).collect();
    let wanted = [
        Some(AccessTechnology::WiFi),
        None,
        Some(AccessTechnology::FiveGStandalone),
    ];
    assert_eq!(technologies, wanted);
}

#[test]
fn the_first_path_starts_where_the_server_can_be_reached() {
    let first = |policy: PathPolicy, remote: &str, interfaces: &[InterfaceAddress]| {
        policy.first_local(address(remote), interfaces)
    };
    let policy = || by_technology(AccessTechnology::Lte);
    let all = wifi_and_lte();
    let v6 = first(policy(), SERVER_V6, &all);
    assert_eq!(v6, Some(SocketAddr::new(ip(WIFI_V6), 0)));
    let lte_only = [interface("wwan0", LTE)];
    let at_lte = Some(SocketAddr::new(ip(LTE), 0));
    assert_eq!(first(policy(), SERVER, &lte_only), at_lte);
    assert_eq!(first(policy(), SERVER_V6, &lte_only), None);
    let mut elsewhere = policy();
    elsewhere.rules[0].remote = Some(address(SERVER_V6));
    assert_eq!(first(elsewhere, SERVER, &all), at_lte);
}
