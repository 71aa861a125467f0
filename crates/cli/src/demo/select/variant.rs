//! One strategy on one course: its network, server and session, and what became of its requests so far.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::Duration;

use swiftwater::{CertificateDer, DevCertificate};
use tokio::sync::oneshot;

use super::course::Course;
use super::network::Network;
use super::plan::Plan;
use super::record::{End, Record};
use super::row::{Controllers, SelectRow};
use super::strategy::Strategy;
use super::{server, session};
use crate::exit::{Exit, Failure};
use crate::identity::Identity;

/// What all variants have in common.
pub(super) struct Stage {
    pub(super) plan: Arc<Plan>,
    pub(super) identity: Identity,
    pub(super) trusted: CertificateDer<'static>,
}

impl Stage {
    /// With a new certificate.
    pub(super) fn new(plan: Arc<Plan>) -> Result<Self, Failure> {
        let certificate = DevCertificate::generate(["localhost"])
            .map_err(|error| Failure::new(Exit::Certificate, error))?;
        Ok(Self {
            plan,
            identity: Identity::of(&certificate),
            trusted: certificate.certificate_der(),
        })
    }
}

/// A strategy on a course.
pub(super) struct Variant {
    pub(super) course: Course,
    pub(super) strategy: Strategy,
    progress: Mutex<Progress>,
}

struct Progress {
    records: Vec<Record>,
    /// Those of the selection, if there is one.
    switches: Option<u64>,
    controllers: Controllers,
}

impl Variant {
    pub(super) fn new(course: Course, strategy: Strategy, plan: &Plan) -> Self {
        Self {
            course,
            strategy,
            progress: Mutex::new(Progress {
                records: Vec::with_capacity(plan.browsing.requests()),
                switches: None,
                controllers: Controllers {
                    quic: plan.tuning.basics.controller_name(),
                    tcp: None,
                },
            }),
        }
    }

    /// Runs the session. Blocks: call it from a thread that may block.
    pub(super) fn run(self: &Arc<Self>, stage: &Arc<Stage>) -> Result<(), Failure> {
        let network = Arc::new(Network::start(self.course, stage.plan.seed)?);
        let (ready, listening) = mpsc::channel();
        let (stop, stopped) = oneshot::channel();
        let serving = {
            let (stage, address) = (Arc::clone(stage), network.server());
            network.at_server(move || server::run(&stage, address, &ready, stopped))?
        };
        let listening = listening.recv();
        let ended = |_| Failure::new(Exit::Failure, "the server did not start");
        let server = listening.map_err(ended)??;
        self.lock().controllers.tcp = server.tcp_controller;
        let browsing = {
            let (stage, variant) = (Arc::clone(stage), Arc::clone(self));
            let at = Arc::clone(&network);
            network.at_client(move || session::run(&stage, &variant, &at, server.at))?
        };
        let browsed = browsing.result();
        drop(stop);
        serving.result()?;
        browsed?
    }

    fn lock(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a request, and returns its number.
    pub(super) fn note(&self, record: Record) -> usize {
        let records = &mut self.lock().records;
        records.push(record);
        records.len() - 1
    }

    /// Request `nth` is sent once more.
    pub(super) fn repeated(&self, nth: usize) {
        if let Some(record) = self.lock().records.get_mut(nth) {
            record.repeated = true;
        }
    }

    /// Request `nth` is over.
    pub(super) fn ended(&self, nth: usize, end: End) {
        if let Some(record) = self.lock().records.get_mut(nth) {
            record.end = Some(end);
        }
    }

    /// The selection has changed the arm so often.
    pub(super) fn switches(&self, switches: u64) {
        self.lock().switches = Some(switches);
    }

    /// What has no response after `elapsed` has failed.
    pub(super) fn give_up(&self, elapsed: Duration) {
        for record in &mut self.lock().records {
            let took = elapsed.saturating_sub(record.at);
            let why = || "no response by the end of the demonstration".to_owned();
            record
                .end
                .get_or_insert_with(|| End::Failed { took, why: why() });
        }
    }

    /// The requests so far.
    pub(super) fn records(&self) -> Vec<Record> {
        self.lock().records.clone()
    }

    /// The results so far.
    pub(super) fn row(&self) -> SelectRow {
        let progress = self.lock();
        SelectRow::of(
            self.course,
            self.strategy,
            progress.controllers.clone(),
            &progress.records,
            progress.switches,
        )
    }
}
