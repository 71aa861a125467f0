//! A test kit for policies: what a connection does, in plain values and virtual time.
//!
//! - [`Network`] sends a transfer over [`ScriptedPath`]s, whose rate, delay, loss and outages a test
//!   writes down, with a scheduler and a re-injector under test;
//! - [`ReinjectorDriver`] reports single events to a re-injector and asks it, step by step.
//!
//! ```
//! use std::time::Duration;
//!
//! use swiftwater_policies::schedulers::{MinRtt, MinRttConfig};
//! use swiftwater_policies::testkit::{Network, ScriptedPath};
//! use swiftwater_units::{Bandwidth, ByteCount};
//!
//! let near = ScriptedPath::new(Bandwidth::from_mbps(10), Duration::from_millis(10));
//! let far = ScriptedPath::new(Bandwidth::from_mbps(10), Duration::from_millis(40));
//! let report = Network::new([near, far])
//!     .scheduler(Box::new(MinRtt::new(MinRttConfig::default())))
//!     .transfer(ByteCount::new(2_000_000), Duration::from_secs(10));
//! assert!(report.completed_in.expect("complete") < Duration::from_millis(1_200));
//! ```

mod driver;
mod network;
mod report;
mod scripted_path;

pub use driver::{ReinjectorDriver, data_range};
pub use network::Network;
pub use report::{PathReport, TransferReport};
pub use scripted_path::ScriptedPath;
