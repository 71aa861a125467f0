//! The page of a demonstration: whether there is one, where, and how it is written.

use std::path::{Path, PathBuf};

use clap::{Arg, Args};

use crate::exit::{Exit, Failure};
use crate::output;
use crate::part_file::PartFile;

/// The flags about the page of a demonstration. Each demonstration has a name of its own for its page.
#[derive(Args, Clone, Debug)]
pub struct PageArgs {
    /// Where to write the page with plots; an older one is replaced
    #[arg(long, value_name = "FILE")]
    pub page: Option<PathBuf>,

    /// Write no page
    #[arg(long, conflicts_with = "page")]
    pub no_page: bool,
}

/// Names the default in the help of `--page`.
pub(in crate::demo) fn default_name(page: Arg, name: &str) -> Arg {
    page.help(format!(
        "Where to write the page with plots; an older one is replaced [default: {name}, none with --json]"
    ))
}

impl PageArgs {
    /// The path of the page: the requested one, or `default` unless there is to be none. It is checked to be writable
    /// now and not after a minute. A page that was not requested is omitted rather than failing the showing.
    pub(in crate::demo) fn path(
        self,
        json: bool,
        default: &str,
    ) -> Result<Option<PathBuf>, Failure> {
        if let Some(path) = self.page {
            writable(&path)?;
            return Ok(Some(path));
        }
        if self.no_page || json {
            return Ok(None);
        }
        let path = PathBuf::from(default);
        match writable(&path) {
            Ok(()) => Ok(Some(path)),
            Err(failure) => {
                output::note(&format!("no page: {failure}"));
                Ok(None)
            }
        }
    }
}

/// Writes a page atomically, and says where it is unless results are JSON.
pub(in crate::demo) fn write(path: &Path, html: &str, json: bool) -> Result<(), Failure> {
    let mut file = PartFile::create(path, true)?;
    file.write_all(html.as_bytes())?;
    file.complete()?;
    if !json {
        output::line(&format!("plots: {}", path.display()))?;
    }
    Ok(())
}

fn writable(page: &Path) -> Result<(), Failure> {
    let refused = |why: &dyn std::fmt::Display| {
        Failure::new(
            Exit::LocalFile,
            format_args!("{why} (--page FILE writes elsewhere, --no-page nowhere)"),
        )
    };
    if page.is_dir() || page.file_name().is_none() {
        return Err(refused(&format_args!(
            "cannot write {}: it is a directory",
            page.display()
        )));
    }
    match PartFile::create(page, true) {
        // Removed when dropped.
        Ok(_probe) => Ok(()),
        Err(error) => Err(refused(&error)),
    }
}
