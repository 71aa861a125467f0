use super::*;

const STEP: Duration = Duration::from_millis(250);

fn v4(last: u8) -> SocketAddr {
    ([192, 0, 2, last], 443).into()
}

fn v6(last: u16) -> SocketAddr {
    ([0x2001, 0xdb8, 0, 0, 0, 0, 0, last], 443).into()
}

/// Runs the race with no attempt succeeding or failing: which attempt starts when, in steps.
fn schedule(mut race: Race, begin: Instant) -> Vec<(u32, AttemptTransport, SocketAddr)> {
    let mut starts = Vec::new();
    let mut now = begin;
    loop {
        while let Some(candidate) = race.start(now) {
            let steps = (now - begin).as_millis() / STEP.as_millis();
            starts.push((steps as u32, candidate.transport, candidate.address));
        }
        match race.wake_at() {
            Some(at) => now = at,
            None => return starts,
        }
    }
}

#[test]
fn quic_comes_first_and_tcp_a_step_later_address_by_address() {
    let now = Instant::now();
    let all = [v6(1), v6(2), v4(1)];
    let race = Race::new(&all, &all, Tcp::AfterDelay, STEP, now);
    assert_eq!(
        schedule(race, now),
        [
            (0, AttemptTransport::Quic, v6(1)),
            (1, AttemptTransport::Tcp, v6(1)),
            (2, AttemptTransport::Quic, v4(1)),
            (3, AttemptTransport::Tcp, v4(1)),
            (4, AttemptTransport::Quic, v6(2)),
            (5, AttemptTransport::Tcp, v6(2)),
        ]
    );
}

#[test]
fn the_first_attempt_of_tcp_alone_may_be_earlier() {
    let now = Instant::now();
    let all = [v6(1), v4(1)];
    let race = Race::new(&all, &all, Tcp::AfterDelay, STEP, now).first_tcp_after(Duration::ZERO);
    assert_eq!(
        schedule(race, now),
        [
            (0, AttemptTransport::Quic, v6(1)),
            (0, AttemptTransport::Tcp, v6(1)),
            (1, AttemptTransport::Quic, v4(1)),
            (2, AttemptTransport::Tcp, v4(1)),
        ]
    );
    let race = Race::new(&[], &all, Tcp::AfterDelay, STEP, now).first_tcp_after(Duration::ZERO);
    assert_eq!(
        schedule(race, now),
        [
            (0, AttemptTransport::Tcp, v6(1)),
            (1, AttemptTransport::Tcp, v4(1)),
        ]
    );
}

#[test]
fn a_failure_starts_the_next_at_once() {
    let now = Instant::now();
    let mut race = Race::new(&[v4(1)], &[v4(1)], Tcp::AfterDelay, STEP, now);
    assert_eq!(race.start(now).unwrap().transport, AttemptTransport::Quic);
    assert_eq!(race.start(now), None);
    assert_eq!(race.wake_at(), Some(now + STEP));
    race.failed(now + STEP / 5, AttemptTransport::Quic);
    assert!(!race.is_over() && !race.quic_runs() && race.quic_is_over());
    let next = race.start(now + STEP / 5).unwrap();
    assert_eq!(next.transport, AttemptTransport::Tcp);
    race.failed(now + STEP / 2, AttemptTransport::Tcp);
    assert!(race.is_over());
    assert_eq!(race.started(), 2);
}

#[test]
fn tcp_that_waits_for_failure_waits_for_all_of_quic() {
    let now = Instant::now();
    let all = [v4(1), v4(2)];
    let mut race = Race::new(&all, &all, Tcp::AfterFailure, STEP, now);
    assert!(race.start(now).is_some());
    let later = now + STEP;
    assert_eq!(race.start(later).unwrap().address, v4(2));
    let late = now + 20 * STEP;
    assert_eq!((race.start(late), race.wake_at()), (None, None));
    race.failed(late, AttemptTransport::Quic);
    assert_eq!(race.start(late), None);
    race.failed(late, AttemptTransport::Quic);
    let next = race.start(late).unwrap();
    assert_eq!(next.transport, AttemptTransport::Tcp);
}

#[test]
fn quic_is_not_over_while_an_address_is_left() {
    let now = Instant::now();
    let all = [v4(1), v4(2)];
    let mut race = Race::new(&all, &all, Tcp::AfterDelay, STEP, now);
    assert!(race.start(now).is_some());
    race.failed(now, AttemptTransport::Quic);
    assert_eq!(race.start(now).unwrap().transport, AttemptTransport::Tcp);
    assert!(!race.quic_runs() && !race.quic_is_over());
}

#[test]
fn never_means_no_tcp() {
    let now = Instant::now();
    let race = Race::new(&[v4(1)], &[v4(1)], Tcp::Never, STEP, now);
    assert_eq!(schedule(race, now), [(0, AttemptTransport::Quic, v4(1))]);
}

#[test]
fn a_long_list_of_addresses_is_cut() {
    let now = Instant::now();
    let many: Vec<_> = (0..200).map(v4).collect();
    let race = Race::new(&[], &many, Tcp::AfterDelay, STEP, now);
    assert_eq!(schedule(race, now).len(), MAX_ADDRESSES);
}
