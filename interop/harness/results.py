"""What a run leaves behind: the results as a file, and how later runs amend them."""

import json
import subprocess
import time

from . import programs


def record(peers, rows, repeat, commit):
    """What the file has. A `remark` that is added to it is shown on the page."""
    return {
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "commit": commit,
        "repeat": repeat,
        "peers": {peer.name: peer.version for peer in peers},
        "results": rows,
    }


def with_part(told, later, part):
    """The results with those of a later run of a part of the cases, "http" or "paths", in place of what they had of
    these. A `remark` that is added to the part is shown on the page."""
    places = {cell(row) for row in later["results"]}
    kept = [row for row in told["results"] if cell(row) not in places]
    when = {name: later[name] for name in ("date", "commit", "repeat")}
    peers = told["peers"] | later["peers"]
    return told | {part: when, "peers": peers, "results": kept + later["results"]}


def newest():
    """The last commit that changed what Swiftwater's program is made of."""
    sources = ["crates", "Cargo.toml", "Cargo.lock"]
    asked = ["git", "log", "-1", "--format=%h", "--", *sources]
    told = subprocess.run(asked, cwd=programs.REPOSITORY, capture_output=True, text=True)
    return told.stdout.strip() or "?"


def read(file):
    return json.loads(file.read_text())


def write(file, told):
    file.write_text(json.dumps(told, indent=1, ensure_ascii=False) + "\n")


def cell(row):
    """Where a result stands."""
    return row["server"], row["client"], row["case"]


def failures(told):
    """The cells that failed, at least once."""
    return {cell(row) for row in told["results"] if row["verdict"] == "fail"}


def amended(told, rows):
    """The results with later ones, marked so, in place of the former ones of the same cells."""
    later = {}
    for row in rows:
        later.setdefault(cell(row), []).append(row | {"again": True})
    places = dict.fromkeys(cell(row) for row in told["results"])
    former = {place: [row for row in told["results"] if cell(row) == place] for place in places}
    return told | {"results": sum((later.get(place, former[place]) for place in places), [])}
