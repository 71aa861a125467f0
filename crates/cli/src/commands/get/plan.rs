//! The URLs to fetch and their destinations; contradictory flags are rejected.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::FileType;
use std::path::{Path, PathBuf};

use http::Method;

use super::args::GetArgs;
use crate::exit::{Exit, Failure, plain_io_error};
use crate::files::make_directory;
use crate::url::{Scheme, Url};

/// One file to fetch, with a unique name.
#[derive(Clone, Debug)]
pub(super) struct Download {
    pub(super) url: Url,
    pub(super) target: PathBuf,
}

/// Downloads over `hq-interop`.
#[derive(Debug)]
pub(super) struct HqPlan {
    pub(super) directory: PathBuf,
    /// By host and port.
    pub(super) servers: BTreeMap<(String, u16), Vec<Download>>,
}

/// Destination of content.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Place {
    /// A file that gets its name when it is complete.
    File(PathBuf),
    /// A file that is not regular, such as `/dev/null`.
    Device(PathBuf),
    Stdout,
    /// None.
    Nowhere,
}

/// One URL to request.
#[derive(Clone, Debug)]
pub(super) struct Item {
    pub(super) url: Url,
    pub(super) place: Place,
}

fn usage(text: impl std::fmt::Display) -> Failure {
    Failure::new(Exit::Usage, text)
}

/// The plan for `hq-interop`.
pub(super) fn hq(args: &GetArgs) -> Result<HqPlan, Failure> {
    let request = &args.request;
    for (given, flag) in [
        (args.continuation, "--continue"),
        (args.max_time.is_some(), "--max-time"),
        (args.retry > 0, "--retry"),
        (request.method.is_some(), "--request"),
        (!request.headers.is_empty(), "--header"),
        (request.data.is_some(), "--data"),
        (request.head, "--head"),
        (request.include, "--include"),
        (request.location, "--location"),
        (request.location_trusted, "--location-trusted"),
        (args.max_filesize.is_some(), "--max-filesize"),
        (request.compressed, "--compressed"),
        (request.fail_with_body, "--fail-with-body"),
    ] {
        if given {
            return Err(usage(format_args!(
                "{flag} has no effect with --protocol hq"
            )));
        }
    }
    if let Some(url) = args.urls.iter().find(|url| url.scheme() != Scheme::Https) {
        return Err(usage(format_args!("{url}: --protocol hq needs https")));
    }
    let directory = args.output.clone().unwrap_or_else(|| ".".into());
    let mut servers: BTreeMap<_, Vec<Download>> = BTreeMap::new();
    let mut names = Names::default();
    for url in &args.urls {
        let target = directory.join(names.of(url)?);
        let server = (url.host().to_owned(), url.port());
        let url = url.clone();
        servers
            .entry(server)
            .or_default()
            .push(Download { url, target });
    }
    Ok(HqPlan { directory, servers })
}

/// The plan for HTTP with requests of this method. Creates directories.
pub(super) fn http(args: &GetArgs, method: &Method) -> Result<Vec<Item>, Failure> {
    let output = args.output.as_deref();
    let place = match output {
        _ if *method == Method::HEAD => Some(Place::Nowhere),
        None if *method != Method::GET => Some(Place::Stdout),
        None => None,
        Some(path) if path == Path::new("-") => Some(Place::Stdout),
        Some(path) if args.urls.len() > 1 || names_directory(path) => None,
        Some(path) if path.file_name().is_none() => {
            let path = path.display();
            return Err(usage(format_args!(
                "-o '{path}' names neither file nor directory"
            )));
        }
        Some(path) => Some(match path.metadata() {
            Ok(found) if is_device(found.file_type()) => Place::Device(path.to_owned()),
            _ => Place::File(path.to_owned()),
        }),
    };
    if place == Some(Place::Stdout) && args.json {
        return Err(usage(
            "content and --json would both go to standard output: write to a file with -o",
        ));
    }
    let is_file = matches!(place, None | Some(Place::File(_)));
    if args.continuation && (*method != Method::GET || !is_file) {
        return Err(usage("--continue is for GET into files"));
    }
    if let Some(place) = place {
        let urls = args.urls.iter().cloned();
        let item = |url| Item {
            url,
            place: place.clone(),
        };
        return Ok(urls.map(item).collect());
    }
    let directory = output.unwrap_or(Path::new("."));
    let mut names = Names::default();
    let mut items = Vec::with_capacity(args.urls.len());
    for url in &args.urls {
        items.push(Item {
            url: url.clone(),
            place: Place::File(directory.join(names.of(url)?)),
        });
    }
    make_directory_of(directory)?;
    Ok(items)
}

/// A path that ends in a slash is a directory to be created.
fn names_directory(path: &Path) -> bool {
    path.is_dir() || path.as_os_str().as_encoded_bytes().ends_with(b"/")
}

fn is_device(kind: FileType) -> bool {
    !kind.is_file() && !kind.is_dir()
}

/// Creates the directory for downloads.
pub(super) fn make_directory_of(directory: &Path) -> Result<(), Failure> {
    make_directory(directory).map_err(|error| {
        let why = plain_io_error(&error);
        Failure::new(
            Exit::LocalFile,
            format_args!("cannot write to {}: {why}", directory.display()),
        )
    })
}

/// The file names in use. Two URLs may not have the same.
#[derive(Debug, Default)]
struct Names(BTreeSet<String>);

impl Names {
    fn of(&mut self, url: &Url) -> Result<String, Failure> {
        let name = url
            .file_name()
            .map_err(|error| usage(format_args!("{error} (-o FILE names one, -o - prints)")))?;
        if self.0.insert(name.clone()) {
            return Ok(name);
        }
        let message = format!("two addresses would be written to the same file '{name}'");
        Err(usage(message))
    }
}
