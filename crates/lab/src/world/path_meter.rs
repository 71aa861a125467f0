//! Data on paths collected during a run, where links are in parallel.

use std::time::Duration;

use swiftwater_quic::Connection;
use swiftwater_sim::{HostTotals, Network};
use swiftwater_units::Instant;

use super::group::Group;
use super::measures::{PathFacts, TimeMeter};

/// Of a group of flows.
#[derive(Debug, Default)]
pub(super) struct PathMeter {
    /// By local socket of the senders, which is the index of the path.
    rtt: Vec<TimeMeter>,
    /// By receiver: its progress, and since when.
    progress: Vec<Option<(u64, Instant)>>,
    longest_gap: Option<Duration>,
}

impl PathMeter {
    /// Round-trip times of a sender's connection.
    pub(super) fn add_round_trips(&mut self, connection: &Connection) {
        for path in connection.open_paths() {
            let address = connection.address_of(path);
            let (Some(rtt), Some(address)) = (connection.smoothed_rtt(path), address) else {
                continue;
            };
            let index = usize::from(address.local.socket.0);
            if self.rtt.len() <= index {
                self.rtt.resize_with(index + 1, TimeMeter::default);
            }
            self.rtt[index].add(rtt);
        }
    }

    /// What receivers have got.
    pub(super) fn sample(&mut self, network: &Network, group: &Group<'_>) {
        if group.is_poisson() || network.now() > group.stop() {
            return;
        }
        let now = network.now();
        self.progress.resize(group.receivers.len(), None);
        for (receiver, before) in self.progress.iter_mut().enumerate() {
            let reached = group.progress(network, receiver);
            match before {
                Some((last, since)) => {
                    let ends = reached > *last || !group.has_end();
                    if ends {
                        self.longest_gap = self.longest_gap.max(Some(now - *since));
                    }
                    if reached > *last {
                        (*last, *since) = (reached, now);
                    }
                }
                None if reached > 0 => *before = Some((reached, now)),
                None => {}
            }
        }
    }

    /// The paths, with the `totals` of the senders, and the longest gap.
    pub(super) fn finish(
        mut self,
        group: &Group<'_>,
        totals: &HostTotals,
    ) -> (Vec<PathFacts>, Option<Duration>) {
        let count = group
            .spec
            .paths
            .as_ref()
            .map_or(0, |paths| paths.links.len());
        self.rtt.resize_with(count, TimeMeter::default);
        let paths = self.rtt.into_iter().zip(&totals.sockets);
        let paths = paths.map(|(rtt, totals)| PathFacts {
            totals: *totals,
            rtt,
        });
        (paths.collect(), self.longest_gap)
    }
}
