//! The cells of the grid that are compared.

use std::time::Duration;

use swiftwater_link::{Buffer, LinkConfig, LossModel};
use swiftwater_units::{Bandwidth, ByteCount};

/// Bytes of a request.
pub(crate) const REQUEST: u64 = 100;

/// One network and response.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Cell {
    pub(crate) rtt_ms: u64,
    /// Share of packets lost, each way.
    pub(crate) loss: f64,
    pub(crate) mbps: u64,
    pub(crate) bytes: u64,
}

impl Cell {
    /// The link in either direction. `overhead` is what it adds to each packet, bytes.
    pub(crate) fn link(&self, overhead: u32) -> LinkConfig {
        let rate = Bandwidth::from_mbps(self.mbps);
        let rtt = Duration::from_millis(self.rtt_ms);
        let buffer = ByteCount::new(rate.bytes_in(rtt).max(64_000));
        let link = LinkConfig::default()
            .rate(rate)
            .delay(rtt / 2)
            .buffer(Buffer::Bytes(buffer))
            .per_packet_overhead(overhead);
        if self.loss > 0.0 {
            link.loss(LossModel::Bernoulli(self.loss))
        } else {
            link
        }
    }
}

/// All of them: a grid on which the simulated TCP was developed, and one that was measured once it was
/// finished.
pub(crate) fn cells() -> Vec<Cell> {
    let developed = grid(
        [20, 60, 150],
        &[0.0, 0.01, 0.03, 0.05],
        &[
            (2, 20_000),
            (2, 200_000),
            (10, 200_000),
            (10, 1_000_000),
            (50, 1_000_000),
        ],
    );
    let afterwards = grid(
        [10, 100, 300],
        &[0.005, 0.02, 0.1],
        &[(1, 10_000), (1, 50_000), (20, 50_000), (20, 300_000)],
    );
    [developed, afterwards].concat()
}

fn grid(rtts_ms: [u64; 3], losses: &[f64], paths: &[(u64, u64)]) -> Vec<Cell> {
    let mut cells = Vec::new();
    for rtt_ms in rtts_ms {
        for &loss in losses {
            for &(mbps, bytes) in paths {
                cells.push(Cell {
                    rtt_ms,
                    loss,
                    mbps,
                    bytes,
                });
            }
        }
    }
    cells
}
