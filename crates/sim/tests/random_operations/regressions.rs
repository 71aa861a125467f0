//! Plans that failed once, as small as they could be made.

use super::plan::{Op, Plan, Settings, Wire};
use super::run::run;
use swiftwater_sim::Direction;
use swiftwater_units::{Dir, Side};

fn terse() -> Settings {
    Settings { cid_limit: 2, ack_threshold: 1, max_ack_delay_ms: 0, bidi_streams: 0, uni_streams: 0, pacing: false, ecn: false, stream_window: 50, window: 50, growth: 1, send_window: 1<<20, datagram_queue: 1, datagram_frames: None, ..Settings::default() }
}

#[test]
fn a100() {
    run(&Plan {
        seed: 16903027253745634724,
        segments: 1,
        retry: true,
        finish_all: false,
        wires: [Wire { delay_ms: 18, loss: 7, ..Wire::default() }, Wire { delay_ms: 237, corrupt: 14, ..Wire::default() }],
        ends: [terse(), Settings { datagram_frames: Some(65_535), ..terse() }],
        ops: vec![Op::Step(10), Op::DropNext(Direction::ToServer, 7), Op::Advance(234), Op::Step(8), Op::SendDatagram(Side::Client, 1089), Op::Open(Side::Client, Dir::Bi)],
        ..Plan::default()
    });
}
#[test]
fn a101() {
    run(&Plan {
        seed: 1362040696794410963,
        segments: 1,
        finish_all: false,
        wires: [Wire { delay_ms: 0, rate_kbps: Some(200), loss: 26, ..Wire::default() }, Wire { delay_ms: 0, loss: 36, ..Wire::default() }],
        ends: [Settings { initial_rtt_ms: 731, ..terse() }, terse()],
        ops: vec![Op::DropNext(Direction::ToClient,7), Op::Step(3), Op::Step(9), Op::DropNext(Direction::ToClient,3), Op::Step(5), Op::Step(4)],
        ..Plan::default()
    });
}
#[test]
fn a102() {
    run(&Plan {
        seed: 2417429590926914903,
        segments: 1,
        finish_all: false,
        wires: [Wire { delay_ms: 0, loss: 19, late: 21, late_ms: 77, ..Wire::default() }, Wire { delay_ms: 32, rate_kbps: Some(2335), late: 37, late_ms: 51, ..Wire::default() }],
        ends: [terse(), Settings { uni_streams: 1, stream_window: 6704, window: 1048576, cid_limit: 7, ..terse() }],
        ops: vec![
            Op::Replay { to: Direction::ToClient, index: 0, damaged: true, stranger: true },
            Op::Advance(16), Op::Step(2), Op::Open(Side::Client, Dir::Uni), Op::Write(Side::Client, 0, 6705), Op::Finish(Side::Client, 0)],
        ..Plan::default()
    });
}
#[test]
fn a103() {
    run(&Plan {
        seed: 6222538990524255784,
        segments: 1,
        finish_all: false,
        wires: [Wire { delay_ms: 1, loss: 2, ..Wire::default() }, Wire { delay_ms: 40, rate_kbps: Some(200), ..Wire::default() }],
        ends: [terse(), Settings { uni_streams: 1, stream_window: 919, window: 919, cid_limit: 8, ..terse() }],
        ops: vec![Op::CorruptNext(Direction::ToClient, 4), Op::Step(2), Op::Step(8), Op::CorruptNext(Direction::ToServer, 3), Op::Advance(271), Op::DropNext(Direction::ToServer, 4), Op::Step(7),
           Op::Open(Side::Client, Dir::Uni), Op::Write(Side::Client, 0, 920)],
        ..Plan::default()
    });
}
