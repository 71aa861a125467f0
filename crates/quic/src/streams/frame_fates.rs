//! Fates of packets that carried stream data: acknowledged, lost, or repeated by a probe timeout
//! (RFC 9000, section 13.3).

use std::ops::Range;

use swiftwater_units::StreamId;

use super::range_history::{Carrier, CarrierFate, RangeUse};
use super::retransmission_history::RepairEvent;
use super::{RepairStats, RetransmissionHistory, StreamEvent, Streams};
use crate::control::ControlKey;
use crate::frame_writer::Fate;
use crate::observe::Purpose;

/// Bytes of one stream whose packets had the same fate, gathered from consecutive frames.
#[derive(Clone, Debug)]
pub(crate) struct StreamRun {
    fate: CarrierFate,
    id: StreamId,
    range: Range<u64>,
    fin: bool,
}

impl Streams {
    /// Takes the fate of a packet that carried `range` of a stream, with the FIN if `fin`. The fate may
    /// be kept in `run` together with that of the next packet, which often carried the next bytes; after
    /// the last packet, [`Streams::on_run_fate`] applies what is left there.
    pub(crate) fn gather_fate(
        &mut self,
        run: &mut Option<StreamRun>,
        fate: &CarrierFate,
        id: StreamId,
        range: Range<u64>,
        fin: bool,
    ) {
        // While ranges are tracked it matters which packet delivered which byte.
        let may_join = fate.fate == Fate::Acked && self.has_no_repairs();
        if may_join
            && let Some(run) = run
            && run.id == id
            && run.range.end == range.start
        {
            run.range.end = range.end;
            run.fin |= fin;
            return;
        }
        let next = StreamRun {
            fate: *fate,
            id,
            range,
            fin,
        };
        let done = run.replace(next);
        self.on_run_fate(done);
        if !may_join {
            self.on_run_fate(run.take());
        }
    }

    /// Applies a fate that [`Streams::gather_fate`] kept.
    pub(crate) fn on_run_fate(&mut self, run: Option<StreamRun>) {
        if let Some(StreamRun {
            fate,
            id,
            range,
            fin,
        }) = run
        {
            self.on_frame_fate(&fate, id, range, fin);
        }
    }

    /// Applies the fate of a packet that carried `range` of a stream, with the FIN if `fin`. Several
    /// copies of a byte may be in flight.
    pub(crate) fn on_frame_fate(
        &mut self,
        fate: &CarrierFate,
        id: StreamId,
        range: Range<u64>,
        fin: bool,
    ) {
        let Some(key) = self.ids.key(id) else {
            return;
        };
        match fate.fate {
            Fate::Acked => self.on_frame_acked(fate, key, id, range, fin),
            Fate::Lost | Fate::Probed => self.on_frame_lost(fate, key, range, fin),
        }
        self.wake_writers();
    }

    fn on_frame_acked(
        &mut self,
        fate: &CarrierFate,
        key: u32,
        id: StreamId,
        range: Range<u64>,
        fin: bool,
    ) {
        if let Some(history) = self.history.get_mut()
            && !history.is_empty()
        {
            history.on_acked(&fate.carrier, id, range.clone());
        }
        let ended = self.with_send(key, |send, pool| {
            if send.is_reset() {
                return None;
            }
            send.on_acked(range, fin, pool);
            send.is_complete().then(|| send.is_whole())
        });
        if let Some(whole) = ended.flatten() {
            if whole {
                self.events.push_back(StreamEvent::Finished { id });
            }
            self.close_send(key);
        }
    }

    /// Queues for retransmission what a packet with `range` of a stream, lost or probed for, carried and
    /// no live copy carries.
    fn on_frame_lost(&mut self, fate: &CarrierFate, key: u32, range: Range<u64>, fin: bool) {
        let Some(stream) = self.slab.get(key) else {
            return;
        };
        let Some(send) = stream.send.as_ref().filter(|send| !send.is_reset()) else {
            return;
        };
        let id = stream.id;
        let history = self.history.need();
        let mut gaps = std::mem::take(&mut history.gaps);
        let mut resend = std::mem::take(&mut history.resend);
        gaps.extend(send.buffer.unacked(range.clone()));
        for gap in &gaps {
            history.on_lost(fate, id, gap.clone(), &mut resend);
        }
        let is_tail = |ranges: &[Range<u64>]| ranges.last().is_some_and(|r| r.end == range.end);
        // The FIN goes with the last byte; it is alone if there is none, or the last one arrived.
        let fin = fin && (is_tail(&resend) || !is_tail(&gaps));
        self.with_send(key, |send, _| {
            for range in resend.drain(..) {
                send.buffer.on_lost(range, false);
            }
            if fin {
                send.buffer.on_lost(range.end..range.end, true);
            }
        });
        gaps.clear();
        let history = self.history.need();
        history.gaps = gaps;
        history.resend = resend;
    }

    /// `len` bytes from `offset` on of a stream were sent in `carrier`.
    pub(crate) fn on_frame_sent(
        &mut self,
        carrier: &Carrier,
        id: StreamId,
        offset: u64,
        len: u32,
        purpose: Purpose,
    ) {
        if purpose == Purpose::New {
            // Only what is sent again has a history.
            self.stats.new_bytes += u64::from(len);
            return;
        }
        let range = offset..offset + u64::from(len);
        let hints = self.hints_of(id, range.clone());
        let usage = RangeUse {
            purpose,
            priority: hints.priority.unwrap_or_default(),
            deadline: hints.deadline,
        };
        self.history.need().on_sent(carrier, id, range, &usage);
    }

    /// True if [`Streams::poll_repair`] has something.
    #[inline]
    pub(crate) fn has_repair_events(&self) -> bool {
        (self.history.get()).is_some_and(RetransmissionHistory::has_events)
    }

    /// The next event of data under repair, for policies and observers.
    pub(crate) fn poll_repair(&mut self) -> Option<RepairEvent> {
        self.history.get_mut()?.poll_event()
    }

    /// Abandons all data under repair: the connection closed.
    pub(crate) fn abandon_repairs(&mut self) {
        if let Some(history) = self.history.get_mut() {
            history.on_closed();
        }
    }

    /// Replicas of `range` that were sent so far.
    pub(crate) fn replicas_of(&self, id: StreamId, range: Range<u64>) -> u32 {
        self.history
            .get()
            .map_or(0, |history| history.replicas_of(id, range))
    }

    /// True if nothing is under repair.
    pub(crate) fn has_no_repairs(&self) -> bool {
        self.history
            .get()
            .is_none_or(RetransmissionHistory::is_empty)
    }

    /// Totals of repair.
    pub(crate) fn repair_stats(&self) -> RepairStats {
        let of_history = self.history.get().map(|history| history.stats);
        RepairStats {
            new_bytes: self.stats.new_bytes.into(),
            ..of_history.unwrap_or_default()
        }
    }

    /// The peer acknowledged the value of `key`.
    pub(crate) fn on_control_acked(&mut self, key: ControlKey) {
        let ControlKey::ResetStream(id) = key else {
            return;
        };
        let Some((key, _)) = self.stream(id) else {
            return;
        };
        let over = self.with_send(key, |send, _| {
            send.on_reset_at_acked();
            send.is_reset() || send.is_complete()
        });
        if over == Some(true) {
            self.close_send(key);
        }
    }

    /// Ends the sending half of `key`: everything was delivered, or the peer acknowledged the reset.
    fn close_send(&mut self, key: u32) {
        let send = &mut self.slab[key].send;
        if let Some(half) = send {
            self.outgoing.expiries.replace(key, half.expiry, None);
            // In place: it is large to be moved out.
            *send = None;
        }
        self.discard_unlimited(key);
        self.close_if_done(key);
    }
}
