//! Connections with several paths, each with an address of the client and a link of its own.

use std::net::SocketAddr;
use std::sync::Arc;

use swiftwater_link::LinkConfig;
use swiftwater_policies::Policies;
use swiftwater_policies::schedulers::MinRttConfig;
use swiftwater_quic::{Event, MultipathConfig, OpenPathError, PathAddress, TransportConfig};
use swiftwater_sim::{Attachment, Pair, PairBuilder, Verdict};
use swiftwater_units::{PathId, Side};

use super::{SIDES, millis};

/// The path that is opened first.
pub const SECOND: PathId = PathId::new(1);

/// An address of the client.
pub fn address(nth: u8) -> SocketAddr {
    ([192, 0, 2, nth], 50_000).into()
}

/// Multipath, with the scheduler that prefers the path of least round-trip time.
pub fn enable(config: &mut TransportConfig) {
    config.multipath = Some(MultipathConfig::default());
    config.policies =
        Arc::new(Policies::default().with_scheduler(Arc::new(MinRttConfig::default())));
}

/// Two ends with multipath, the first path on this link.
pub fn builder(first: LinkConfig) -> PairBuilder {
    Pair::builder().link(first).both_configs(enable)
}

/// A connection whose ends have exchanged connection IDs for further paths.
pub fn connected(builder: PairBuilder) -> Pair {
    let mut pair = builder.build().expect("a valid pair");
    assert!(pair.connect());
    pair.advance(millis(300));
    pair
}

/// Another address of the client with a link of its own.
pub fn attach(pair: &mut Pair, nth: u8, link: LinkConfig) -> Attachment {
    pair.attach_path(Side::Client, address(nth), link)
        .expect("a free address")
}

/// Opens a path from an attachment to the server's address.
pub fn open(pair: &mut Pair, from: Attachment) -> Result<PathId, OpenPathError> {
    let address = PathAddress {
        remote: pair.address(Side::Server),
        local: from.local,
    };
    let now = pair.now();
    pair.client().open_path(now, address)
}

/// Opens a path and runs until both ends use it.
pub fn opened(pair: &mut Pair, from: Attachment) -> PathId {
    let id = open(pair, from).expect("a path can be opened");
    assert!(pair.run_until(|pair| SIDES.into_iter().all(|side| has_opened(pair, side, id))));
    id
}

/// A connection with a second path on this link, and where that path is attached.
pub fn with_two_paths(builder: PairBuilder, second: LinkConfig) -> (Pair, Attachment) {
    let mut pair = connected(builder);
    let attachment = attach(&mut pair, 200, second);
    assert_eq!(opened(&mut pair, attachment), SECOND);
    (pair, attachment)
}

/// True if path `id` carries data on a side.
pub fn has_opened(pair: &Pair, side: Side, id: PathId) -> bool {
    let mut events = pair.events(side).iter();
    events.any(|event| matches!(event, Event::PathOpened { path, .. } if *path == id))
}

/// True if a side has abandoned path `id`, or the peer has.
pub fn has_abandoned(pair: &Pair, side: Side, id: PathId) -> bool {
    let mut events = pair.events(side).iter();
    events.any(|event| matches!(event, Event::PathAbandoned { path, .. } if *path == id))
}

/// What a side sent on a path, bytes.
pub fn sent_on(pair: &Pair, side: Side, id: PathId) -> u64 {
    let stats = pair.stats(side);
    let path = stats.paths.iter().find(|path| path.id == id);
    path.map_or(0, |path| path.sent_bytes.get())
}

/// Nothing passes on the link of an attachment, in either direction.
pub fn kill(pair: &mut Pair, from: Attachment) {
    for link in [from.uplink, from.downlink] {
        pair.network().tap(link, |_| Verdict::Drop);
    }
}
