//! What losses, timeouts and refuted losses do to every version of BBR.

use crate::feed;

use std::time::Duration;

use feed::{Feed, INITIAL, MDS};
use swiftwater_congestion::EpisodeId;

const ALL: [&str; 4] = ["bbr1", "bbr1-xquic", "bbr2", "bbr3"];

#[test]
fn an_ordinary_loss_does_not_cut_the_window_by_a_factor() {
    for name in ALL {
        let mut feed = Feed::settled(name);
        feed.rounds(5);
        feed.inflight = Some(feed.cwnd() - 2 * MDS);
        let before = feed.cwnd();
        feed.lose(1, 1);
        assert_eq!(feed.cwnd(), before, "{name}: not at the loss itself");
        feed.ack();
        assert!(
            feed.cwnd() + 3 * MDS >= before,
            "{name}: {} of {before}",
            feed.cwnd()
        );
    }
}

#[test]
fn recovery_returns_to_the_window_it_began_with() {
    for name in ["bbr1", "bbr1-xquic"] {
        let mut feed = Feed::settled(name);
        feed.rounds(5);
        let before = feed.cwnd();
        feed.inflight = Some(feed.bdp() / 2);
        feed.lose(2, 1);
        feed.ack();
        let cut = feed.cwnd();
        assert!(cut < before * 8 / 10, "{name}: unused window goes");
        feed.inflight = None;
        feed.rounds(3);
        assert!(
            feed.cwnd() >= before * 95 / 100,
            "{name}: {} of {before}",
            feed.cwnd()
        );
    }
}

#[test]
fn packets_are_conserved_for_one_round_only() {
    let mut feed = Feed::settled("bbr1");
    feed.rounds(5);
    let inflight = feed.bdp() / 2;
    feed.inflight = Some(inflight);
    feed.lose(1, 1);
    let acked = feed.bdp() / u64::from(feed::ACKS);
    feed.ack();
    assert_eq!(feed.cwnd(), inflight + acked);
    for _ in 0..8 {
        feed.ack();
        assert_eq!(feed.cwnd(), inflight + acked);
    }
    // Losses go on, and with them recovery, but the window grows by what arrives.
    let before = feed.cwnd();
    for _ in 0..20 {
        feed.lose(1, 1);
        feed.ack();
    }
    assert!(feed.cwnd() > before + 10 * (acked - MDS), "{}", feed.cwnd());
}

#[test]
fn only_a_timeout_leaves_one_packet_and_a_later_ack_restores() {
    for name in ALL {
        let mut feed = Feed::settled(name);
        feed.rounds(5);
        let before = feed.cwnd();
        feed.inflight = Some(0);
        feed.lose(3, 1);
        feed.with_env(|cc, now, env| cc.on_persistent_congestion(now, env));
        assert_eq!(
            feed.cwnd(),
            2 * MDS,
            "{name}: the least that RFC 9002 allows"
        );
        feed.inflight = None;
        feed.rounds(3);
        assert!(
            feed.cwnd() >= before / 2,
            "{name}: {} of {before}",
            feed.cwnd()
        );
    }
}

#[test]
fn probe_timeouts_alone_change_nothing() {
    for name in ALL {
        let mut feed = Feed::settled(name);
        let before = feed.cc.snapshot();
        for count in 1..5 {
            feed.with_env(|cc, now, env| cc.on_pto(now, count, env));
        }
        assert_eq!(feed.cc.snapshot(), before, "{name}");
    }
}

#[test]
fn persistent_congestion_is_never_undone() {
    for name in ALL {
        let mut feed = Feed::settled(name);
        feed.rounds(5);
        feed.inflight = Some(0);
        let episode = feed.lose(1, 1);
        feed.with_env(|cc, now, env| {
            cc.on_persistent_congestion(now, env);
            cc.on_spurious(EpisodeId(episode.0 + 7), now, env);
        });
        if name.starts_with("bbr1") {
            // The transport reports no refuted episode after persistent congestion; BBRv1 keeps no
            // numbers of its own.
            continue;
        }
        assert_eq!(feed.cwnd(), 2 * MDS, "{name}");
        feed.spurious(episode);
        assert_eq!(feed.cwnd(), 2 * MDS, "{name}");
    }
}

/// Draft, A.17.
#[test]
fn a_refuted_episode_restores_window_and_bounds() {
    for name in ["bbr2", "bbr3"] {
        let mut feed = Feed::settled(name);
        feed.until(&["probe_bw_cruise"], 100);
        feed.rounds(2);
        let before = feed.cwnd();
        assert_eq!(feed.try_detail("inflight_shortterm"), None);
        feed.rate = swiftwater_units::Bandwidth::from_mbps(6);
        feed.rounds(2);
        let episode = feed.lose(1, 1);
        feed.rounds(2);
        assert!(feed.detail("bw_shortterm_bps") < 12e6, "{name}");
        assert!(feed.cwnd() < before, "{name}");
        feed.spurious(episode);
        assert_eq!(feed.try_detail("inflight_shortterm"), None, "{name}");
        assert_eq!(feed.try_detail("bw_shortterm_bps"), None, "{name}");
        assert!(feed.cwnd() >= before, "{name}: {} of {before}", feed.cwnd());
    }
}

#[test]
fn another_episode_is_not_undone_with_a_refuted_one() {
    let mut feed = Feed::settled("bbr3");
    feed.until(&["probe_bw_cruise"], 100);
    let first = feed.lose(1, 1);
    feed.rounds(3);
    let bound = feed.detail("inflight_shortterm");
    let second = feed.lose(1, 1);
    assert_ne!(first, second);
    feed.rounds(3);
    let lower = feed.detail("inflight_shortterm");
    assert!(lower <= bound);
    feed.spurious(second);
    assert!((feed.detail("inflight_shortterm") - bound).abs() < 1.0);
}

#[test]
fn losses_that_ended_startup_and_were_none_bring_it_back() {
    let mut feed = Feed::new("bbr3");
    feed.rate = swiftwater_units::Bandwidth::from_mbps(4);
    feed.rounds(1);
    feed.inflight = Some(3 * feed.bdp());
    let episode = feed.lossy_round(1);
    feed.ack();
    assert_eq!(feed.state(), "drain");
    assert!(feed.try_detail("inflight_longterm").is_some());
    feed.spurious(episode);
    assert_eq!(feed.state(), "startup");
    assert!(feed.detail("full_pipe") < 0.5);
    assert_eq!(feed.try_detail("inflight_longterm"), None);
}

#[test]
fn startup_grows_the_window_by_what_is_acked() {
    for name in ALL {
        let mut feed = Feed::new(name);
        let before = feed.cwnd();
        assert_eq!(before, INITIAL, "{name}: the environment's");
        feed.ack();
        let acked = feed.bdp() / u64::from(feed::ACKS);
        assert_eq!(feed.cwnd(), before + acked, "{name}");
    }
}

#[test]
fn the_window_never_falls_below_four_packets_in_recovery_free_time() {
    for name in ALL {
        let mut feed = Feed::new(name);
        feed.rate = swiftwater_units::Bandwidth::from_kbps(50);
        feed.rtt = Duration::from_millis(10);
        feed.rounds(60);
        assert!(feed.cwnd() >= 4 * MDS, "{name}: {}", feed.cwnd());
    }
}
