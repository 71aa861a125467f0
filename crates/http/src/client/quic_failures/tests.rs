use super::*;

const MINUTE: Duration = Duration::from_secs(60);

fn origin(name: &str) -> Origin {
    Origin::of(&format!("https://{name}/").parse().unwrap()).unwrap()
}

fn memory() -> QuicFailures {
    QuicFailures::new(BackOff {
        first: MINUTE,
        longest: 5 * MINUTE,
    })
}

#[test]
fn the_pause_doubles_up_to_the_longest() {
    let (mut memory, here, a) = (memory(), Network::default(), origin("a"));
    let mut now = Instant::now();
    assert!(!memory.is_broken(here, &a, now));
    for minutes in [1, 2, 4, 5, 5] {
        memory.failed(here, &a, now);
        let end = now + minutes * MINUTE;
        assert!(memory.is_broken(here, &a, end - Duration::from_secs(1)));
        assert!(!memory.is_broken(here, &a, end));
        now = end;
    }
}

#[test]
fn success_begins_anew() {
    let (mut memory, here, a) = (memory(), Network::default(), origin("a"));
    let now = Instant::now();
    memory.failed(here, &a, now);
    memory.failed(here, &a, now);
    memory.worked(here, &a);
    assert!(!memory.is_broken(here, &a, now));
    memory.failed(here, &a, now);
    assert!(!memory.is_broken(here, &a, now + MINUTE));
}

#[test]
fn networks_and_origins_are_distinguished() {
    let mut memory = memory();
    let here = Network::default();
    let there = Network {
        v4: Some([10, 0, 0, 1].into()),
        v6: None,
    };
    let now = Instant::now();
    memory.failed(here, &origin("a"), now);
    assert!(memory.is_broken(here, &origin("a"), now));
    assert!(!memory.is_broken(there, &origin("a"), now));
    assert!(!memory.is_broken(here, &origin("b"), now));
    assert!(!memory.is_broken(here, &origin("a:444"), now));
}

#[test]
fn the_memory_is_bounded_and_keeps_the_latest() {
    let (mut memory, here) = (memory(), Network::default());
    let begin = Instant::now();
    for nth in 0..2 * CAPACITY as u32 {
        let now = begin + Duration::from_millis(nth.into());
        memory.failed(here, &origin(&format!("host{nth}")), now);
    }
    assert_eq!(memory.pairs().count(), CAPACITY);
    let last = origin(&format!("host{}", 2 * CAPACITY - 1));
    assert!(memory.is_broken(here, &last, begin + MINUTE / 2));
    assert!(!memory.is_broken(here, &origin("host0"), begin));
}

#[test]
fn what_is_known_can_be_carried_to_another_run() {
    let (mut memory, here, a) = (memory(), Network::default(), origin("a"));
    let (now, clock) = (Instant::now(), SystemTime::UNIX_EPOCH + 1000 * MINUTE);
    memory.failed(here, &a, now);
    memory.failed(here, &a, now);
    let known = memory.export(now, clock);
    assert_eq!(known.len(), 1);
    assert_eq!((known[0].failures, known[0].until), (2, clock + 2 * MINUTE));

    // A minute later, in a process with another monotonic clock.
    let later = now + 500 * MINUTE;
    let mut next = QuicFailures::new(memory.back_off);
    next.import(known.clone(), later, clock + MINUTE);
    assert!(next.is_broken(here, &a, later + MINUTE / 2));
    assert!(!next.is_broken(here, &a, later + MINUTE));
    // The third failure gets the third pause.
    next.failed(here, &a, later + MINUTE);
    assert!(next.is_broken(here, &a, later + 4 * MINUTE));
    // An expired entry stays expired, and is exported as expired.
    let mut last = QuicFailures::new(memory.back_off);
    last.import(known.clone(), later, clock + 60 * MINUTE);
    assert!(!last.is_broken(here, &a, later));
    assert!(last.export(later, clock + 60 * MINUTE)[0].until <= clock + 60 * MINUTE);
    // A clock that was set back does not make the pause longer than the longest pause.
    last.import(known, later, SystemTime::UNIX_EPOCH);
    assert!(!last.is_broken(here, &a, later + memory.back_off.longest));
}
