//! Failures of commands: one line of text and one exit code.

use std::fmt;
use std::io;
use std::process::ExitCode;

/// Exit codes of the `swiftwater` command. They are part of its interface: a code never changes its
/// meaning.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Exit {
    /// 0: success.
    Success = 0,
    /// 1: a failure without a specific code.
    Failure = 1,
    /// 2: the command line is invalid.
    Usage = 2,
    /// 3: a host name has no address, or the lookup failed temporarily.
    UnknownHost = 3,
    /// 4: no connection, or the connection was lost: UDP blocked, no server, refused.
    Connection = 4,
    /// 5: the peer's certificate is not trusted, or TLS failed otherwise.
    Certificate = 5,
    /// 6: the server has no such file or refuses it (`hq-interop`; HTTP has statuses).
    Refused = 6,
    /// 7: a local file or directory: missing, exists already, no permission, disk full.
    LocalFile = 7,
    /// 8: received data differ from the data sent.
    Differs = 8,
    /// 9: cannot listen on the address, most often because the port is taken.
    Listen = 9,
    /// 10: there is no such scenario or controller, or a scenario's file is invalid; the message
    /// names file and line.
    Scenario = 10,
    /// 11: runs of an experiment failed. The others are kept.
    Runs = 11,
    /// 12: claims of an experiment failed or are open, and `--strict` was given.
    Claims = 12,
    /// 13: the server answered with a status of 400 or above, or with a redirect that was not followed.
    Status = 13,
    /// 14: `--max-time` was exceeded.
    TooSlow = 14,
    /// 15: runs are missing from joined results, and `--partial` was not given.
    Incomplete = 15,
    /// 130: interrupted with Ctrl-C before the work was done.
    Interrupted = 130,
}

/// The list of exit codes in `--help` and the manual page.
pub const EXIT_CODES: &str = "\
Exit codes:
  0    success
  1    failure without a code of its own
  2    the command line was not understood
  3    unknown host, or it can't be looked up now
  4    no connection, or connection lost (UDP blocked, no server, refused)
  5    certificate not trusted, or another TLS failure
  6    the server has no such file or refuses it (hq-interop)
  7    local file or directory (missing, exists, no permission, disk full)
  8    what arrived differs from what was sent
  9    cannot listen on the address (port taken)
  10   no such scenario, or its file is wrong (file and line are named)
  11   runs of an experiment failed (the others are kept)
  12   claims of an experiment failed or are open (only with --strict)
  13   the server answered with an error status (400 and up) or a redirect that was not followed
  14   it took longer than --max-time
  15   runs are missing from joined results (unless --partial)
  130  interrupted (Ctrl-C)";

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// Why a command failed: an exit code and one line for standard error.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Failure {
    /// The exit code.
    pub exit: Exit,
    message: String,
}

impl Failure {
    /// A failure with this code and message. Control characters in the message, line breaks among
    /// them, are replaced: parts of it may come from a peer or a file name.
    pub fn new(exit: Exit, message: impl fmt::Display) -> Self {
        Self {
            exit,
            message: one_line(&message.to_string()),
        }
    }

    /// A failure that was reported already and only sets the exit code.
    pub fn reported(exit: Exit) -> Self {
        Self {
            exit,
            message: String::new(),
        }
    }

    /// The message; empty if it was reported already.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The same failure, its message preceded by `context: `.
    #[must_use]
    pub fn context(self, context: impl fmt::Display) -> Self {
        Self::new(self.exit, format_args!("{context}: {}", self.message))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::new(Exit::Failure, plain_io_error(&error))
    }
}

/// The system's message, without the number in brackets that `io::Error` appends.
pub fn plain_io_error(error: &io::Error) -> String {
    let text = error.to_string();
    match text.find(" (os error") {
        Some(end) => text[..end].to_owned(),
        None => text,
    }
}

/// `text` with every control character replaced, so that it is one line and harmless on a terminal.
pub fn one_line(text: &str) -> String {
    text.trim()
        .chars()
        .map(|c| if c.is_control() { '\u{fffd}' } else { c })
        .collect()
}
