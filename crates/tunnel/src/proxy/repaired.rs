//! Payloads to a client that are numbered, kept and sent again when they are lost, and the reports about them.

use std::time::Duration;

use bytes::Bytes;
use swiftwater_http::udp::connect::{DatagramBatch, HttpDatagrams};
use swiftwater_net::quic::{DatagramFate, DatagramOptions};
use swiftwater_units::{Bandwidth, ByteCount, Instant};

use super::stats::Dropped;
use super::to_client::{deadline, send_datagram};
use crate::context;
use crate::tecc::{
    Agreement, MAX_QUEUE_DELAY, Repair, RepairLimits, Reporter, ReporterConfig, TunnelState,
    URGENCY_OF_REPAIRS, URGENCY_OF_REPORTS, data, queue_limit,
};

/// Least time between two looks at the state of the connection.
const LEAST_WAIT: Duration = Duration::from_millis(5);

/// Datagrams with repair.
pub(super) struct Repaired {
    agreement: Agreement,
    repair: Repair,
    reporter: Option<Reporter>,
    /// Something passed since the reporter was asked.
    is_changed: bool,
    /// It is not asked before then.
    not_before: Option<Instant>,
    /// Payloads that found no room, or waited for too long.
    overflows: u64,
    /// Bytes that may wait if there are reports.
    queue_limit: ByteCount,
}

impl Repaired {
    /// Nothing was sent so far.
    pub(super) fn new(agreement: Agreement, limits: RepairLimits) -> Self {
        Self {
            agreement,
            repair: Repair::new(match agreement.reports() {
                Some(_) => limits.with_reports(),
                None => limits,
            }),
            reporter: None,
            is_changed: false,
            not_before: None,
            overflows: 0,
            queue_limit: queue_limit(Bandwidth::ZERO, Duration::ZERO),
        }
    }

    /// Sends a payload with the next number.
    pub(super) fn send(
        &mut self,
        batch: &mut DatagramBatch<'_>,
        now: Instant,
        payload: &[u8],
    ) -> Result<(), Dropped> {
        self.is_changed = true;
        let number = self.repair.next_number();
        let datagram = Bytes::from(data::encode(self.agreement.data(), number, payload));
        let limits = if self.agreement.reports().is_some() {
            DatagramOptions::default().with_group_limit(self.queue_limit)
        } else {
            deadline(now + MAX_QUEUE_DELAY)
        };
        let options = limits.with_key(number);
        let sent = send_datagram(batch, [&[], &datagram], options);
        self.overflows += u64::from(sent.is_err());
        sent?;
        self.repair.on_queued(datagram);
        Ok(())
    }

    /// Takes the fate of a payload; true if it was sent again.
    pub(super) fn on_fate(
        &mut self,
        datagrams: &HttpDatagrams,
        number: u64,
        fate: DatagramFate,
    ) -> bool {
        self.is_changed = true;
        match fate {
            DatagramFate::Acknowledged => self.repair.on_acknowledged(number),
            DatagramFate::Lost { sent_at } => return self.send_again(datagrams, number, sent_at),
            // It never left.
            _ => {
                self.repair.on_unsent(number);
                self.overflows += 1;
            }
        }
        false
    }

    fn send_again(&mut self, datagrams: &HttpDatagrams, number: u64, sent_at: Instant) -> bool {
        let connection = datagrams.connection();
        let (rtt, variation) = connection.stats().paths.first().map_or_else(
            || (Duration::MAX / 8, Duration::ZERO),
            |path| (path.smoothed_rtt, path.rtt_var),
        );
        let horizon = self.repair.limits().horizon(rtt, variation);
        let lost = (self.repair).on_lost(connection.now(), number, sent_at, horizon);
        let Some((datagram, until)) = lost else {
            return false;
        };
        let mut options = deadline(until);
        options.key = Some(number);
        options.urgency = URGENCY_OF_REPAIRS;
        let sent = datagrams.try_send_with(&datagram, options).is_ok();
        if !sent {
            self.repair.on_unsent(number);
        }
        sent
    }

    /// Reports if it is time to; returns in what time to ask again, although nothing passes.
    pub(super) fn report(&mut self, datagrams: &HttpDatagrams) -> Option<Duration> {
        let context = self.agreement.reports()?;
        let connection = datagrams.connection();
        let now = connection.now();
        let reporter =
            (self.reporter).get_or_insert_with(|| Reporter::new(now, ReporterConfig::default()));
        let due = match self.not_before {
            Some(at) if self.is_changed => Some(at),
            _ if self.is_changed => Some(now),
            _ => reporter.next_deadline(),
        };
        let due = due?;
        if due > now {
            return Some(due.saturating_since(now));
        }
        (self.is_changed, self.not_before) = (false, Some(now + LEAST_WAIT));
        let stats = connection.stats();
        let path = stats.paths.first()?;
        let in_flight = usize::try_from(path.bytes_in_flight.get()).unwrap_or(usize::MAX);
        self.repair.on_bytes_in_flight(in_flight);
        let rate = path.granted_rate();
        self.queue_limit = queue_limit(rate, path.min_rtt);
        let queue = stats.datagram_bytes_unsent;
        let state = TunnelState {
            rate,
            acknowledged: path.delivered,
            queue,
            sojourn: rate.time_to_send(queue.get()),
            smoothed_rtt: path.smoothed_rtt,
            rtt_var: path.rtt_var,
            min_rtt: path.min_rtt,
            next_number: self.repair.next_number(),
            settled: self.repair.settled(),
            repair: self.repair.stats(),
            app_limited: path.app_limited,
            startup: path.is_in_startup(),
            congestion_events: path.congestion_events,
            overflows: self.overflows,
        };
        if let Some(report) = reporter.poll(now, &state) {
            let report = context::encode(context, &report.encode());
            let mut options = deadline(now + MAX_QUEUE_DELAY);
            options.urgency = URGENCY_OF_REPORTS;
            // The next one will do as well.
            let _ = datagrams.try_send_with(&report, options);
        }
        let next = reporter.next_deadline()?;
        Some(next.saturating_since(now).max(LEAST_WAIT))
    }
}
