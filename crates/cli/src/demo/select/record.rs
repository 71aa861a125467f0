//! What became of each request of a session.

use std::time::Duration;

use swiftwater_http::client::{ArmChoice, Chosen, Protocol};

/// A request.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// When it was sent, since the start of the session.
    pub at: Duration,
    /// How it ended; `None` as long as it has not.
    pub end: Option<End>,
    /// It was sent once more, because the response broke off or did not come.
    pub repeated: bool,
}

/// The end of a request.
#[derive(Clone, Debug, PartialEq)]
pub enum End {
    /// All of the response came.
    Complete {
        /// From the sending of the request to the last byte, however often it was sent.
        took: Duration,
        /// What it came over.
        over: Over,
        /// Its SHA-256 is that of what was requested.
        intact: bool,
    },
    /// There is no whole response.
    Failed {
        /// Since the sending of the request.
        took: Duration,
        /// Why.
        why: String,
    },
}

/// What a response came over, and why.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Over {
    /// The protocol.
    pub protocol: Protocol,
    /// Why it was chosen.
    pub reason: String,
    /// It was sent in order to learn.
    pub is_probe: bool,
}

impl Over {
    /// Of a response, by its extensions.
    pub fn of(extensions: &http::Extensions) -> Option<Self> {
        let chosen = extensions.get::<Chosen>()?;
        let choice = extensions.get::<ArmChoice>();
        let reason = match choice {
            Some(choice) if choice.hedged => {
                format!("{}, over both", choice.reason.name().replace('_', " "))
            }
            Some(choice) => choice.reason.name().replace('_', " "),
            None => chosen.why.to_string(),
        };
        Some(Self {
            protocol: chosen.protocol,
            reason,
            is_probe: choice.is_some_and(|choice| choice.reason.is_probe()),
        })
    }

    /// Protocol and reason.
    pub fn describe(&self) -> String {
        format!("{}: {}", self.protocol, self.reason)
    }
}

impl Record {
    /// A request that is sent now.
    pub fn sent(at: Duration) -> Self {
        Self {
            at,
            end: None,
            repeated: false,
        }
    }

    /// Time to the end, and what the response came over; `None` without one that is whole and right.
    pub fn answered(&self) -> Option<(Duration, &Over)> {
        match &self.end {
            Some(End::Complete {
                took,
                over,
                intact: true,
            }) => Some((*took, over)),
            _ => None,
        }
    }
}
