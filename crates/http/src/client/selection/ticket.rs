//! The outcome of one request, reported once: by the end of its response, its failure, or its cancellation.

use std::sync::Arc;
use std::time::Duration;

use swiftwater_select::{Arm, Decision, Failure, Measured, Outcome, RequestId, Traffic};

use super::chooser::Selection;
use crate::client::error::{AttemptCause, Error};
use crate::client::measurements::{End, Snapshot};

/// A request without an outcome yet. Dropping it reports that the request was cancelled.
pub(super) struct Ticket {
    selection: Arc<Selection>,
    id: RequestId,
    /// The arm that was decided on.
    arm: Arm,
    over: bool,
}

impl Ticket {
    pub(super) fn new(selection: &Arc<Selection>, decision: &Decision) -> Self {
        Self {
            selection: Arc::clone(selection),
            id: decision.id,
            arm: decision.arm.clone(),
            over: false,
        }
    }

    fn report(&mut self, outcome: &Outcome) {
        self.over = true;
        self.selection.ended(self.id, outcome);
    }

    /// There is no response.
    pub(super) fn failed(mut self, error: &Error) {
        self.report(&Outcome::new(self.arm.clone(), Err(failure(error))));
    }

    /// The response ended. `arm` answered, and the request was sent on it `sent` after its start, after it had `waited` for a
    /// connection of the arm; `silent` if nothing had
    /// come on the connection of the arm that was decided on, should that be another one; `hedged` if the request was sent
    /// over a second arm, too.
    pub(super) fn ended(
        mut self,
        (arm, silent, hedged): (Arm, bool, bool),
        (sent, waited): (Duration, Duration),
        snapshot: Snapshot,
        traffic: Option<Traffic>,
    ) {
        let since_sent = |time: Option<Duration>| time.unwrap_or_default().saturating_sub(sent);
        let result = match snapshot.end {
            Some(End::Complete) => Ok(Measured {
                first_byte: since_sent(snapshot.first_byte),
                completion: since_sent(snapshot.completion),
                waited,
                bytes: snapshot.received,
                rtt: snapshot.rtt,
                traffic,
            }),
            Some(End::Broken) => Err(Failure::Lost),
            _ => Err(Failure::Cancelled),
        };
        self.report(&Outcome {
            arm,
            result,
            silent,
            hedged,
        });
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if !self.over {
            self.report(&Outcome::new(self.arm.clone(), Err(Failure::Cancelled)));
        }
    }
}

fn failure(error: &Error) -> Failure {
    match error {
        Error::Unreachable(attempts) => {
            let late = |cause: &AttemptCause| matches!(cause, AttemptCause::Timeout(_));
            if attempts.iter().all(|attempt| late(&attempt.cause)) {
                Failure::TooSlow
            } else {
                Failure::Connect
            }
        }
        Error::Timeout(_) => Failure::TooSlow,
        Error::Http3(_) | Error::Content(_) | Error::Tcp(_) => Failure::Lost,
        // The request itself, or the lookup of its host.
        _ => Failure::Cancelled,
    }
}
