//! The parts of `demo web` that don't touch a network.

use std::time::Duration;

use proptest::prelude::*;
use swiftwater_cli::demo::presets::Preset;
use swiftwater_cli::demo::random_numbers::RandomNumbers;
use swiftwater_cli::demo::web::browser::Seen;
use swiftwater_cli::demo::web::emulated_link::LinkKind;
use swiftwater_cli::demo::web::plan::WebProtocol;
use swiftwater_cli::demo::web::row::{VisitRow, conclusions, hint, quantile, table};
use swiftwater_cli::demo::web::visit::Visit;
use swiftwater_cli::demo::web::website::{Extent, Website};
use swiftwater_cli::exit::{Exit, Failure};

#[test]
fn the_page_is_one_of_two_megabytes_in_a_hundred_objects() {
    for seed in 0..20 {
        let website = Website::generate(Extent::FULL, seed);
        assert_eq!(website.objects.len(), 100);
        assert_eq!(website.calls.len(), 40);
        let size = website.page_bytes();
        assert!((1_600_000..2_600_000).contains(&size), "{size}");
        for call in &website.calls {
            assert!((1_000..=4_000).contains(&call.content.len()));
        }
        assert!(website.calls.is_sorted_by_key(|call| call.at));
        let last = website.calls[39].at;
        assert!(
            last > Duration::from_millis(150) && last < Duration::from_secs(1),
            "{last:?}"
        );
    }
}

/// Following the names from the HTML reaches every object once, and what is critical is never named by
/// what is not.
#[test]
fn every_object_is_named_once_by_one_that_comes_before() {
    for extent in [Extent::FULL, Extent::QUICK] {
        let website = Website::generate(extent, 7);
        let mut reached = vec![0];
        let mut next = 0;
        while let Some(&nth) = reached.get(next) {
            reached.extend(website.named_by(nth));
            next += 1;
        }
        reached.sort_unstable();
        assert!(reached.iter().copied().eq(0..website.objects.len()));
        for object in &website.objects[1..] {
            let namer = &website.objects[object.named_by.expect("only the HTML is not named")];
            assert!(namer.critical || !object.critical, "{}", object.path);
        }
    }
}

#[test]
fn contents_are_found_by_path_and_differ() {
    let website = Website::generate(Extent::QUICK, 3);
    let mut contents: Vec<_> = website
        .objects
        .iter()
        .map(|object| &object.content)
        .collect();
    for object in &website.objects {
        assert_eq!(
            website.content(&object.path).as_ref(),
            Some(&object.content)
        );
    }
    for call in &website.calls {
        assert_eq!(website.content(&call.path).as_ref(), Some(&call.content));
    }
    assert_eq!(website.content("/nothing"), None);
    contents.sort();
    assert!(contents.windows(2).all(|pair| pair[0] != pair[1]));
    let again = Website::generate(Extent::QUICK, 3);
    assert_eq!(again.objects, website.objects);
    assert_eq!(again.calls, website.calls);
    assert_ne!(Website::generate(Extent::QUICK, 4).objects, website.objects);
}

#[expect(clippy::unnecessary_wraps, reason = "rows take what may have failed")]
fn visit(page: u64, calls: &[u64]) -> Result<Visit, Failure> {
    let ms = Duration::from_millis;
    Ok(Visit {
        seen: Seen {
            handshake: ms(page / 10),
            first_byte: ms(page / 5),
            critical: ms(page / 2),
            page: ms(page),
            calls: calls.iter().copied().map(ms).collect(),
        },
        wire_bytes: 1000 * page,
        packets: 100,
        dropped: page / 100,
        tcp_controller: None,
    })
}

fn row(protocol: WebProtocol, visits: &[Result<Visit, Failure>]) -> VisitRow {
    let mut row = VisitRow::empty(Preset::Lte, protocol, LinkKind::Tun);
    row.measured(visits);
    row
}

#[test]
fn a_row_has_medians_of_loads_and_all_calls_together() {
    let failure = Failure::new(Exit::Connection, "gone");
    let visits = [
        visit(300, &[5, 1]),
        Err(failure),
        visit(100, &[9]),
        visit(200, &[7]),
    ];
    let row = row(WebProtocol::Http3, &visits);
    assert_eq!((row.loads, row.failed, row.calls), (3, 1, 4));
    assert_eq!(row.page_ms, Some(200.0));
    assert_eq!(row.critical_ms, Some(100.0));
    assert_eq!(row.handshake_ms, Some(20.0));
    assert_eq!((row.call_p50_ms, row.call_p99_ms), (Some(5.0), Some(9.0)));
    assert_eq!(row.wire_bytes, Some(200_000));
    assert_eq!(row.dropped, Some(6.0 / 300.0));
    assert_eq!(row.error.as_deref(), Some("gone"));
}

#[test]
fn the_faster_protocol_is_named_whichever_it_is() {
    let fast = [visit(100, &[1])];
    let slow = [visit(200, &[2])];
    let said = |h3: &[_], h2: &[_]| {
        let rows = [row(WebProtocol::Http3, h3), row(WebProtocol::Http2, h2)];
        let [line] = &conclusions(&rows)[..] else {
            panic!("one network")
        };
        line.clone()
    };
    assert!(said(&fast, &slow).contains("page 50 % shorter over h3 than over h2"));
    assert!(said(&slow, &fast).contains("page 50 % shorter over h2 than over h3"));
    assert!(said(&fast, &fast).contains("page alike"));
    // No comparison if one of them did not finish.
    let gone = [Err(Failure::new(Exit::Connection, "gone"))];
    let rows = [
        row(WebProtocol::Http3, &fast),
        row(WebProtocol::Http2, &gone),
    ];
    assert!(conclusions(&rows).is_empty());
    assert!(table(&rows).contains("0 (1 failed)"), "{}", table(&rows));
}

#[test]
fn controllers_that_differ_are_named() {
    let with = |protocol, controller: &str| VisitRow {
        controller: Some(controller.to_owned()),
        ..VisitRow::empty(Preset::Lte, protocol, LinkKind::Tun)
    };
    let rows = [
        with(WebProtocol::Http3, "cubic"),
        with(WebProtocol::Http2, "bbr"),
    ];
    let hint_of = hint(&rows).expect("they differ");
    assert!(hint_of.contains("cubic over QUIC, bbr over TCP") && hint_of.contains("--cc bbr3"));
    let rows = [
        with(WebProtocol::Http3, "cubic"),
        with(WebProtocol::Http2, "cubic"),
    ];
    assert_eq!(hint(&rows), None);
    assert_eq!(hint(&rows[..1]), None);
}

#[test]
fn the_generator_is_splitmix64() {
    // The first outputs for seed 1234567 that implementations of the algorithm agree on.
    let mut draws = RandomNumbers::new(1_234_567);
    let expected = [
        6_457_827_717_110_365_317,
        3_203_168_211_198_807_973,
        9_817_491_932_198_370_423,
    ];
    assert_eq!(expected.map(|_| draws.number()), expected);
}

proptest! {
    #[test]
    fn draws_stay_in_their_ranges(seed: u64) {
        let mut draws = RandomNumbers::new(seed);
        for _ in 0..50 {
            prop_assert!((0.0..1.0).contains(&draws.unit()));
            prop_assert!(draws.exponential(0.01) >= 0.0);
            prop_assert!(draws.log_normal(9_000.0, 0.8) > 0.0);
        }
        prop_assert_eq!(draws.bytes(13).len(), 13);
    }

    #[test]
    fn a_quantile_is_the_least_value_that_the_share_does_not_exceed(
        values in proptest::collection::vec(0_u32..100, 1..50), percent in 1_u32..=100
    ) {
        let share = f64::from(percent) / 100.0;
        let found = quantile(values.iter().copied(), share).expect("there are values");
        let count = |limit: u32| values.iter().filter(|value| **value <= limit).count();
        let needed = share * values.len() as f64 - 1e-9;
        prop_assert!(count(found) as f64 >= needed);
        let below = values.iter().copied().filter(|value| *value < found).max();
        prop_assert!(below.is_none_or(|below| (count(below) as f64) < needed + 2e-9));
        prop_assert_eq!(quantile(std::iter::empty::<u32>(), share), None);
    }
}
