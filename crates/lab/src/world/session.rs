//! A case whose flow is a session of `swiftwater_media`: its driver replaces the network.

use swiftwater_media::apps::{SessionReport, SessionSpec, simulate};
use swiftwater_media::player::LiveConfig;

use super::measures::{self, GroupFacts, Missed, RunFacts, SessionFacts, VideoFacts, VideoViewing};
use super::topology::referred;
use super::{RunError, RunOutcome};
use crate::scenario::{App, SessionSetup, Setup};
use std::time::Duration;

/// The session of `setup`, if its flow is one.
pub(super) fn of(setup: &Setup) -> Option<&SessionSetup> {
    setup.flows.iter().find_map(|flow| match &flow.app {
        App::Session(session) => Some(session),
        _ => None,
    })
}

/// Runs the session of `setup` over its only link.
pub(super) fn run(
    setup: &Setup,
    session: &SessionSetup,
    seed: u64,
) -> Result<RunOutcome, RunError> {
    let ([link], [flow]) = (setup.links.as_slice(), setup.flows.as_slice()) else {
        return Err(RunError::out_of_range(
            "a session",
            "one link and no other flow",
        ));
    };
    if flow.count != 1 || flow.enter != 0 {
        return Err(RunError::out_of_range("a session", "one, from router 0"));
    }
    let spec = SessionSpec {
        source: session.source.open(seed)?,
        protector: session.protector()?,
        config: session.config.clone(),
        // The player reports when the first frame was complete.
        live: LiveConfig {
            start_buffer: Duration::ZERO,
            rebuffer: Duration::ZERO,
        },
    };
    let [forward, backward] = [&link.forward, &link.backward].map(|link| referred(link, setup.rtt));
    let report = simulate(spec, forward, backward, setup.duration, seed)?;
    let facts = RunFacts {
        groups: vec![GroupFacts {
            video: Some(video(&report)),
            session: Some(session_facts(&report)),
            ..GroupFacts::default()
        }],
        links: Vec::new(),
        measured: setup.duration,
        fairness: Vec::new(),
    };
    Ok(RunOutcome {
        measures: measures::values(setup, &facts),
        simulated_s: setup.duration.as_secs_f64(),
        tasks: report.sender.packets_sent,
        ..RunOutcome::default()
    })
}

/// Playback results of a viewer without a buffer.
fn video(report: &SessionReport) -> VideoFacts {
    let viewer = VideoViewing {
        startup: report.live.start_time,
        freezes: report.display.freezes.count,
        frozen: report.display.freezes.total,
        watched: report.display.judged,
        missed: report.deadline.map(|deadline| Missed {
            frames: deadline.frames,
            late: deadline.missed,
            per_second: deadline.per_second,
        }),
        delays: Vec::new(),
        abandoned: 0,
    };
    VideoFacts {
        viewers: vec![viewer],
        delays: report.frame_delay,
        cost: report.cost,
    }
}

fn session_facts(report: &SessionReport) -> SessionFacts {
    let sender = &report.sender;
    let detections = sender.recoveries.iter().map(|each| each.detection_time);
    let count = sender.recoveries.len() as u32;
    SessionFacts {
        packets: sender.packets_sent,
        lost: sender.packets_lost,
        spurious: sender.spurious_losses,
        lost_data: sender.lost_data,
        replicas: sender.replica_packets,
        recovery: report.recovery_latency,
        deterioration: report.deterioration_rate(),
        detection: detections.sum::<Duration>().checked_div(count),
        frames_never: report.frames.saturating_sub(report.completed),
    }
}
