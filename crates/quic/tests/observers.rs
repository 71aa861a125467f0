//! Several observers of one connection.

use std::sync::{Arc, Mutex};

use swiftwater_quic::observe::{Both, Observation, Observer, ObserverFactory, Owner};
use swiftwater_units::{Instant, Side};

/// Writes its name and the time of what it receives, on one side only.
#[derive(Clone, Debug)]
struct Scribe {
    name: &'static str,
    side: Side,
    told: Arc<Mutex<Vec<(&'static str, u64)>>>,
}

impl ObserverFactory for Scribe {
    fn observer(&self, side: Side) -> Option<Box<dyn Observer>> {
        (side == self.side).then(|| Box::new(self.clone()) as Box<dyn Observer>)
    }
}

impl Observer for Scribe {
    fn observe(&mut self, now: Instant, _: &Observation<'_>) {
        let mut told = self.told.lock().expect("no thread panicked");
        told.push((self.name, now.as_nanos()));
    }
}

#[test]
fn both_receive_everything_in_order_and_each_on_its_side() {
    let told = Arc::new(Mutex::new(Vec::new()));
    let scribe = |name, side| -> Arc<dyn ObserverFactory> {
        let told = Arc::clone(&told);
        Arc::new(Scribe { name, side, told })
    };
    let said = |factory: &Both, side| {
        if let Some(mut observer) = factory.observer(side) {
            for nanos in [1, 2] {
                let observation = Observation::KeyUpdated {
                    generation: nanos,
                    initiator: Owner::Local,
                };
                observer.observe(Instant::from_nanos(nanos), &observation);
            }
        }
        std::mem::take(&mut *told.lock().expect("no thread panicked"))
    };
    let same = Both(scribe("a", Side::Server), scribe("b", Side::Server));
    let order = [("a", 1), ("b", 1), ("a", 2), ("b", 2)];
    assert_eq!(said(&same, Side::Server), order);
    assert!(same.observer(Side::Client).is_none());
    let other = Both(scribe("a", Side::Client), scribe("b", Side::Server));
    assert_eq!(said(&other, Side::Client), [("a", 1), ("a", 2)]);
    assert_eq!(said(&other, Side::Server), [("b", 1), ("b", 2)]);
}
