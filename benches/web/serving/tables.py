"""Medians with their range, as text and as Markdown."""

import statistics

from .servers import OURS


def number(value, digits):
    return f"{value:,.{digits}f}"


def rows(job, cells):
    """The head, and a row for each server; then ours divided by each other one."""
    head = ["server", *(measure.title for measure in job.measures), "rounds"]
    body = []
    for name, (values, failures) in cells.items():
        if not values:
            body.append([name, f"failed: {failures[-1]}" if failures else "not run"])
            continue
        row = [name]
        for measure in job.measures:
            all_values = [value[measure.key] for value in values]
            middle = number(statistics.median(all_values), measure.digits)
            low, high = (number(value, measure.digits) for value in (min(all_values), max(all_values)))
            row.append(middle if len(values) == 1 else f"{middle} ({low}..{high})")
        failed = f", {len(failures)} failed" if failures else ""
        body.append([*row, f"{len(values)}{failed}"])
    ours = cells.get(OURS, ([], []))[0]
    for name, (values, _) in cells.items():
        if name != OURS and ours and values:
            ratios = (ratio(ours, values, measure.key) for measure in job.measures)
            body.append([f"{OURS} / {name}", *(f"{value:.2f}" for value in ratios), ""])
    return head, body


def ratio(ours, theirs, key):
    one, other = (statistics.median(value[key] for value in values) for values in (ours, theirs))
    return one / other if other else float("nan")


def text(job, cells):
    head, body = rows(job, cells)
    full = [row for row in [head, *body] if len(row) == len(head)]
    widths = [max(len(row[column]) for row in full) for column in range(len(head))]
    widths[0] = max(len(row[0]) for row in [head, *body])
    lines = [f"{job.name}: {job.title}"]
    lines += ["  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in [head, *body]]
    return "\n".join(lines) + "\n"


def markdown(jobs, results, about, command):
    lines = [
        "# Web servers",
        "",
        f"Written by `{command}` on {about['date']}: {about['processor']}, {about['cores']} cores, {about['system']}, "
        f"load {about['load'][0]:.1f}. Medians, and in brackets the smallest and largest of the rounds. What the jobs "
        "and columns are: `benches/web/README.md`.",
        "",
        "| server | version |",
        "|---|---|",
        *(f"| {name} | {version} |" for name, version in about["versions"].items()),
        "",
    ]
    for job in jobs:
        head, body = rows(job, results[job.name])
        lines += [f"## {job.title} (`{job.name}`)", "", "| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
        for row in body:
            cells = [cell.replace("|", "\\|") for cell in row] + [""] * (len(head) - len(row))
            lines.append("| " + " | ".join(cells) + " |")
        lines.append("")
    return "\n".join(lines)
