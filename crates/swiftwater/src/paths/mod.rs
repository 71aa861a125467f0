//! Which paths a client keeps open, and from where (draft-ietf-quic-multipath-21, section 3).
//!
//! - [`PathPolicy`]: the local addresses and interfaces to use, and the role of each.
//! - [`TechnologyOrder`]: which of the paths opens first, by access technology.
//! - [`PathPlanner`]: what is to be opened and abandoned, from values alone: no clock, socket or task.
//! - [`InterfaceWatch`]: the addresses of this host as they come and go.
//! - [`PathManager`]: a task that does what the planner says for one connection.

mod addresses;
mod interfaces;
mod manager;
mod planner;
mod policy;
mod technology;

pub use addresses::is_possible_pair;
pub use interfaces::{InterfaceAddress, InterfaceWatch, interface_addresses};
pub use manager::PathManager;
pub use planner::{PathAction, PathPlanner};
pub use policy::{AddressFamilies, LocalEnd, PathPolicy, PathRule};
pub use technology::{AccessTechnology, TechnologyOrder};
