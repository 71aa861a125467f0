"""The table of the matrix as a page of documentation: the same results make the same page."""

import re
import textwrap

from .diagnoses import diagnosis

# What differs from run to run: addresses, and names of files.
CHANGING = re.compile(r"(https://)?(127\.0\.0\.\d+|\[::1\]):\d+(/[\w-]+)?|/f\d+-\d+x*")
RUN = "**What was run**: {cases}, on {date}, with the program of commit `{commit}`{repeated}.{remark}{again}{parts}"
PART_RUN = " The cases of {what}: on {date}, commit `{commit}`{repeated}.{remark}"
AGAIN = " Cells marked ↻ show a later run of cases that had failed, one at a time (`--again`)."
# Columns of a paragraph.
WIDTH = 110
MARKS = {"pass": "✓", "fail": "✗", "skip": "–"}

HEAD = """# Interop with other QUIC stacks

The test cases of the [QUIC interop runner](https://github.com/quic-interop/quic-interop-runner), run by
`interop/run --matrix` through Swiftwater's own relay (15 ms one way, 10 Mbit/s, a queue of 25 packets
unless the case says otherwise). Checks decrypt the packets with the key log, as the runner's do.
`interop/run --help` describes each case. This page is written by that command from
[interop.json](interop.json), which also has the measurements of each case.

{run}

The cases of HTTP/3 have a separate contract: [requests of clients and answers of
servers](../interop/README.md#the-cases-of-http3). Those of several paths (RFC 10069) are
[here](../interop/README.md#the-cases-of-several-paths).

✓ passed, ✗ failed, – one side lacks the feature of the case. A number refers to the reason below, with ✓ to a
known intermittent fault.{shares}

Peers: {peers}.
"""


def render(record, cases):
    """The page."""
    peers = record["peers"]
    results = record["results"]
    with_paths = {case.name for case in cases if case.paths}
    # Some have programs for the cases of several paths only.
    whole = [peer for peer in peers if any(
        peer in (row["server"], row["client"]) and row["case"] not in with_paths for row in results
    )]
    reasons = []
    page = [head(record)]
    in_http = {row["case"] for row in record["results"]} & {case.name for case in cases if case.http}
    for role, ours in (("server", "client"), ("client", "server")):
        page.append(f"## Swiftwater as {ours}\n")
        some = [case for case in cases if case.matrix and not case.http and not case.paths]
        page += table(results, role, ours, some, whole, reasons)
        if not in_http:
            continue
        page.append(f"## HTTP/3, Swiftwater as {ours}\n")
        some = [case for case in cases if case.matrix and case.http]
        able = [peer for peer in peers if any(found(record["results"], role, peer, ours, it) for it in in_http)]
        page += table(record["results"], role, ours, some, able, reasons)
    page += table_of_paths(results, [case for case in cases if case.paths], peers, reasons)
    page.append("## Reasons\n")
    page += [f"{number}. {reason}" for number, reason in enumerate(reasons, 1)]
    return "\n".join(page) + "\n"


def table(results, role, ours, cases, peers, reasons):
    """The lines of one table, and an empty one."""
    lines = ["| | " + " | ".join(peers) + " |", "|---" * (len(peers) + 1) + "|"]
    for case in cases:
        cells = [cell(found(results, role, peer, ours, case.name), reasons) for peer in peers]
        lines.append(f"| {case.name} | " + " | ".join(cells) + " |")
    return [*lines, ""]


def table_of_paths(results, cases, peers, reasons):
    """The lines about several paths: both roles of each peer in one table, and Swiftwater with itself."""
    names = {case.name for case in cases}
    able = [it for it in peers if any(it in (row["server"], row["client"]) and row["case"] in names for row in results)]
    if not able:
        return []
    heads = [f"{peer} {role}" for peer in able for role in ("server", "client")] + ["itself"]
    lines = ["## Several paths\n", "| | " + " | ".join(heads) + " |", "|---" * (len(heads) + 1) + "|"]
    places = [(role, peer, ours) for peer in able for role, ours in (("server", "client"), ("client", "server"))]
    places.append(("server", "swiftwater", "client"))
    for case in cases:
        cells = [cell(found(results, *place, case.name), reasons) for place in places]
        lines.append(f"| {case.name} | " + " | ".join(cells) + " |")
    return [*lines, ""]


def repeated(repeat):
    return f", each case {repeat} times" if repeat > 1 else ""


def remark(record):
    return f" {record['remark']}" if record.get("remark") else ""


# Parts of the cases that may have been run later than the others.
PARTS = {"http": "HTTP/3", "paths": "several paths"}


def part_runs(record):
    return "".join(
        PART_RUN.format(
            what=what, date=run["date"], commit=run["commit"], repeated=repeated(run["repeat"]), remark=remark(run)
        )
        for part, what in PARTS.items()
        if (run := record.get(part))
    )


def head(record):
    """What was run, when, and how."""
    repeat = record["repeat"]
    again = any(row.get("again") for row in record["results"])
    run = RUN.format(
        cases="all cases of QUIC" if any(map(record.get, PARTS)) else "all cases",
        date=record["date"],
        commit=record["commit"],
        repeated=repeated(repeat),
        remark=remark(record),
        again=AGAIN if again else "",
        parts=part_runs(record),
    )
    return HEAD.format(
        run=textwrap.fill(run, WIDTH),
        shares=" (1/2): one of two runs passed." if repeat > 1 else "",
        peers=", ".join(f"{name} {version}" for name, version in record["peers"].items()),
    )


def found(results, role, peer, ours, case):
    """The results of a case with a peer in a role."""
    return [
        row
        for row in results
        if row[role] == peer and row[ours] == "swiftwater" and row["case"] == case
    ]


def cell(rows, reasons):
    """A cell; where not all runs passed, with the number of its reason."""
    if not rows:
        return ""
    bad = next((row for row in rows if row["verdict"] != "pass"), None)
    again = " ↻" if any(row.get("again") for row in rows) else ""
    known = diagnosis(rows[0])
    if bad is None:
        return MARKS["pass"] + again + (f" {link(known, reasons)}" if known else "")
    reason = CHANGING.sub("…", bad["note"]).replace("|", "\\|")
    if bad["verdict"] == "fail" and known:
        reason = f"{known} ({reason})"
    mark = MARKS[bad["verdict"]]
    passed = sum(row["verdict"] == "pass" for row in rows)
    share = f" ({passed}/{len(rows)})" if bad["verdict"] == "fail" and len(rows) > 1 else ""
    return f"{mark}{share}{again} {link(reason, reasons)}"


def link(reason, reasons):
    """The number of a reason, which gets one if it is new."""
    if reason not in reasons:
        reasons.append(reason)
    return f"[{reasons.index(reason) + 1}](#reasons)"
