//! `lab report --markdown`: pages whose tables come from rows.

use std::fs;
use std::io;
use std::path::Path;

use swiftwater_lab::report::{Documented, document_template, fill_document};
use swiftwater_lab::store::{Manifest, Results, find};

use super::report::ReportArgs;
use crate::exit::{Exit, Failure, plain_io_error};
use crate::{files, output};

/// Permissions of a page: all users may read it.
const PAGE_MODE: u32 = 0o644;

/// Writes what belongs between the markers of `page`, or with `--check` compares only.
pub(super) fn run(args: &ReportArgs, page: &Path) -> Result<(), Failure> {
    let results = results(args)?;
    let known = args.source.scenarios().list()?;
    let of_page = |problem: &dyn std::fmt::Display| {
        Failure::new(Exit::LocalFile, format!("{}: {problem}", page.display()))
    };
    let old = match fs::read_to_string(page) {
        Ok(text) => Some(text),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(of_page(&plain_io_error(&error))),
    };
    let source = old.clone().unwrap_or_else(|| {
        let names = results
            .iter()
            .map(|documented| &*documented.experiment.name);
        document_template(names)
    });
    let new = fill_document(&source, &results, &known).map_err(|error| of_page(&error))?;
    if args.check {
        return compare(page, old.as_deref(), &new);
    }
    if old.as_ref() != Some(&new) {
        let folder = page
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new("."));
        fs::metadata(folder)
            .and_then(|_| files::replace(folder, page, &new, PAGE_MODE))
            .map_err(|error| of_page(&plain_io_error(&error)))?;
    }
    let count = results.len();
    output::line(&format!("{}: from {count} experiments", page.display()))
}

/// The results in all folders, each experiment once.
fn results(args: &ReportArgs) -> Result<Vec<Documented>, Failure> {
    let mut all: Vec<Documented> = Vec::new();
    for root in &args.folders {
        for folder in find(root)? {
            let experiment = args.source.experiment_of(&Manifest::read(&folder)?)?;
            let results = Results::read(&folder, &experiment)?;
            let is_same = |other: &Documented| other.experiment.name == experiment.name;
            if all.iter().any(is_same) {
                let text = format!(
                    "{}: there are other results of {}: merge them first, or name one",
                    folder.display(),
                    experiment.name
                );
                return Err(Failure::new(Exit::Usage, text));
            }
            all.push(Documented::new(experiment, &results)?);
        }
    }
    Ok(all)
}

/// Fails if `old` is not `new`.
fn compare(page: &Path, old: Option<&str>, new: &str) -> Result<(), Failure> {
    let page = page.display();
    let Some(old) = old else {
        return Err(Failure::new(
            Exit::LocalFile,
            format!("{page}: no such file"),
        ));
    };
    if old == new {
        return output::line(&format!("{page} is what the rows give"));
    }
    let pairs = old.lines().zip(new.lines());
    let same = pairs.take_while(|(old, new)| old == new).count();
    let text = format!(
        "{page}:{}: not what the rows give; without --check the page is written again",
        same + 1
    );
    Err(Failure::new(Exit::Failure, text))
}
