//! A download through a NAT that gives the client another address in the middle of it, over a lossy
//! path, without keep-alive: the client has nothing to send but acknowledgements.

use std::time::Duration;

use swiftwater_link::{LinkConfig, LossModel};
use swiftwater_quic::Connection;
use swiftwater_sim::{Direction, Pair};
use swiftwater_units::{Bandwidth, Side};

/// Bytes of the download.
const BYTES: u64 = 200_000;

/// How a download went.
#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    /// It arrived, all of it.
    pub complete: bool,
    /// From the rebinding to the end.
    pub took: Duration,
    /// Longest time after the rebinding in which nothing new arrived.
    pub longest_stall: Duration,
}

/// Runs one case: `loss` of the datagrams are lost each way. The rebinding comes between 100 ms and
/// 900 ms after the start; one in two gives another IP address too.
pub fn download(seed: u64, loss: f64) -> Outcome {
    let link = LinkConfig::default()
        .rate(Bandwidth::from_mbps(10))
        .delay(Duration::from_millis(20))
        .loss(LossModel::Bernoulli(loss));
    let mut pair = Pair::builder().seed(seed).link(link).build().unwrap();
    if !pair.connect() {
        // Not what is asked here.
        return download(seed + 1_000_000, loss);
    }
    let id = pair.start_transfer(BYTES, Direction::ToClient);
    pair.advance(Duration::from_millis(100 + seed * 37 % 800));
    let mut address = pair.address(Side::Client);
    if seed.is_multiple_of(2) {
        address.set_ip([192, 0, 2, 123].into());
    }
    address.set_port(40_000);
    pair.rebind(Side::Client, address).unwrap();
    let start = pair.now();
    let (mut received, mut progress_at, mut longest_stall) = (0, start, Duration::ZERO);
    pair.run_until(|pair| {
        let report = pair.transfer_report(id);
        longest_stall = longest_stall.max(pair.now() - progress_at);
        if report.received > received {
            (received, progress_at) = (report.received, pair.now());
        }
        let is_closed = |side| pair.view(side).is_none_or(Connection::is_closed);
        report.verified || is_closed(Side::Client) || is_closed(Side::Server)
    });
    Outcome {
        complete: pair.transfer_report(id).verified,
        took: pair.now() - start,
        longest_stall,
    }
}
