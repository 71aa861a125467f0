//! How a path ends while the connection goes on on others (draft-ietf-quic-multipath-21, section 3.4).

use swiftwater_units::PathId;
use swiftwater_wire::ErrorCode;

use super::PathManagement;
use crate::control::{ControlKey, ControlValue};
use crate::events::{EndpointEvent, Event};
use crate::multipath::{Closing, abandon_code};
use crate::observe::{Observation, PathStage};
use crate::path::{CandidatePaths, Validation};
use crate::policy::PathPhase;
use crate::statistics::path_stats;

impl PathManagement<'_> {
    /// The peer abandons a path that is not open; false if it is open or over.
    pub(crate) fn abandon_unopened(&mut self, id: PathId, error: ErrorCode) -> bool {
        let unopened = self.paths.unopened().iter().position(|path| path.id == id);
        let Some(at) = unopened else {
            return false;
        };
        let path = self.paths.unopened_mut().remove(at);
        for cid in path.local.active() {
            self.outbox.endpoint_event(EndpointEvent::CidRetired(cid));
        }
        self.send_path_abandon(id, error);
        self.control.cancel_path(id);
        self.forget_path_id(id);
        true
    }

    /// Begins the end of an open path that is not the last one.
    pub(crate) fn start_closing(&mut self, id: PathId, error: ErrorCode, by_peer: bool) {
        let (Some(path), Some(multipath)) = (self.paths.get_mut(id), self.multipath.as_deref_mut())
        else {
            return;
        };
        path.phase = PathPhase::Closing;
        let address = path.network.address;
        path.network.validation = Validation::default();
        path.network.candidates = CandidatePaths::default();
        path.space.ping = false;
        path.space.probes = 0;
        path.pacing_until = None;
        let pto = path.pto(self.max_ack_delay);
        multipath.records.of(id).closing = Some(Closing::new(self.now, pto));
        self.paths.sort();
        self.control.cancel_path(id);
        self.streams.discard_path(id);
        self.datagrams.discard_path(id);
        self.send_path_abandon(id, error);
        self.connection_ids().sync_reset_tokens();
        let progress = Observation::PathProgress {
            path: id,
            address,
            stage: PathStage::Abandoned { error, by_peer },
        };
        self.monitor.observe(self.now, &progress);
        self.outbox.event(Event::PathAbandoned {
            path: id,
            error,
            by_peer,
        });
    }

    /// Both ends have abandoned a path.
    pub(crate) fn on_abandonment_answered(&mut self, id: PathId) {
        let longest_pto = self.paths.longest_pto(self.max_ack_delay);
        if let Some(multipath) = self.multipath.as_deref_mut()
            && let Some(closing) = &mut multipath.records.of(id).closing
        {
            closing.on_abandoned_by_peer(self.now, longest_pto);
        }
    }

    fn send_path_abandon(&mut self, id: PathId, error: ErrorCode) {
        let version = self.version().unwrap_or_default();
        let value = ControlValue::Code(abandon_code(version, error).0);
        self.control.set(ControlKey::PathAbandon(id), value);
    }

    /// An abandoned path is over: late packets of it are dropped from now on.
    pub(crate) fn forget_path(&mut self, id: PathId) {
        if let Some(path) = self.paths.remove(id) {
            if let Some(multipath) = self.multipath.as_deref_mut() {
                multipath.keep_ended(path_stats(&path));
            }
            for cid in path.cids.local.accepted() {
                self.outbox.endpoint_event(EndpointEvent::CidRetired(cid));
            }
        }
        self.forget_path_id(id);
    }

    /// One more path may be opened in the place of one that is over.
    fn forget_path_id(&mut self, id: PathId) {
        let Some(multipath) = self.multipath.as_deref_mut() else {
            return;
        };
        multipath.records.remove(id);
        multipath.coupled_control.on_path_closed(id);
        if let Some(max) = multipath.ids.grow() {
            self.control
                .set(ControlKey::MaxPathId, ControlValue::PathLimit(max));
            self.add_unopened(max);
            self.connection_ids().issue();
        }
    }
}
