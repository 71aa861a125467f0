//! `lab controllers`.

use clap::Args;
use serde::Serialize;
use swiftwater::congestion::{ControllerCatalogue, ControllerEntry};

use crate::exit::{Exit, Failure};
use crate::output;
use crate::table::Table;

/// `lab controllers`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  swiftwater lab controllers
  swiftwater lab controllers cubic
  swiftwater lab controllers --json

A controller is chosen by name, alone or with parameters: cubic, cubic:beta=0.8. That is what --cc,
sim --flow and the key cc of a scenario take.")]
pub struct ControllersArgs {
    /// Name of a controller; all if left out
    #[arg(value_name = "NAME")]
    pub name: Option<String>,

    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// A controller, machine-readable.
#[derive(Serialize)]
struct Controller<'a> {
    name: &'a str,
    about: &'a str,
    parameters: Vec<Parameter<'a>>,
}

/// One of its parameters.
#[derive(Serialize)]
struct Parameter<'a> {
    name: &'a str,
    default: &'a str,
    accepts: &'a str,
    about: &'a str,
}

impl<'a> From<&'a ControllerEntry> for Controller<'a> {
    fn from(algorithm: &'a ControllerEntry) -> Self {
        let parameters = algorithm.parameters().iter().map(|parameter| Parameter {
            name: parameter.name,
            default: &parameter.value,
            accepts: &parameter.accepts,
            about: parameter.about,
        });
        Self {
            name: algorithm.name(),
            about: algorithm.about(),
            parameters: parameters.collect(),
        }
    }
}

pub(super) fn run(args: &ControllersArgs) -> Result<(), Failure> {
    let catalogue = ControllerCatalogue::standard();
    let wanted = args.name.as_ref().map(|name| name.to_ascii_lowercase());
    let matches = |algorithm: &&ControllerEntry| {
        wanted
            .as_deref()
            .is_none_or(|name| name == algorithm.name())
    };
    let controllers: Vec<Controller<'_>> = catalogue
        .entries()
        .iter()
        .filter(matches)
        .map(Controller::from)
        .collect();
    if controllers.is_empty() {
        let known: Vec<&str> = catalogue.names().collect();
        let text = format!(
            "no congestion controller `{}`; known are: {}",
            args.name.as_deref().unwrap_or_default(),
            known.join(", ")
        );
        return Err(Failure::new(Exit::Scenario, text));
    }
    if args.json {
        return output::json(&controllers);
    }
    let texts: Vec<String> = controllers.iter().map(text).collect();
    output::line(&texts.join("\n\n"))
}

fn text(controller: &Controller<'_>) -> String {
    let head = format!("{}: {}", controller.name, controller.about);
    if controller.parameters.is_empty() {
        return head;
    }
    let mut table = Table::new(["  parameter", "default", "accepts", "what it does"]).left(3);
    for parameter in &controller.parameters {
        table.row([
            format!("  {}", parameter.name),
            parameter.default.to_owned(),
            parameter.accepts.to_owned(),
            parameter.about.to_owned(),
        ]);
    }
    format!("{head}\n{}", table.render())
}
