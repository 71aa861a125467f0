use super::*;

const MINUTE: Duration = Duration::from_secs(60);

fn origin(name: &str) -> Origin {
    Origin::of(&format!("https://{name}/").parse().unwrap()).unwrap()
}

fn memory() -> Broken {
    Broken::new(BackOff {
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
fn networks_and_origins_are_told_apart() {
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
    assert_eq!(memory.pairs.len(), CAPACITY);
    let last = origin(&format!("host{}", 2 * CAPACITY - 1));
    assert!(memory.is_broken(here, &last, begin + MINUTE / 2));
    assert!(!memory.is_broken(here, &origin("host0"), begin));
}
