//! Writing results to standard output without ever panicking.

use std::io::{self, IsTerminal, Write};

use serde::Serialize;

use crate::exit::{Exit, Failure};

/// Prints one line. A closed pipe (`| head`) ends the command without an error message.
pub fn line(text: &str) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    writeln!(stdout, "{text}")
        .and_then(|()| stdout.flush())
        .map_err(failure)
}

/// Prints `text` unchanged.
pub fn raw(text: &[u8]) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    stdout
        .write_all(text)
        .and_then(|()| stdout.flush())
        .map_err(failure)
}

/// Prints `row` as one line of JSON.
pub fn json(row: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string(row).map_err(|error| Failure::new(Exit::Failure, error))?;
    line(&text)
}

/// Writes a remark to standard error. It is not a result, so its loss is ignored.
pub fn note(text: &str) {
    // A failure of standard error has no remedy.
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// True if standard error is a terminal, where progress bars make sense.
pub fn interactive() -> bool {
    io::stderr().is_terminal()
}

fn failure(error: io::Error) -> Failure {
    if error.kind() == io::ErrorKind::BrokenPipe {
        return Failure::reported(Exit::Success);
    }
    Failure::from(error).context("cannot write to standard output")
}
