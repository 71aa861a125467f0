//! `completions` and `man`: files generated from the definition of the command line.

use std::fs;
use std::io;
use std::path::Path;

use clap::CommandFactory;
use clap_complete::Shell;
use clap_mangen::Man;

use crate::cli::Cli;
use crate::exit::{Exit, Failure, plain_io_error};
use crate::files::make_directory;
use crate::output;

/// Prints the completion script for `shell`.
pub(crate) fn completions(shell: Shell) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "swiftwater", &mut script);
    output::raw(&script)
}

/// Prints the manual page of the program, or writes one page per command into `directory`.
pub(crate) fn man(directory: Option<&Path>) -> Result<(), Failure> {
    let mut command = Cli::command();
    command.build();
    match directory {
        None => output::raw(&page(&command)?),
        Some(directory) => write_pages(&command, directory).map_err(|error| {
            let why = plain_io_error(&error);
            Failure::new(
                Exit::LocalFile,
                format_args!("{}: {why}", directory.display()),
            )
        }),
    }
}

fn page(command: &clap::Command) -> io::Result<Vec<u8>> {
    let mut page = Vec::new();
    Man::new(command.clone()).render(&mut page)?;
    Ok(page)
}

/// Pages are named `swiftwater-perf-client.1` and so on.
fn write_pages(command: &clap::Command, directory: &Path) -> io::Result<()> {
    make_directory(directory)?;
    let name = command.get_display_name().unwrap_or(command.get_name());
    fs::write(directory.join(format!("{name}.1")), page(command)?)?;
    for inner in command
        .get_subcommands()
        .filter(|inner| inner.get_name() != "help")
    {
        write_pages(inner, directory)?;
    }
    Ok(())
}
