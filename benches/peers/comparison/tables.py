"""The results as text for a terminal, and as Markdown."""


def number(value, digits):
    return f"{value:,.{digits}f}"


def rows(results, job):
    """A job's table: the head, and a row for each entry: the median of each measure, and in brackets the smallest
    and the largest value."""
    head = ["program", *(measure.title for measure in job.measures), "rounds"]
    body = []
    for entry, cell in results.cells[job.name].items():
        if not cell.values:
            why = cell.failures[-1] if cell.failures else "not run"
            body.append([entry.label, f"failed: {why}"])
            continue
        row = [entry.label]
        for measure in job.measures:
            low, high = (number(value, measure.digits) for value in cell.spread(measure.key))
            middle = number(cell.median(measure.key), measure.digits)
            row.append(middle if len(cell.values) == 1 else f"{middle} ({low}..{high})")
        failed = f", {len(cell.failures)} failed" if cell.failures else ""
        body.append([*row, f"{len(cell.values)}{failed}"])
    return head, body


def ratio_rows(results, job):
    """Ours to the others: one row for each of our settings and rival."""
    table = {}
    for entry, measure, word, rival, ratio in results.ratios(job):
        # The best peer may be another one in each measure.
        name = f" ({rival.label})" if word == "best peer" else ""
        table.setdefault((entry.label, word), {})[measure.key] = f"{ratio:.2f}{name}"
    head = ["ours to", *(measure.title for measure in job.measures)]
    body = [
        [f"{label} to {word}", *(cells.get(measure.key, "") for measure in job.measures)]
        for (label, word), cells in table.items()
    ]
    return head, body


def text(results, job):
    """For a terminal."""
    lines = [f"{job.name}: {job.title}"]
    for head, body in (rows(results, job), ratio_rows(results, job)):
        if not body:
            continue
        # A failed row's reason is not to widen a column.
        full = [head, *(row for row in body if len(row) == len(head))]
        widths = [max(len(row[column]) for row in full) for column in range(len(head))]
        widths[0] = max(len(row[0]) for row in [head, *body])
        lines += [
            "  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip()
            for row in [head, *body]
        ]
    return "\n".join(lines) + "\n"


def markdown(results, machine, arguments):
    """For a page of documentation."""
    lines = [
        "# Peers",
        "",
        f"Written by `{arguments}` on {machine['date']}: {machine['processor']}, {machine['cores']} cores, "
        f"{machine['system']}. Medians, and in brackets the smallest and largest of the rounds. "
        "What the jobs and columns are: `benches/peers/README.md`.",
        "",
        "| program | version |",
        "|---|---|",
        *(f"| {name} | {version} |" for name, version in machine["versions"].items()),
        "",
    ]
    for job in results.jobs:
        lines += [f"## {job.title} (`{job.name}`)", ""]
        for head, body in (rows(results, job), ratio_rows(results, job)):
            if not body:
                continue
            lines += ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
            for row in body:
                cells = [cell.replace("|", "\\|") for cell in row]
                lines.append("| " + " | ".join(cells + [""] * (len(head) - len(row))) + " |")
            lines.append("")
    return "\n".join(lines)
