//! One module per command.

pub(crate) mod generate;
pub(crate) mod get;
pub(crate) mod play;
pub mod relay;
pub mod serve;
pub(crate) mod sim;
pub mod tunnel;
