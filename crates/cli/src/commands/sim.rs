//! `sim`: flows that share a bottleneck, in virtual time, from flags alone.

use clap::Args;

use crate::exit::Failure;

/// `sim`.
#[derive(Args, Debug)]
pub struct SimArgs {}

pub(crate) fn run(_args: &SimArgs) -> Result<(), Failure> {
    Ok(())
}
