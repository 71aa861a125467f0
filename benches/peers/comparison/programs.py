"""The programs: found, built, named."""

import json
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

PEERS = Path(__file__).resolve().parent.parent
REPOSITORY = PEERS.parent.parent
OURS = "swiftwater"
# Programs of the workspaces that drive no library.
HELPERS = {"identity"}
# Programs of other comparisons.
OTHERS = {"http3-load"}
# Those that have the jobs over HTTP/3.
OVER_HTTP = {OURS, "quiche", "quinn"}
SETTINGS = ["tuned", "defaults"]


class BuildFailed(Exception):
    """A program can't be built or found; the text says why."""


@dataclass(frozen=True)
class Program:
    """A binary that implements the contract of the README."""

    name: str
    path: Path
    # Of the library, as the lock file says.
    version: str = ""
    # Another build of one of them, not a separate peer.
    extra: bool = False

    def does(self, job):
        """Whether it has the job; one given with --extra is taken to."""
        return self.extra or not job.over_http or self.name in OVER_HTTP


@dataclass(frozen=True)
class Entry:
    """A row of the tables: a program with its best-known settings, or with the library's defaults."""

    program: Program
    setting: str

    @property
    def label(self):
        return f"{self.program.name} ({self.setting})"

    @property
    def flags(self):
        return ["--tuned"] if self.setting == "tuned" else []


def cargo(folder, *arguments, capture=False):
    command = ["cargo", *arguments]
    output = subprocess.PIPE if capture else None
    ended = subprocess.run(command, cwd=folder, stdout=output, text=True, check=False)
    if ended.returncode != 0:
        raise BuildFailed(f"`{' '.join(command)}` failed in {folder}")
    return ended.stdout


def workspaces():
    """Each workspace of programs with the names of what it builds, and where to."""
    for manifest in sorted(PEERS.parent.glob("peers*/Cargo.toml")):
        folder = manifest.parent
        about = cargo(folder, "metadata", "--no-deps", "--format-version=1", capture=True)
        about = json.loads(about)
        binaries = [
            target["name"]
            for package in about["packages"]
            for target in package["targets"]
            if "bin" in target["kind"]
        ]
        yield folder, binaries, Path(about["target_directory"]) / "release"


def version(folder, name):
    """The library's version; ours is that of the sources."""
    if name == OURS:
        commit = subprocess.run(
            ["git", "describe", "--always", "--dirty"],
            cwd=REPOSITORY, capture_output=True, text=True, check=False,
        )
        return commit.stdout.strip()
    lock = (folder / "Cargo.lock").read_text()
    found = re.search(rf'name = "{re.escape(name)}"\nversion = "([^"]+)"', lock)
    return found.group(1) if found else ""


def build(only, anew=True):
    """Builds what is asked for (`None`: everything), unless it is to be taken as it is; the programs in order, ours
    first, and the helpers' paths by name."""
    programs, helpers = [], {}
    for folder, binaries, target in workspaces():
        names = [name for name in binaries if name not in HELPERS | OTHERS and (only is None or name in only)]
        helping = [name for name in binaries if name in HELPERS]
        wanted = [flag for name in names + helping for flag in ("--bin", name)]
        if wanted and anew:
            cargo(folder, "build", "--release", "--locked", *wanted)
        programs += [Program(name, target / name, version(folder, name)) for name in names]
        helpers |= {name: target / name for name in helping}
    missing = (only or set()) - {program.name for program in programs}
    if missing:
        raise BuildFailed(f"no program is named {', '.join(sorted(missing))}")
    return sorted(programs, key=lambda program: (program.name != OURS, program.name)), helpers


def relay(anew=True):
    """The program that emulates links: Swiftwater's own, of the main workspace."""
    if anew:
        cargo(REPOSITORY, "build", "--release", "--locked", "-p", "swiftwater-cli")
    about = json.loads(cargo(REPOSITORY, "metadata", "--no-deps", "--format-version=1", capture=True))
    return Path(about["target_directory"]) / "release" / "swiftwater"
