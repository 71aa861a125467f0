//! When a request on QUIC is also sent over TCP although packets arrive.

use std::time::Duration;

use swiftwater_select::{
    Arm, Config, Decision, Measured, Models, NetworkId, OriginHash, Outcome, RequestDescription,
    Selector, Strategy,
};
use swiftwater_units::Instant;

const FIRST_BYTE: Duration = Duration::from_millis(100);
const NETWORK: NetworkId = NetworkId(1);
const ORIGIN: OriginHash = OriginHash(1);

/// A user of QUIC whose responses always begin after the same time.
struct User {
    selector: Selector,
    now: Instant,
}

impl User {
    fn new(set: &[(&str, f64)]) -> Self {
        // Without experiments but the first one, so that nothing but the hedges changes.
        let strategy = Strategy::WiseV2 {
            trigger: false,
            rollback: false,
        };
        let mut config = Config::new(vec![Arm::h2(), Arm::h3()], strategy);
        for (name, value) in set {
            config.parameters.set(name, *value).unwrap();
        }
        let mut selector = Selector::new(config, Models::none(), 1).unwrap();
        let now = Instant::ZERO;
        selector.on_connection(now, NETWORK, ORIGIN, &Arm::h3());
        let mut user = Self { selector, now };
        user.experiment();
        user
    }

    /// The first experiment, which both arms end alike.
    fn experiment(&mut self) {
        loop {
            let decision = self.decide();
            let over = !decision.reason.is_probe();
            self.answer(&decision, &decision.arm, false);
            if over {
                return;
            }
        }
    }

    fn decide(&mut self) -> Decision {
        let request = RequestDescription::new(NETWORK, ORIGIN);
        self.selector.decide(self.now, &request)
    }

    /// A request that is answered over `arm`.
    fn request(&mut self, arm: &Arm, hedged: bool) {
        let decision = self.decide();
        assert_eq!(decision.arm, Arm::h3());
        self.answer(&decision, arm, hedged);
    }

    fn answer(&mut self, decision: &Decision, arm: &Arm, hedged: bool) {
        self.now += Duration::from_millis(100);
        let measured = Measured {
            first_byte: FIRST_BYTE,
            completion: FIRST_BYTE,
            waited: Duration::ZERO,
            bytes: 1_000,
            rtt: Some(Duration::from_millis(40)),
            traffic: None,
        };
        let outcome = Outcome {
            hedged,
            ..Outcome::new(arm.clone(), Ok(measured))
        };
        self.selector.on_outcome(self.now, decision.id, &outcome);
    }

    /// How many mean times to first byte the next request waits.
    fn factor(&mut self) -> f64 {
        let decision = self.decide();
        let hedge = decision.hedge.unwrap();
        hedge.without_response.as_secs_f64() / FIRST_BYTE.as_secs_f64()
    }
}

fn about(factor: f64, expected: f64) -> bool {
    (factor - expected).abs() < 0.01 * expected
}

#[test]
fn the_wait_doubles_after_a_hedge_that_was_not_needed() {
    let mut user = User::new(&[]);
    for expected in [2.0, 4.0, 8.0, 16.0, 20.0, 20.0] {
        let factor = user.factor();
        assert!(about(factor, expected), "{factor} instead of {expected}");
        user.request(&Arm::h3(), true);
    }
}

#[test]
fn it_is_half_as_long_after_one_that_tcp_answered() {
    let mut user = User::new(&[("failures", 20.0)]);
    user.request(&Arm::h3(), true);
    user.request(&Arm::h3(), true);
    for expected in [8.0, 4.0, 2.0, 2.0] {
        let factor = user.factor();
        assert!(about(factor, expected), "{factor} instead of {expected}");
        user.request(&Arm::h2(), true);
    }
}

#[test]
fn requests_without_a_hedge_leave_it_as_it_is() {
    let mut user = User::new(&[]);
    for _ in 0..20 {
        user.request(&Arm::h3(), false);
    }
    assert!(about(user.factor(), 2.0));
}

#[test]
fn another_network_forgets_it() {
    let mut user = User::new(&[]);
    user.request(&Arm::h3(), true);
    assert!(about(user.factor(), 4.0));
    user.selector.on_network_change(user.now, NETWORK);
    user.selector
        .on_connection(user.now, NETWORK, ORIGIN, &Arm::h3());
    user.experiment();
    assert!(about(user.factor(), 2.0));
}

#[test]
fn the_least_wait_is_never_above_the_greatest() {
    let mut user = User::new(&[("stall_factor", 1.5)]);
    for _ in 0..3 {
        assert!(about(user.factor(), 1.5));
        user.request(&Arm::h3(), true);
    }
}
