//! The keys of a flow's paths: which of the links in parallel it uses, and how.

use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng;
use swiftwater_congestion::{ControllerFactory, CouplingRule, Env};
use swiftwater_units::{ByteCount, Instant, PathId};

use super::error::{Read, known_names};
use super::flows::World;
use super::reader::Reader;
use super::setup::FlowPaths;

/// Scheduler of flows that name none.
const SCHEDULER: &str = "min-rtt";

/// Most paths of a flow: the most that a connection opens.
const MAX_PATHS: usize = 8;

/// Reads the keys; `None` in a chain of links, where a flow has none of them.
pub(super) fn read(row: &Reader<'_>, world: &World<'_>) -> Read<Option<FlowPaths>> {
    let unfit: &[_] = if world.is_parallel {
        &["enter", "exit"]
    } else {
        &["paths", "scheduler", "coupling", "migration"]
    };
    if let Some(key) = unfit.iter().find(|key| row.has(key)) {
        let why = if world.is_parallel {
            "[[path]]s are in parallel: a flow has `paths`"
        } else {
            "it goes with [[path]]s, not with a chain of [[link]]s"
        };
        return Err(row.fault(key, why));
    }
    if !world.is_parallel {
        return Ok(None);
    }
    let coupling = row.string("coupling")?.map(CouplingRule::by_name);
    let coupling = coupling
        .transpose()
        .map_err(|error| row.fault("coupling", error.to_string()))?;
    let links = read_links(row, world)?;
    Ok(Some(FlowPaths {
        names: names(&links, world),
        links,
        scheduler_text: row.string("scheduler")?.unwrap_or(SCHEDULER).to_owned(),
        coupling: coupling.unwrap_or_default(),
        migrates: row.truth("migration")?.unwrap_or(false),
    }))
}

/// The controllers of paths that are to be coupled must be of a kind that can be.
pub(super) fn check_coupling(
    row: &Reader<'_>,
    paths: Option<&FlowPaths>,
    controller: &dyn ControllerFactory,
) -> Read<()> {
    let is_coupled = paths.is_some_and(|paths| paths.coupling != CouplingRule::Uncoupled);
    if is_coupled && !can_be_coupled(controller) {
        let name = controller.name();
        let why = format!("`{name}` doesn't grow by acknowledgements, so that it can't be coupled");
        return Err(row.fault("coupling", why));
    }
    Ok(())
}

fn can_be_coupled(controller: &dyn ControllerFactory) -> bool {
    let packet = ByteCount::new(1_200);
    let mut env = Env {
        max_datagram_size: packet,
        initial_window: packet.times(10),
        minimum_window: packet.times(2),
        path: PathId::ZERO,
        rng: &mut ChaCha8Rng::seed_from_u64(0),
    };
    controller.build(Instant::ZERO, &mut env).can_be_coupled()
}

fn read_links(row: &Reader<'_>, world: &World<'_>) -> Read<Vec<usize>> {
    let names = row.strings("paths")?;
    let links = names.iter().map(|name| {
        let at = world.links.iter().position(|link| link.name == *name);
        at.ok_or_else(|| {
            let known = world.links.iter().map(|link| link.name.as_str());
            row.fault("paths", known_names(name, known))
        })
    });
    let mut links = links.collect::<Read<Vec<_>>>()?;
    if !row.has("paths") {
        links = (0..world.links.len()).collect();
    }
    if links.is_empty() || links.len() > MAX_PATHS {
        return Err(row.fault("paths", format!("1 to {MAX_PATHS} names of [[path]]s")));
    }
    Ok(links)
}

/// The names of the links; the second path over the same link has `-2` appended, and so on.
fn names(links: &[usize], world: &World<'_>) -> Vec<String> {
    let name = |(at, link): (usize, &usize)| {
        let before = links[..at].iter().filter(|other| *other == link).count();
        let name = &world.links[*link].name;
        match before {
            0 => name.clone(),
            _ => format!("{name}-{}", before + 1),
        }
    };
    links.iter().enumerate().map(name).collect()
}
