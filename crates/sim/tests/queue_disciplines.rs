//! Flows of the real stack through bottlenecks with active queue management.

use std::time::Duration;

use swiftwater_link::{
    Buffer, CoDelConfig, DropReason, DualPi2Config, FqCoDelConfig, QueueDiscipline, RedConfig,
};
use swiftwater_sim::{Dumbbell, FlowSpec, LogDetail, LogFate};
use swiftwater_units::Bandwidth;

/// CUBIC flows at 20 Mbit/s, 30 ms and a buffer of five times that.
fn deep(flows: usize, queue: QueueDiscipline) -> Dumbbell {
    Dumbbell {
        flows: vec![FlowSpec::new("cubic").unwrap(); flows],
        rate: Bandwidth::from_mbps(20).into(),
        buffer: Buffer::Bdp(5.0),
        queue,
        duration: Duration::from_secs(10),
        ..Dumbbell::default()
    }
}

fn every_aqm() -> [QueueDiscipline; 4] {
    [
        QueueDiscipline::Red(RedConfig::default()),
        QueueDiscipline::CoDel(CoDelConfig::default()),
        QueueDiscipline::FqCoDel(FqCoDelConfig::default()),
        QueueDiscipline::DualPi2(DualPi2Config::default()),
    ]
}

#[test]
fn a_deep_buffer_fills_with_drop_tail_and_not_with_codel() {
    let drop_tail = deep(1, QueueDiscipline::DropTail).run().unwrap();
    let codel = deep(1, QueueDiscipline::CoDel(CoDelConfig::default()))
        .run()
        .unwrap();
    assert!(
        codel.queue.mean_bytes < drop_tail.queue.mean_bytes / 4.0,
        "{codel:?} {drop_tail:?}"
    );
    // 5 ms of 20 Mbit/s are 12.5 kB, and the mean is near it although the flow overshoots.
    assert!(codel.queue.mean_bytes < 25_000.0, "{codel:?}");
    assert!(codel.utilisation.unwrap() > 0.9, "{codel:?}");
}

#[test]
fn every_discipline_keeps_the_link_busy_and_the_data_intact() {
    for queue in every_aqm() {
        let report = deep(3, queue).run().unwrap();
        assert!(report.utilisation.unwrap() > 0.9, "{queue}: {report:?}");
        assert!(report.flows.iter().all(|flow| flow.intact));
        assert!(
            report.ecn_marks + report.queue.dropped_packets > 0,
            "{queue}: {report:?}"
        );
    }
}

#[test]
fn flow_queues_even_out_round_trip_times() {
    let ratio = |queue| {
        let mut dumbbell = deep(2, queue);
        dumbbell.buffer = Buffer::Bdp(1.0);
        dumbbell.flows[1] = dumbbell.flows[1]
            .clone()
            .extra_rtt(Duration::from_millis(120));
        dumbbell.duration = Duration::from_secs(30);
        let report = dumbbell.run().unwrap();
        report.flows[0].goodput_bps / report.flows[1].goodput_bps
    };
    let fair = ratio(QueueDiscipline::FqCoDel(FqCoDelConfig::default()));
    assert!(fair < 1.5, "{fair}");
    let unfair = ratio(QueueDiscipline::DropTail);
    assert!(unfair > 2.0, "{unfair}");
}

#[test]
fn packets_dropped_late_are_logged() {
    for queue in every_aqm() {
        // Without ECN, so that they are dropped.
        let mut dumbbell = deep(2, queue);
        dumbbell.transport.ecn = false;
        let digest_and_drops = || {
            let mut run = dumbbell.build().unwrap();
            let bottleneck = run.bottleneck();
            run.network().start_log(LogDetail {
                entries: true,
                content: true,
            });
            run.advance_to(run.end());
            let dropped = run.network().counters(bottleneck).dropped_aqm.packets.get();
            let log = run.network().log().unwrap();
            let fate = LogFate::Dropped(DropReason::Aqm);
            let logged = log.entries().iter();
            let logged = logged.filter(|entry| entry.link == bottleneck && entry.fate == fate);
            assert_eq!(logged.count() as u64, dropped, "{queue}");
            (log.digest(), dropped)
        };
        let first = digest_and_drops();
        assert!(first.1 > 0, "{queue}");
        assert_eq!(first, digest_and_drops(), "{queue}");
    }
}
