"""The runs as a table."""

from statistics import median

MEASURES = [("goodput_mbps", 1), ("dropped", 0), ("queue_ms", 1)]
HEAD = (
    "| program | buffer/loss | runs | Mbit/s | ours | simulated | ratio "
    "| drops | ours | simulated | queue, ms | ours | simulated |"
)


def span(values, digits):
    """Median and range; a dash without values."""
    if not values:
        return "-"
    texts = [f"{value:.{digits}f}" for value in (median(values), min(values), max(values))]
    return f"{texts[0]} ({texts[1]} to {texts[2]})" if texts[1] != texts[2] else texts[0]


def markdown(runs):
    """A row per program and cell: its runs, those of our own stack over the relay, and the simulated ones. The ratio
    is that of the medians of goodput, ours over the relay (or else simulated) to theirs."""
    rows = [HEAD, "|" + "---|" * (HEAD.count("|") - 1)]
    for pair, cell in dict.fromkeys((run["pair"], run["cell"]) for run in runs):
        theirs = [run for run in runs if (run["pair"], run["cell"], run["kind"]) == (pair, cell, "real")]
        controller = next(run["ours"] for run in runs if run["pair"] == pair)
        ours = counted(runs, f"swiftwater-{controller}", cell, "real")
        sides = [counted(runs, pair, cell, "real"), ours, counted(runs, pair, cell, "simulated")]
        disturbed = sum(not run["counts"] for run in theirs)
        row = [pair, cell, f"{len(sides[0])}" + (f" ({disturbed} disturbed)" if disturbed else "")]
        for key, digits in MEASURES:
            values = [[run[key] for run in side] for side in sides]
            row += [span(side, digits) for side in values]
            if key == "goodput_mbps":
                row.append(ratio(values[1] or values[2], values[0]))
        rows.append("| " + " | ".join(row) + " |")
    return "\n".join(rows)


def counted(runs, pair, cell, kind):
    """The undisturbed runs of a program in a cell."""
    return [run for run in runs if (run["pair"], run["cell"], run["kind"]) == (pair, cell, kind) and run["counts"]]


def ratio(here, there):
    """Of the medians."""
    return f"{median(here) / median(there):.2f}" if here and there else "-"
