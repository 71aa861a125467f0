use super::*;

#[test]
fn only_what_is_certainly_unprocessed_and_whole_is_sent_again() {
    for fate in [Fate::Unprocessed, Fate::TooEarly, Fate::Misdirected] {
        assert!(again(fate, true, 1));
        assert!(!again(fate, false, 1));
        assert!(!again(fate, true, MAX_SENT));
    }
    assert!(!again(Fate::Unknown, true, 1));
}
