use super::*;

#[test]
fn only_what_is_certainly_unprocessed_and_whole_is_sent_again() {
    for fate in [Fate::Unprocessed, Fate::TooEarly, Fate::Misdirected] {
        assert!(again(fate, true, false, 1));
        assert!(!again(fate, false, true, 1));
        assert!(!again(fate, true, true, MAX_SENT));
    }
    assert!(!again(Fate::Unknown, true, true, 1));
}

#[test]
fn what_may_be_repeated_survives_a_connection_that_is_gone() {
    assert!(again(Fate::ConnectionGone, true, true, 1));
    assert!(!again(Fate::ConnectionGone, true, false, 1));
    assert!(!again(Fate::ConnectionGone, false, true, 1));
    assert!(!again(Fate::ConnectionGone, true, true, MAX_SENT));
}
