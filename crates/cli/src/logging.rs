//! Logging to standard error, and its level, which can change while the program runs.

use tracing_subscriber::EnvFilter;

use crate::output;

/// Logs go to standard error: errors by default, more with each `-v`; `RUST_LOG` overrides.
pub(crate) fn start(verbose: u8) -> Logging {
    let default = match verbose {
        0 => "error",
        1 => "info",
        2 => "debug",
        _ => "trace",
    };
    let from_environment = EnvFilter::try_from_default_env().ok();
    let chosen = verbose > 0 || from_environment.is_some();
    let filter = from_environment.unwrap_or_else(|| EnvFilter::new(default));
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(output::interactive())
        .with_filter_reloading();
    let handle = builder.reload_handle();
    // Fails only if a subscriber is installed already, as in tests that run several commands.
    let _ = builder.try_init();
    let set = move |level: &str| {
        // Fails only if the subscriber is gone.
        let _ = handle.reload(EnvFilter::new(level));
    };
    Logging {
        default,
        set: (!chosen).then(|| Box::new(set) as _),
    }
}

/// Handle of the installed logger.
pub(crate) struct Logging {
    default: &'static str,
    /// `None` if the user has fixed the level.
    set: Option<Setter>,
}

/// Changes the level.
type Setter = Box<dyn Fn(&str) + Send + Sync>;

impl Logging {
    /// Logs at this level from now on, at the default one if it is `None`; unless a flag or `RUST_LOG`
    /// sets it.
    pub(crate) fn set_level(&self, level: Option<&str>) {
        if let Some(set) = &self.set {
            set(level.unwrap_or(self.default));
        }
    }
}
