//! Scenario files: location, look-up and loading.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use include_dir::{Dir, include_dir};
use swiftwater_congestion::ControllerCatalogue;
use swiftwater_policies::{
    FeedbackCatalogue, LossJudgeCatalogue, ReinjectorCatalogue, SchedulerCatalogue,
};
use toml::de::{DeTable, DeValue};

use super::Experiment;
use super::error::{ScenarioError, known_names};
use super::false_client::FalseClientConfig;
use super::load::{Origin, load};

/// The scenarios of this repository.
static EMBEDDED: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/../../scenarios");

/// The folder of size distributions, beside the collections.
const SIZES: &str = "sizes";

/// Deepest nesting of scenario folders; also ends cycles of links.
const MAX_DEPTH: usize = 8;

/// Options of loading a scenario.
#[derive(Clone, Debug)]
pub struct LoadOptions {
    /// The short form: the changes of `[quick]` are applied.
    pub quick: bool,
    /// Controllers for `cc`. Default: [`ControllerCatalogue::standard`].
    pub catalogue: ControllerCatalogue,
    /// Policies for `recovery`. Default: those of `swiftwater_policies`.
    pub policies: ReinjectorCatalogue,
    /// Schedulers for `scheduler`. Default: those of `swiftwater_policies`.
    pub schedulers: SchedulerCatalogue,
    /// Feedback policies for `feedback` and `viewer_feedback`. Default: those of `swiftwater_policies`, and `tecc-false`, a
    /// client in a tunnel that lies or whose messages are lost.
    pub feedback: FeedbackCatalogue,
    /// Loss judges for `loss_judge`. Default: those of `swiftwater_policies`.
    pub loss_judges: LossJudgeCatalogue,
    /// The folder that `trace` refers to.
    pub traces: Option<PathBuf>,
    /// Values that override those of the file and of `[quick]`: of an axis (`buffer`, `1bdp,2bdp`;
    /// the values are separated by `;` if there is one, so that values may contain commas) or of a
    /// key of `[run]` (`duration`, `5s`). An axis of the same name takes precedence over the key.
    pub set: Vec<(String, String)>,
    /// Another number of repeats.
    pub repeats: Option<u32>,
    /// Another interval of the recorder, or none.
    pub record: Option<Option<Duration>>,
}

impl Default for LoadOptions {
    fn default() -> Self {
        Self {
            quick: false,
            catalogue: ControllerCatalogue::standard(),
            policies: ReinjectorCatalogue::standard(),
            schedulers: SchedulerCatalogue::standard(),
            feedback: feedback_policies(),
            loss_judges: LossJudgeCatalogue::standard(),
            traces: None,
            set: Vec::new(),
            repeats: None,
            record: None,
        }
    }
}

fn feedback_policies() -> FeedbackCatalogue {
    let mut all = FeedbackCatalogue::standard();
    all.add(
        "tecc-false",
        "TECC, a client whose messages are false, or lost",
        FalseClientConfig::default(),
    );
    all
}

/// A source of scenario files: `<collection>/<name>.toml`, and `sizes/<name>.csv`.
#[derive(Clone, Debug)]
pub struct Library(Place);

#[derive(Clone, Debug)]
enum Place {
    Embedded,
    Folder(PathBuf),
}

impl Library {
    /// The scenarios included in the program.
    pub fn embedded() -> Self {
        Self(Place::Embedded)
    }

    /// The scenarios below a folder.
    pub fn folder(path: impl Into<PathBuf>) -> Self {
        Self(Place::Folder(path.into()))
    }

    /// The names of all scenarios, such as `cubic-plus/e3`, in alphabetical order.
    pub fn list(&self) -> Result<Vec<String>, ScenarioError> {
        let mut names = BTreeSet::new();
        match &self.0 {
            Place::Embedded => list_embedded(&EMBEDDED, &mut names),
            Place::Folder(folder) => list_folder(folder, "", MAX_DEPTH, &mut names)?,
        }
        Ok(names.into_iter().collect())
    }

    /// The scenarios named by `what`: `all`, a collection (`cubic-plus`), a scenario
    /// (`cubic-plus/e3`), or a separate file, whose path ends in `.toml`.
    pub fn select(&self, what: &str) -> Result<Vec<String>, ScenarioError> {
        let what = what.trim_end_matches('/');
        if is_file(what) {
            return match fs::metadata(what) {
                Ok(_) => Ok(vec![what.to_owned()]),
                Err(error) => Err(unreadable(Path::new(what), &error)),
            };
        }
        let names = self.list()?;
        if what == "all" {
            return Ok(names);
        }
        let folder = format!("{what}/");
        let chosen: Vec<String> = names
            .iter()
            .filter(|name| *name == what || name.starts_with(&folder))
            .cloned()
            .collect();
        if chosen.is_empty() {
            return Err(unknown(what, &names));
        }
        Ok(chosen)
    }

    /// Reads, completes and checks a scenario: one that loads also runs.
    pub fn load(&self, name: &str, options: &LoadOptions) -> Result<Experiment, ScenarioError> {
        let source = self.source(name)?;
        let origin = Origin {
            name: &source.name,
            file: &source.file,
            text: &source.text,
            sizes: &|sizes| self.sizes(sizes, source.folder.as_deref()),
        };
        load(&origin, options)
    }

    /// The title of a scenario, whether it loads or not; `None` if none can be read.
    pub fn title(&self, name: &str) -> Option<String> {
        let text = self.source(name).ok()?.text;
        let file = DeTable::parse(&text).ok()?;
        match file.get_ref().get("title")?.get_ref() {
            DeValue::String(title) => Some(title.to_string()),
            _ => None,
        }
    }

    fn source(&self, name: &str) -> Result<Source, ScenarioError> {
        if is_file(name) {
            let path = Path::new(name);
            return Ok(Source {
                name: name_of_file(path)?,
                file: name.to_owned(),
                text: read(path)?,
                folder: path.parent().map(Path::to_path_buf),
            });
        }
        let relative = format!("{name}.toml");
        let missing =
            || -> Result<ScenarioError, ScenarioError> { Ok(unknown(name, &self.list()?)) };
        if !is_below(Path::new(&relative)) {
            return Err(missing()?);
        }
        let (file, text) = match &self.0 {
            Place::Embedded => {
                let file = EMBEDDED
                    .get_file(&relative)
                    .and_then(include_dir::File::contents_utf8);
                match file {
                    Some(text) => (relative, text.to_owned()),
                    None => return Err(missing()?),
                }
            }
            Place::Folder(folder) => {
                let path = folder.join(&relative);
                if !path.is_file() {
                    return Err(missing()?);
                }
                (path.display().to_string(), read(&path)?)
            }
        };
        Ok(Source {
            name: name.to_owned(),
            file,
            text,
            folder: None,
        })
    }

    /// The text of a size distribution: next to the scenario's file if that is a separate one, or
    /// in the library. On failure the names of those in the library.
    fn sizes(&self, name: &str, beside: Option<&Path>) -> Result<String, Vec<String>> {
        let relative = format!("{SIZES}/{name}.csv");
        if !is_below(Path::new(&relative)) {
            return Err(self.size_names());
        }
        let above = beside.map(|folder| folder.join(".."));
        let near = beside
            .into_iter()
            .chain(above.as_deref())
            .find_map(|folder| fs::read_to_string(folder.join(&relative)).ok());
        let text = near.or_else(|| match &self.0 {
            Place::Embedded => EMBEDDED
                .get_file(&relative)
                .and_then(include_dir::File::contents_utf8)
                .map(str::to_owned),
            Place::Folder(folder) => fs::read_to_string(folder.join(&relative)).ok(),
        });
        text.ok_or_else(|| self.size_names())
    }

    fn size_names(&self) -> Vec<String> {
        let files: Vec<PathBuf> = match &self.0 {
            Place::Embedded => EMBEDDED
                .get_dir(SIZES)
                .into_iter()
                .flat_map(Dir::files)
                .map(|file| file.path().to_path_buf())
                .collect(),
            Place::Folder(folder) => fs::read_dir(folder.join(SIZES))
                .into_iter()
                .flatten()
                .flatten()
                .map(|entry| entry.path())
                .collect(),
        };
        let stems = files
            .iter()
            .filter(|path| path.extension() == Some(OsStr::new("csv")))
            .filter_map(|path| path.file_stem()?.to_str().map(str::to_owned));
        stems.collect::<BTreeSet<_>>().into_iter().collect()
    }
}

/// A scenario's text and name.
struct Source {
    name: String,
    file: String,
    text: String,
    folder: Option<PathBuf>,
}

fn is_file(name: &str) -> bool {
    Path::new(name).extension() == Some(OsStr::new("toml"))
}

/// Whether a relative path stays below its start.
pub(super) fn is_below(path: &Path) -> bool {
    path.components()
        .all(|part| matches!(part, Component::Normal(_)))
}

/// Folder and stem, as in a library. The folder's real name is used, however the path was written,
/// so that results are found from any directory.
fn name_of_file(path: &Path) -> Result<String, ScenarioError> {
    let stem = path.file_stem().map(OsStr::to_string_lossy);
    let stem = stem.unwrap_or_default();
    // Results have a folder of that name, which must stay inside the folder of results.
    if stem.chars().all(|letter| letter == '.') {
        return Err(ScenarioError::Unreadable {
            path: path.display().to_string(),
            why: "a scenario's file needs a name before .toml".to_owned(),
        });
    }
    let folder = match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    let folder = fs::canonicalize(folder).map_err(|error| unreadable(path, &error))?;
    let folder = folder.file_name().map(OsStr::to_string_lossy);
    Ok(match folder {
        Some(folder) => format!("{folder}/{stem}"),
        None => stem.into_owned(),
    })
}

fn read(path: &Path) -> Result<String, ScenarioError> {
    fs::read_to_string(path).map_err(|error| unreadable(path, &error))
}

fn unreadable(path: &Path, error: &std::io::Error) -> ScenarioError {
    ScenarioError::Unreadable {
        path: path.display().to_string(),
        why: error.to_string(),
    }
}

fn unknown(name: &str, names: &[String]) -> ScenarioError {
    let collections = names.iter().filter_map(|name| name.split('/').next());
    let known: BTreeSet<&str> = names
        .iter()
        .map(String::as_str)
        .chain(collections)
        .chain(["all"])
        .collect();
    ScenarioError::Unknown {
        name: name.to_owned(),
        expected: known_names(name, known),
    }
}

fn list_embedded(folder: &Dir<'_>, names: &mut BTreeSet<String>) {
    for file in folder.files() {
        if file.path().extension() == Some(OsStr::new("toml"))
            && let Some(name) = file.path().with_extension("").to_str()
        {
            names.insert(name.replace('\\', "/"));
        }
    }
    for below in folder.dirs() {
        list_embedded(below, names);
    }
}

fn list_folder(
    folder: &Path,
    prefix: &str,
    depth: usize,
    names: &mut BTreeSet<String>,
) -> Result<(), ScenarioError> {
    let entries = fs::read_dir(folder).map_err(|error| unreadable(folder, &error))?;
    for entry in entries {
        let entry = entry.map_err(|error| unreadable(folder, &error))?;
        let path = entry.path();
        let file_name = entry.file_name();
        let Some(file_name) = file_name.to_str().filter(|name| !name.starts_with('.')) else {
            continue;
        };
        if path.is_dir() {
            if depth > 0 {
                let prefix = format!("{prefix}{file_name}/");
                list_folder(&path, &prefix, depth - 1, names)?;
            }
        } else if let Some(stem) = file_name.strip_suffix(".toml") {
            names.insert(format!("{prefix}{stem}"));
        }
    }
    Ok(())
}
