//! Several paths in one connection, as flags: `--path`, `--max-paths`, `--scheduler`, `--multipath`,
//! `--multipath-version`, `--path-operation`.

mod flags;
mod managers;
mod operations;
mod path_arg;

pub use flags::{MultipathArgs, MultipathOffer, PathArgs, parse_feedback, parse_scheduler};
pub use managers::PathManagers;
pub use operations::{
    PathOperation, PathOperationAction, PathOperationArgs, PathOperationError, RunningOperations,
};
pub use path_arg::{PathArg, PathArgError};
