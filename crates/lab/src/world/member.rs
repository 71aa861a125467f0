//! The members of a group of flows: the applications on their hosts.

use std::net::SocketAddr;

use rand_chacha::ChaCha20Rng;
use rand_core::Rng;
use swiftwater_quic::{ClientConfig, LocalAddress};
use swiftwater_sim::HostId;
use swiftwater_sim::apps::{
    BulkReceiver, BulkSender, BurstSender, LiveServer, LiveViewer, Requester, Responder, Transfer,
    TransferReceiver, TransferSender,
};
use swiftwater_units::Instant;

use super::RunError;
use super::arrivals::bursts;
use super::group::Group;
use super::streaming::{Player, StreamingServer, StreamingViewer};
use super::topology::{Attached, Topology};
use super::video::{VideoServer, VideoViewer};
use crate::scenario::App;

/// Requests of a member at most.
const MAX_REQUESTS: usize = 10_000_000;

/// The hosts of a member, and their addresses.
pub(super) struct MemberEnds {
    sender: HostId,
    receiver: HostId,
    /// Where the sender is reached.
    pub(super) from: SocketAddr,
    to: SocketAddr,
    /// Between which the receiver migrates.
    local: Vec<LocalAddress>,
}

impl MemberEnds {
    /// The ends of a member on these hosts, whose receiver migrates between its addresses or does not.
    pub(super) fn new(sender: &Attached, receiver: &Attached, migrates: bool) -> Self {
        let local = migrates.then(|| receiver.local_addresses());
        Self {
            sender: sender.host,
            receiver: receiver.host,
            from: sender.address(),
            to: receiver.address(),
            local: local.unwrap_or_default(),
        }
    }
}

/// Installs the applications of a member, which starts at `start`.
pub(super) fn install(
    topology: &mut Topology,
    group: &mut Group<'_>,
    (member, start): (u32, Instant),
    ends: MemberEnds,
    client: ClientConfig,
    mut rng: ChaCha20Rng,
) -> Result<(), RunError> {
    let (spec, network) = (group.spec, &mut topology.network);
    let stop = spec.stop.map(|stop| Instant::ZERO + stop);
    match &spec.app {
        App::Bulk => {
            let app = BulkSender::new(client, ends.to, start, None).sample_rtt(None);
            network.install(ends.sender, app.stop(stop));
            network.install(ends.receiver, BulkReceiver::new());
        }
        App::ConstantRate { rate } => {
            let app = BurstSender::constant_rate(client, ends.to, start, *rate);
            network.install(ends.sender, app.stop(stop));
            network.install(ends.receiver, BulkReceiver::new());
        }
        App::OnOff { on, off, rate } => {
            let bursts = bursts(rng, start, *on, *off);
            let app = BurstSender::new(client, ends.to, start, *rate, bursts);
            network.install(ends.sender, app.stop(stop));
            network.install(ends.receiver, BulkReceiver::new());
        }
        App::Transfer { bytes } => {
            let transfer = Transfer {
                number: u64::from(member),
                start,
                remote: ends.to,
                bytes: *bytes,
            };
            group.plan.push(transfer);
            network.install(ends.sender, TransferSender::new(client, vec![transfer]));
            network.install(ends.receiver, TransferReceiver::new());
        }
        App::Requests { bytes, pause } => {
            let app = Requester::new(client, ends.from, (MAX_REQUESTS, *pause), (0, *bytes));
            let app = app.one_after_another(*pause).during(start, stop);
            network.install(ends.sender, Responder::new());
            network.install(ends.receiver, app);
        }
        App::Live {
            rate,
            first_frame,
            rebuffer,
            ..
        } => {
            let sizes = (*first_frame, *rebuffer);
            let app = LiveViewer::new(client, ends.from, start, *rate, sizes);
            network.install(ends.sender, LiveServer::new());
            network.install(ends.receiver, app.stop(stop));
        }
        App::Video(video) => {
            let source = video.source.open(rng.next_u64())?;
            let viewer = VideoViewer::new(client, ends.from, start);
            network.install(ends.sender, VideoServer::new(video, source));
            network.install(ends.receiver, viewer.stop(stop));
        }
        App::ChunkedVideo(video) => {
            let player = Player::Chunked(Box::new(video.player(rng.next_u64(), start)?));
            let viewer = StreamingViewer::new(client, ends.from, start, player);
            network.install(ends.sender, StreamingServer::new());
            network.install(ends.receiver, viewer.stop(stop).migrate(ends.local));
        }
        App::ShortVideo(feed) => {
            let player = Player::Short(Box::new(feed.player(rng.next_u64(), start)?));
            let viewer = StreamingViewer::new(client, ends.from, start, player);
            network.install(ends.sender, StreamingServer::new());
            network.install(ends.receiver, viewer.stop(stop).migrate(ends.local));
        }
        // There are no members of this kind.
        App::Poisson { .. } | App::Session(_) | App::Web(_) => {}
    }
    Ok(())
}
