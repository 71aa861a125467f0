//! One load of the page over one protocol: with its own link, server and client.

use std::sync::{Arc, mpsc};

use swiftwater::{CertificateDer, DevCertificate};
use tokio::sync::oneshot;

use super::browser::{self, Seen};
use super::emulated_link::{EmulatedLink, LinkKind};
use super::plan::WebProtocol;
use super::server;
use super::website::Website;
use crate::exit::{Exit, Failure};
use crate::identity::Identity;
use crate::link_args::Links;
use crate::transport::Tuning;

/// State shared by all visits.
pub struct Stage {
    pub(super) website: Arc<Website>,
    pub(super) identity: Identity,
    pub(super) trusted: CertificateDer<'static>,
    pub(super) tuning: Tuning,
    pub(super) tcp_controller: Option<String>,
    pub(super) way: LinkKind,
}

impl Stage {
    /// A stage with a new certificate.
    pub fn new(
        website: Website,
        tuning: Tuning,
        tcp_controller: Option<String>,
        way: LinkKind,
    ) -> Result<Self, Failure> {
        let certificate = DevCertificate::generate(["localhost"])
            .map_err(|error| Failure::new(Exit::Certificate, error))?;
        Ok(Self {
            website: Arc::new(website),
            identity: Identity::of(&certificate),
            trusted: certificate.certificate_der(),
            tuning,
            tcp_controller,
            way,
        })
    }
}

/// Measurements.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Visit {
    /// By the client.
    pub seen: Seen,
    /// Bytes that were put on the links, both ways, IP headers included.
    pub wire_bytes: u64,
    /// Packets that the links dropped, for any reason.
    pub dropped: u64,
    /// Packets that were put on the links.
    pub packets: u64,
    /// The kernel's congestion controller, if the page was sent over TCP.
    pub tcp_controller: Option<String>,
}

/// Loads the page once over `links`. Blocks: call it from a thread that may block.
pub fn visit(
    stage: &Arc<Stage>,
    protocol: WebProtocol,
    links: Links,
    seed: u64,
) -> Result<Visit, Failure> {
    let mut emulated = EmulatedLink::lay(stage.way, links, seed)?;
    let (here, there) = (emulated.client(), emulated.server());
    let (ready, listening) = mpsc::channel();
    let (stop, stopped) = oneshot::channel();
    let serving = {
        let (stage, address) = (Arc::clone(stage), there.address());
        there.spawn("server", move || {
            server::run(&stage, protocol, address, &ready, stopped);
        })?
    };
    let listening = listening.recv();
    let ended = |_| Failure::new(Exit::Failure, "the server did not start");
    let listening = listening.map_err(ended)??;
    let server = emulated.open(listening.address)?;
    let browsing = {
        let (stage, local) = (Arc::clone(stage), here.address());
        here.spawn("client", move || {
            browser::run(&stage, protocol, local, server)
        })?
    };
    let seen = browsing.result();
    let counters = emulated.counters();
    drop(stop);
    let served = serving.result();
    emulated.close();
    let mut visit = Visit {
        seen: seen??,
        tcp_controller: listening.tcp_controller,
        ..Visit::default()
    };
    served?;
    for link in counters {
        visit.wire_bytes += link.enqueued.bytes.get();
        visit.packets += link.enqueued.packets.get();
        visit.dropped += [link.dropped_queue, link.dropped_aqm, link.dropped_random]
            .map(|dropped| dropped.packets.get())
            .iter()
            .sum::<u64>();
    }
    Ok(visit)
}
