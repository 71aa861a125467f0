//! The measures of a run and their definitions.
//!
//! The *measured time* is that from the end of the warm-up to the end of the run. Counters are read
//! at its beginning and its end and subtracted; bytes of headers count on links only. A measure has
//! no value where there is nothing to measure: no packet sent, no transfer completed.
//!
//! # Groups of flows: `group.measure`
//!
//! A group is *active* from the start of its first member (for Poisson transfers, from the group's
//! start) to its end: its `stop`, the completion of its last transfer, or the end of the run; only
//! the part within the measured time counts.
//!
//! | measure | definition |
//! |---|---|
//! | `goodput_mbps` | application bytes that receivers got in order in the measured time, over the part of it in which the group was active; sum over members, Mbit/s |
//! | `share` | of the sum of all groups' `goodput_mbps`, 0 to 1 |
//! | `retransmitted_share` | retransmitted stream bytes / stream bytes sent, 0 to 1 |
//! | `lost_share` | packets that the senders declared lost / packets they sent, 0 to 1 |
//! | `rtt_mean_ms`, `rtt_p95_ms` | mean and 95th percentile (to 0.1 %) of `smoothed_rtt`, sampled every 10 ms at each open connection that has one |
//! | `rtt_min_ms` | smallest round-trip time sample of any connection, of the whole run, warm-up included |
//! | `bin_min_mbps`, `bin_cv` | smallest value, and standard deviation over mean, of the goodput (sum over members) in the bins of the setup's `bin`. Bins are laid from the end of the warm-up on; those that lie wholly in the group's active time count |
//! | `spurious_losses` | packets declared lost that were acknowledged later |
//! | `jain` | Jain's index of the members' goodputs, each over its own active time, 1 / members to 1. For groups of several members, but not for Poisson transfers |
//!
//! # Paths (`[[path]]`)
//!
//! Of every group in a scenario with `[[path]]`s. `NAME` is that of a path; the second path of a flow over the same
//! link is `NAME-2`, and so on.
//!
//! | measure | definition |
//! |---|---|
//! | `longest_gap_ms` | longest time without progress at a receiver, from its first progress to its end, sampled every 10 ms: of video without a further complete frame, of everything else without a byte in order |
//! | `sent_share_NAME` | bytes that the senders sent on this path / on all, headers included, 0 to 1 |
//! | `copies_share_NAME` | of the bytes sent on this path, those of streams that were sent while they were still in flight, here or on another path, 0 to 1 |
//! | `rtt_mean_ms_NAME` | mean of `smoothed_rtt` of this path, sampled every 10 ms |
//!
//! # Recovery of lost data
//!
//! Of every group; summed over its connections before anything is divided. A *data range* is a run of
//! bytes of a stream that was declared lost or retransmitted on a probe timeout. Shares and means are
//! weighted by bytes, so that a split data range does not count twice. *Retransmissions* follow a loss,
//! *replicas* are the copies that the flow's `recovery` adds.
//!
//! | measure | definition |
//! |---|---|
//! | `recovery_latency_ms` | time from the first retransmission of a data range to the sending of the copy that arrived; mean over the data whose first retransmission was lost (AutoRec, section III-C) |
//! | `recovery_latency_p95_ms`, `recovery_latency_max_ms` | 95th percentile (to 0.1 %), and the longest, of the same |
//! | `rdr` | recovery deterioration rate: share of recovered data that needed two loss detections or more, 0 to 1; spurious losses are excluded |
//! | `rdr_by_time` | the same by AutoRec's definition: share whose recovery latency was no less than its own detection time |
//! | `redundancy_cost` | bytes of replicas / bytes sent for the first time |
//! | `detection_time_ms` | time from the first transmission of a lost data range to its first retransmission (`T_unit`), mean; without those retransmitted on a probe timeout |
//! | `f_over_t` | `recovery_latency_ms` / `detection_time_ms`: comparable between stacks whose loss detection differs |
//! | `replicas_per_loss` | replicas sent / data lost |
//! | `replicas_useful_share` | share of replicas that arrived before every other copy of their data, 0 to 1 |
//! | `spurious_share` | share of lost bytes whose first transmission arrived nevertheless, 0 to 1 |
//! | `redundancy_level_mean` | redundancy level (replicas permitted for each lost data range), mean over the time that connections were open; 0 for a `recovery` that has none |
//! | `budget_max_10s` | the largest share of replica bytes in bytes sent for the first time, of the group, in 10 s that begin with a whole second of the measured time; of all of it if it is shorter. Intervals without new data don't count |
//!
//! # Transfers (`transfer`, `poisson`, `requests`)
//!
//! Of the transfers that started in the measured time. The completion time of a transfer is that
//! from the start of its handshake until its receiver has read the last byte. Transfers that are
//! incomplete when the run ends only count as started: a run that is too short favours small
//! transfers. Transfers of less than 8 bytes are sent with 8. Of `requests`, each object is a transfer; its
//! completion time is that from its request.
//!
//! | measure | definition |
//! |---|---|
//! | `started`, `completed` | transfers |
//! | `fct_mean_ms` | mean completion time |
//! | `fct_p50_ms`, `fct_p95_ms`, `fct_p99_ms` | percentiles of completion times by nearest rank: of `n` in order, number `ceil(p n)` |
//! | `slowdown_mean` | mean of: completion time / (size / rate + RTT), with the lowest mean rate of the links on the path and the propagation delay there and back |
//! | `fct_small_mean_ms`, `fct_large_mean_ms` | mean completion time of those below 100 kB and above 1 MB |
//!
//! # Viewers (`live`)
//!
//! Of the viewers that started in the measured time. The start time is that from the start of the
//! handshake until the player has the first frame.
//!
//! | measure | definition |
//! |---|---|
//! | `viewers` | those that started |
//! | `start_mean_ms`, `start_p95_ms` | start time, mean and nearest-rank percentile, of those whose player started |
//! | `started_within_1s` | share of viewers whose player started within one second |
//! | `stalls_per_100s` | stalls of at least `stall_after` in 100 s of viewing, which is the time since the player started, stalls included; over all viewers. A stall that lasts at the end of the run counts with its duration so far |
//! | `stalled_share` | share of viewers with such a stall |
//! | `stall_time_share` | time in such stalls / time of viewing |
//!
//! # Live video (`video`)
//!
//! Of all viewers of the group. Frames count if they were encoded in the measured time.
//!
//! | measure | definition |
//! |---|---|
//! | `startup_ms` | time from the start of the handshake to the first picture, mean; of the whole run, warm-up included |
//! | `freezes_per_100s`, `frozen_ms_per_100s`, `frozen_share` | freezes in 100 s, time frozen in 100 s, and time frozen / time (0 to 1), of the time since the first picture, freezes included. With `mode = "stream"` by a player with a buffer; with `"frames"` by the rule of WebRTC's statistics: a gap between pictures above 3 d and d + 150 ms, d the mean of the 30 before, the first 31 pictures left out |
//! | `dmr` | deadline miss rate: frames that were not complete by their deadline / frames whose deadline has passed, 0 to 1; no value without a deadline |
//! | `dmr_per_second` | the same as computed by Hairpin's scripts: per second, frames skipped / frames advanced in the sequence of those in time; mean over seconds and viewers |
//! | `frames_abandoned` | frames whose streams the sender reset because they could not be in time any more, warm-up included |
//! | `bwc` | bandwidth cost: bytes of redundancy (replicas, repair packets) / bytes of frames sent for the first time |
//! | `bwc_literal` | all bytes but those of frames sent for the first time / all bytes, 0 to 1. Headers of QUIC, acknowledgements and the handshake are among them, those of IP and UDP are not |
//! | `bwc_with_retransmissions` | bytes of redundancy and of retransmissions / bytes of frames sent for the first time, as computed by Hairpin's scripts |
//! | `frame_delay_p50_ms`, `frame_delay_p95_ms`, `frame_delay_p99_ms`, `frame_delay_max_ms` | time from a frame's encoding until it was complete, percentiles by nearest rank; frames that were never complete are excluded |
//!
//! # Video on demand (`chunked-video`, `short-video`)
//!
//! Of all viewers of the group and of the whole run, warm-up included; a viewer who is still watching when the run ends
//! counts with what there is. Percentiles are by nearest rank.
//!
//! | measure | definition |
//! |---|---|
//! | `first_frame_mean_ms`, `first_frame_p50_ms`, `first_frame_p99_ms` | time from the choice of a video to its first picture: mean and percentiles over videos. The handshake is part of the first one |
//! | `stall_ms`, `stalls` | time stalled, and number of stalls, mean over viewers; the time before a video's first picture is no stall |
//! | `rebuffer_rate` | time stalled / time played, sums over viewers (XLINK's measure) |
//! | `requests` | complete requests: chunks of `chunked-video`, ranges of `short-video` |
//! | `request_p50_ms`, `request_p95_ms`, `request_p99_ms`, `request_max_ms` | request completion time: from a request to the last byte of its response |
//! | `copies_share` | stream bytes that the senders sent as copies of data in flight / stream bytes sent, retransmissions included, 0 to 1 |
//! | `qoe` | `chunked-video`: sum over chunks of the nominal bitrate in Mbit/s, less 16 for each second of stall, less the sum of the changes of bitrate (Chorus, section 5.1); mean over viewers |
//! | `bitrate_mbps`, `switching_mbps` | `chunked-video`: nominal bitrate, mean over chunks; change of bitrate from a chunk to the next, mean |
//! | `prediction_error`, `overestimated_share` | `chunked-video`: error of the predicted throughput / throughput, mean of absolute values; share of the chunks whose throughput was below its prediction |
//! | `videos_seen` | `short-video`: videos of which a picture was shown |
//! | `unplayed_share` | `short-video`: bytes received of videos that were left, and not played / bytes received |
//!
//! # Groups in tunnels
//!
//! Those of the tunnel are over the whole run, the warm-up included; packets are those from the server to the client.
//!
//! | measure | definition |
//! |---|---|
//! | `duplicates_share` | packets that the server declared lost and that arrived / packets that it sent: what reached the client twice |
//! | `tunnel_queue_mean_ms`, `tunnel_queue_p95_ms` | bytes that a packet finds waiting at the proxy / the rate that congestion control grants: mean and 95th percentile over packets |
//! | `tunnel_resent_share` | datagrams that the proxy sent again / packets |
//! | `tunnel_abandoned_share` | packets that the proxy gave up to repair / packets |
//! | `tunnel_dropped_share` | packets that found no room at the proxy, or waited for too long / packets |
//! | `tunnel_reports_share` | reports of the proxy / packets |
//! | `tunnel_redundancy_cost` | with `tunnel = "stream"`: bytes of replicas that `tunnel_recovery` adds at the proxy / stream bytes sent for the first time |
//! | `tunnel_forwarded_share` | with `tunnel = "forwarded"`: packets that passed beside the connection between proxy and client / packets |
//!
//! # Sessions (`session`)
//!
//! Those of live video, and the ones below; none of links and of the whole run. Nothing is excluded
//! at the start: a session has no warm-up. `startup_ms` is the time until the first frame was
//! complete, freezes are those of `mode = "frames"`, bytes of headers are those of the session's
//! own. A frame that is never complete freezes the picture until the next key frame: with a
//! `deadline`, use freezes only if the source has key frames or `key_frame_after` is set.
//!
//! | measure | definition |
//! |---|---|
//! | `lost_share` | packets that the sender declared lost / packets sent, 0 to 1 |
//! | `spurious_losses` | packets declared lost that were acknowledged later |
//! | `recovery_latency_ms`, `recovery_latency_p95_ms`, `recovery_latency_max_ms` | as for other groups; mean and percentile over data |
//! | `rdr_by_time` | as for other groups, by data; data that never arrived count as deteriorated |
//! | `detection_time_ms`, `f_over_t`, `replicas_per_loss` | as for other groups, by data |
//! | `frames_never` | frames that were never complete |
//!
//! # Browsing (`web`)
//!
//! The ones below; none of links and of the whole run. Times count from the user's request, with the set-up of
//! connections. A request without a complete response after 30 s has failed, and counts with 30 s.
//!
//! | measure | definition |
//! |---|---|
//! | `requests`, `failed` | requests, and those that failed |
//! | `rct_mean_ms`, `rct_p50_ms`, `rct_sd_ms`, `rct_p99_ms` | request completion time: mean, nearest-rank percentiles, standard deviation |
//! | `probe_share` | requests that served to compare protocols, in experiments or as probes of `plus` / requests |
//! | `less_loaded_share` | requests that `plus` sent over another arm than the one in use because they waited for fewer others there / requests |
//! | `hedged_share`, `quic_share` | requests that were also sent over TCP, and requests that QUIC answered / requests |
//! | `experiment_share` | experiments / requests |
//! | `switches`, `switch_share` | changes of the protocol that an experiment, a model, a boundary or a belief made; the same / requests |
//! | `switch_gain_share` | switches after which the mean of 10 s was less than that of 10 s before / switches with requests in both |
//! | `rollbacks` | switches that were undone |
//! | `failovers`, `blocks` | times that a protocol was left because requests failed or were overtaken in a row, and times that QUIC was not used for a while because of that |
//!
//! # Links towards higher routers: `link.measure`
//!
//! The packet in service is part of the queue.
//!
//! | measure | definition |
//! |---|---|
//! | `utilisation` | bytes transmitted (headers included, those lost at random after the queue included) / bytes that could have been transmitted, 0 to 1; no value without a rate. Bytes count when they leave at the far end, so that it may exceed 1 by the bytes in flight at the start of the measured time |
//! | `queue_mean_bytes`, `queue_max_bytes` | mean over time, and maximum |
//! | `queue_mean_bdp` | mean / (mean rate x RTT of the setup) |
//! | `queue_delay_mean_ms`, `queue_delay_p99_ms` | waiting time of packets in the queue: mean and 99th percentile (to 1 %) over packets |
//! | `dropped_share` | packets that the queue dropped, because it was full or as its discipline decided / packets offered |
//! | `random_lost_share` | packets lost at random / packets offered |
//! | `marked_share` | packets marked CE by this link / packets offered |
//!
//! # The whole run
//!
//! | measure | definition |
//! |---|---|
//! | `goodput_mbps` | application bytes of all groups / measured time, Mbit/s |
//! | `jain` | Jain's index of the goodputs of all members of bulk groups, each over its own active time; for two members or more |
//! | `convergence_s` | time from the start of the last bulk flow until Jain's index of all bulk flows, in bins of 1 s from that start on, reaches 0.9 for at least 5 bins in a row; whole seconds. No value if it never does, or with fewer than two. The warm-up is included. Bins end where the first of them stops |
//! | `intact` | 1 if every byte received was the one sent, else 0 |

mod facts;
mod group;
mod link;
mod paths;
mod repair;
mod session;
mod statistics;
mod streaming;
mod tunnel;
mod video;
mod visit;
mod web;
mod whole;

pub(super) use facts::{GroupFacts, LinkFacts, Member, RunFacts, Transfer};
pub(super) use paths::PathFacts;
pub(super) use repair::RepairFacts;
pub(super) use session::SessionFacts;
pub(super) use statistics::{TimeMeter, jain};
pub(super) use streaming::StreamingViewing;
pub(super) use tunnel::TunnelFacts;
pub(super) use video::{Missed, VideoFacts, VideoViewing};
pub use visit::FeatureRow;
pub(super) use visit::{Visit, Visited};

use swiftwater_sim::apps::Carriage;

use crate::scenario::{App, FlowSpec, Setup};

/// A name and its formula.
type Column<T> = (&'static str, fn(&T) -> Option<f64>);

/// The columns of a group of flows, in order.
fn group_columns(flow: &FlowSpec) -> impl Iterator<Item = &'static Column<GroupFacts>> {
    let parts: [&[_]; 7] = match flow.app {
        // It has no connection.
        App::Session(_) => [video::VIDEO, session::SESSION, &[], &[], &[], &[], &[]],
        App::Web(_) => [web::WEB, &[], &[], &[], &[], &[], &[]],
        App::Poisson { .. } => [
            group::EVERY,
            &[],
            group::TRANSFERS,
            repair::REPAIR,
            &[],
            &[],
            &[],
        ],
        _ => {
            let [own, special] = own(&flow.app);
            let [tunnel, forwarded] = in_tunnel(flow);
            [
                group::EVERY,
                several(flow),
                own,
                special,
                repair::REPAIR,
                tunnel,
                forwarded,
            ]
        }
    };
    parts.into_iter().flatten()
}

/// Whether a column is the time of an event: without a value the event did not happen. Other columns without one had
/// nothing to measure.
pub(crate) fn is_time_of_an_event(column: &str) -> bool {
    let name = column.rsplit('.').next().unwrap_or(column);
    matches!(
        name,
        "convergence_s" | "startup_ms" | "start_mean_ms" | "start_p95_ms" | "first_frame_mean_ms"
    ) || name.starts_with("fct_")
}

fn several(flow: &FlowSpec) -> &'static [Column<GroupFacts>] {
    if flow.count > 1 { group::SEVERAL } else { &[] }
}

fn in_tunnel(flow: &FlowSpec) -> [&'static [Column<GroupFacts>]; 2] {
    match &flow.tunnel {
        None => [&[], &[]],
        Some(spec) if spec.config.carriage == Carriage::Forwarded => {
            [tunnel::TUNNEL, tunnel::FORWARDED]
        }
        Some(spec) if spec.config.carriage == Carriage::Stream => [tunnel::TUNNEL, tunnel::STREAM],
        Some(_) => [tunnel::TUNNEL, &[]],
    }
}

fn own(app: &App) -> [&'static [Column<GroupFacts>]; 2] {
    match app {
        App::Transfer { .. } | App::Requests { .. } => [group::TRANSFERS, &[]],
        App::Live { .. } => [group::LIVE, &[]],
        App::Video(_) => [video::VIDEO, &[]],
        App::ChunkedVideo(_) => [streaming::STREAMING, streaming::ADAPTIVE],
        App::ShortVideo(_) => [streaming::STREAMING, streaming::FEED],
        _ => [&[], &[]],
    }
}

/// Whether a setup runs on the network, with links to be measured.
fn has_network(setup: &Setup) -> bool {
    let mut flows = setup.flows.iter();
    !flows.any(|flow| matches!(flow.app, App::Session(_) | App::Web(_)))
}

/// The names of all measures of a run.
pub(super) fn names(setup: &Setup) -> Vec<String> {
    let mut names = Vec::new();
    for flow in &setup.flows {
        names.extend(group_columns(flow).map(|(name, _)| format!("{}.{name}", flow.name)));
        let paths = paths::names(flow).into_iter();
        names.extend(paths.map(|name| format!("{}.{name}", flow.name)));
    }
    if !has_network(setup) {
        return names;
    }
    for link in &setup.links {
        let columns = link::COLUMNS.iter();
        names.extend(columns.map(|(name, _)| format!("{}.{name}", link.name)));
    }
    names.extend(whole::COLUMNS.iter().map(|(name, _)| (*name).to_owned()));
    names
}

/// Their values, in the same order.
pub(super) fn values(setup: &Setup, facts: &RunFacts) -> Vec<Option<f64>> {
    let mut values = Vec::new();
    for (flow, facts) in setup.flows.iter().zip(&facts.groups) {
        values.extend(group_columns(flow).map(|(_, value)| value(facts)));
        values.extend(paths::values(flow, facts));
    }
    if !has_network(setup) {
        return values;
    }
    for facts in &facts.links {
        values.extend(link::COLUMNS.iter().map(|(_, value)| value(facts)));
    }
    values.extend(whole::COLUMNS.iter().map(|(_, value)| value(facts)));
    values
}
