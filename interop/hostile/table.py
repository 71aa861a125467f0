"""The results as a table."""

HEAD = ("attack", "h2 ms", "h3 ms", "RSS MB", "fds", "CPU", "verdict")


def milliseconds(seconds):
    if seconds is None:
        return "?"
    return "never" if seconds == float("inf") else f"{seconds * 1000:.0f}"


def waits(result, protocol):
    phases = [(result.latency.get(phase) or {}).get(protocol) for phase in ("before", "during", "after")]
    return "/".join(milliseconds(each) for each in phases) if result.latency else "-"


def row(result):
    latency = [waits(result, protocol) for protocol in ("h2", "h3")]
    phases = [result.memory.get(phase) for phase in ("before", "peak", "after")]
    memory = "/".join("-" if bytes is None else str(bytes >> 20) for bytes in phases)
    files = "-" if result.descriptors is None else str(result.descriptors)
    if result.descriptor_limit:
        files += f" of {result.descriptor_limit}"
    busy = [result.processor.get(phase) for phase in ("during", "after")]
    processor = "/".join("-" if each is None else f"{each:.0%}" for each in busy)
    return (result.name, *latency, memory, files, processor, "ok" if result.passed else "FAILED")


def render(results, widths=(40, 16, 16, 12, 10, 9, 7)):
    """Lines of a table; under each failed attack, why."""
    line = lambda cells: "  ".join(f"{cell:{width}}" for cell, width in zip(cells, widths, strict=True)).rstrip()
    yield line(HEAD)
    yield line(("", "bef/during/after", "bef/during/after", "bef/peak/aft", "peak", "dur/after", ""))
    for result in results:
        yield line(row(result))
        for problem in result.problems:
            yield f"    {problem}"
