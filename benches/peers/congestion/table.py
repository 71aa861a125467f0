"""The runs as a table."""

from statistics import median


def span(values, digits):
    """Median and range."""
    texts = [f"{value:.{digits}f}" for value in (median(values), min(values), max(values))]
    return f"{texts[0]} ({texts[1]} to {texts[2]})" if texts[1] != texts[2] else texts[0]


def markdown(runs):
    """A row per program and cell: the other's, ours, and the ratio of the medians of goodput."""
    head = "| program | buffer/loss | runs | Mbit/s | ours | ratio | drops | ours | queue, ms | ours |"
    rows = [head, "|" + "---|" * (head.count("|") - 1)]
    keys = list(dict.fromkeys((run["pair"], run["cell"]) for run in runs))
    for pair, cell in keys:
        of_cell = [run for run in runs if (run["pair"], run["cell"]) == (pair, cell)]
        theirs = [run for run in of_cell if run["kind"] == "real" and run["counts"]]
        disturbed = sum(not run["counts"] for run in of_cell)
        ours = [run for run in of_cell if run["kind"] == "simulated"]
        count = f"{len(theirs)}" + (f" ({disturbed} disturbed)" if disturbed else "")
        if not theirs:
            rows.append(f"| {pair} | {cell} | {count} |" + " |" * 7)
            continue
        cells = []
        for key, digits in (("goodput_mbps", 1), ("dropped", 0), ("queue_ms", 1)):
            here, there = ([run[key] for run in side] for side in (ours, theirs))
            cells += [span(there, digits), span(here, digits)]
            if key == "goodput_mbps":
                cells.append(f"{median(here) / median(there):.2f}")
        rows.append(f"| {pair} | {cell} | {count} | " + " | ".join(cells) + " |")
    return "\n".join(rows)
