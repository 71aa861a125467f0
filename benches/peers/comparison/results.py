"""What was measured, and what it comes to: medians, spreads, ratios."""

import statistics
from dataclasses import dataclass, field

from .programs import OURS

# After so many failures of a job, a program does not run it again.
ENOUGH = 2
S2N = "s2n-quic"


@dataclass
class Cell:
    """A program's runs of a job."""

    values: list = field(default_factory=list)
    failures: list = field(default_factory=list)

    @property
    def given_up(self):
        return len(self.failures) >= ENOUGH

    def median(self, key):
        return statistics.median(value[key] for value in self.values)

    def spread(self, key):
        values = [value[key] for value in self.values]
        return min(values), max(values)


class Results:
    """Cells by job and entry."""

    def __init__(self, jobs, entries):
        self.jobs = jobs
        self.entries = entries
        self.cells = {
            job.name: {entry: Cell() for entry in entries if entry.program.does(job)} for job in jobs
        }

    def measured(self, job):
        """The entries that have values, with their cells."""
        return [(entry, cell) for entry, cell in self.cells[job.name].items() if cell.values]

    def rivals(self, job, setting, measure):
        """What ours with this setting is compared with in one measure: a word for each, its entry and its median.
        The best peer is the best one with either setting."""
        best = max if measure.more else min
        others = [
            (entry, cell.median(measure.key))
            for entry, cell in self.measured(job)
            if entry.program.name != OURS
        ]
        found = []
        peers = [row for row in others if not row[0].program.extra]
        if peers:
            entry, value = best(peers, key=lambda row: row[1])
            found.append(("best peer", entry, value))
        found += [
            (entry.program.name, entry, value)
            for entry, value in others
            if entry.setting == setting and (entry.program.extra or entry.program.name == S2N)
        ]
        return found

    def ratios(self, job):
        """Ours to the others: rows of our entry, measure, whom with, ratio."""
        rows = []
        for entry, cell in self.measured(job):
            if entry.program.name != OURS:
                continue
            for measure in job.measures:
                for word, rival, value in self.rivals(job, entry.setting, measure):
                    if value > 0:
                        ratio = cell.median(measure.key) / value
                        rows.append((entry, measure, word, rival, ratio))
        return rows

    def record(self):
        """All of it, for JSON."""
        return {
            job.name: {
                "title": job.title,
                "programs": [
                    {
                        "program": entry.program.name,
                        "setting": entry.setting,
                        "medians": {
                            measure.key: cell.median(measure.key)
                            for measure in job.measures
                            if cell.values
                        },
                        "rounds": cell.values,
                        "failures": cell.failures,
                    }
                    for entry, cell in self.cells[job.name].items()
                ],
                "ratios": [
                    {
                        "of": entry.label,
                        "measure": measure.key,
                        "to": word,
                        "which": rival.label,
                        "ratio": ratio,
                    }
                    for entry, measure, word, rival, ratio in self.ratios(job)
                ],
            }
            for job in self.jobs
        }
