"""The table of the matrix as a page of documentation: the same results make the same page."""

import re
import textwrap

from .diagnoses import diagnosis

# What differs from run to run: addresses, and names of files.
CHANGING = re.compile(r"(https://)?(127\.0\.0\.\d+|\[::1\]):\d+(/[\w-]+)?|/f\d+-\d+x*")
RUN = "**What was run**: {cases}, on {date}, with the program of commit `{commit}`{repeated}.{remark}{again}{http}"
HTTP_RUN = " The cases of HTTP/3: on {date}, commit `{commit}`{repeated}.{remark}"
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
servers](../interop/README.md#the-cases-of-http3).

✓ passed, ✗ failed, – one side lacks the feature of the case. A number refers to the reason below, with ✓ to a
known intermittent fault.{shares}

Peers: {peers}.
"""


def render(record, cases):
    """The page."""
    peers = record["peers"]
    reasons = []
    page = [head(record)]
    in_http = {row["case"] for row in record["results"]} & {case.name for case in cases if case.http}
    for role, ours in (("server", "client"), ("client", "server")):
        page.append(f"## Swiftwater as {ours}\n")
        some = [case for case in cases if case.matrix and not case.http]
        page += table(record["results"], role, ours, some, peers, reasons)
        if not in_http:
            continue
        page.append(f"## HTTP/3, Swiftwater as {ours}\n")
        some = [case for case in cases if case.matrix and case.http]
        able = [peer for peer in peers if any(found(record["results"], role, peer, ours, it) for it in in_http)]
        page += table(record["results"], role, ours, some, able, reasons)
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


def repeated(repeat):
    return f", each case {repeat} times" if repeat > 1 else ""


def remark(record):
    return f" {record['remark']}" if record.get("remark") else ""


def http_run(http):
    return HTTP_RUN.format(
        date=http["date"], commit=http["commit"], repeated=repeated(http["repeat"]), remark=remark(http)
    )


def head(record):
    """What was run, when, and how."""
    repeat = record["repeat"]
    again = any(row.get("again") for row in record["results"])
    http = record.get("http")
    run = RUN.format(
        cases="all cases of QUIC" if http else "all cases",
        date=record["date"],
        commit=record["commit"],
        repeated=repeated(repeat),
        remark=remark(record),
        again=AGAIN if again else "",
        http=http_run(http) if http else "",
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
