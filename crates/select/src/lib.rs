//! Chooses request by request which protocol carries it: TCP or QUIC, and with which controller.
//!
//! Clients choose by who shakes hands first. This crate chooses by how quickly requests complete, after
//! Zhang et al., "Reducing Mobile Web Latency Through Adaptively Selecting Transport Protocol" (IEEE/ACM
//! Transactions on Networking 2023), and by a bandit of its own, `select+`.
//!
//! A [`Selector`] owns everything: features and their windows, the network monitor with its models,
//! experiments, the rollback checker, the memory of blocked UDP. It does no I/O and reads no clock: the
//! caller asks [`Selector::decide`] before each request, tells [`Selector::on_outcome`] after it, and
//! calls [`Selector::on_timeout`] at [`Selector::next_timeout`].
//!
//! ```
//! use std::time::Duration;
//! use swiftwater_select::{
//!     Arm, Config, Measured, Models, NetworkId, OriginHash, Outcome, RequestDescription, Selector,
//!     Strategy,
//! };
//! use swiftwater_units::Instant;
//!
//! let config = Config::new(vec![Arm::h2(), Arm::h3()], Strategy::wise());
//! let mut selector = Selector::new(config, Models::none(), 1)?;
//! let (network, origin) = (NetworkId(1), OriginHash::of("https://example.com:443"));
//! let mut now = Instant::ZERO;
//! for _ in 0..20 {
//!     let decision = selector.decide(now, &RequestDescription::new(network, origin));
//!     // Send the request over `decision.arm`. Here QUIC takes 50 ms and TCP 80 ms.
//!     let millis = if decision.arm == Arm::h3() { 50 } else { 80 };
//!     now += Duration::from_millis(millis);
//!     let measured = Measured {
//!         first_byte: Duration::from_millis(millis - 10),
//!         completion: Duration::from_millis(millis),
//!         bytes: 20_000,
//!         ..Measured::default()
//!     };
//!     let outcome = Outcome::new(decision.arm, Ok(measured));
//!     selector.on_outcome(now, decision.id, &outcome);
//!     while let Some(event) = selector.poll_event() {
//!         println!("{event}");
//!     }
//! }
//! assert_eq!(selector.current(network, origin), Some(Arm::h3()));
//! # Ok::<(), swiftwater_select::ConfigError>(())
//! ```
//!
//! Models are read from XGBoost's files ([`Model::read`]); without any, experiments start on new
//! connections and networks only. Connecting, racing and sending are the caller's.

#![forbid(unsafe_code)]

mod agenda;
mod arm;
mod bandit;
mod blocked;
mod comparison;
mod decision;
mod event;
mod experiment;
mod features;
mod key;
mod model;
mod monitor;
mod parameters;
mod patience;
mod rank_sum;
mod recheck;
mod request;
mod rollback;
mod selector;
mod stats;
mod strategy;
mod window;

pub use agenda::Agenda;
pub use arm::{Arm, ArmError, Transport};
pub use decision::{Decision, Hedge, Reason, Trigger};
pub use event::{Event, EventKind, SwitchCause};
pub use features::{Feature, Features};
pub use key::{NetworkId, OriginHash};
pub use model::{MAX_DEPTH, MAX_FILE, MAX_NODES, MAX_TREES, Model, ModelError, Models};
pub use parameters::{PARAMETERS, ParameterError, ParameterInfo, Parameters};
pub use rank_sum::p_greater;
pub use request::{Failure, Measured, Outcome, RequestDescription, RequestId, Traffic};
pub use selector::{Config, ConfigError, Selector, SnapshotError, Warm};
pub use stats::Stats;
pub use strategy::{Boundary, Strategy, UnknownStrategy};
pub use window::{Sample, Window};
