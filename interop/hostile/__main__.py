"""The command line of `interop/hostile/run`."""

import argparse
import io
import json
import multiprocessing
import subprocess
import sys
import time
import unittest
from concurrent.futures import ProcessPoolExecutor
from itertools import repeat
from pathlib import Path

from . import over_quic, over_tcp, paths, resources, servers, tests, upstream  # noqa: F401 (they add attacks)
from .runner import Runner
from .scene import ATTACKS
from .table import render

# Attacks at once with --quick: most of them wait most of the time.
TOGETHER = 5
REPOSITORY = Path(__file__).resolve().parent.parent.parent
EPILOG = """Attacks on a server, each on one of its own with an honest client beside it:
{attacks}

Hostile servers against `get`:
{servers}

Without --binary the release build of this tree is used, built if needed."""


def parse(arguments=None):
    everything = [*ATTACKS, *servers.SERVERS]
    width = max(len(each.name) for each in everything)
    lines = lambda of: "\n".join(f"  {each.name:{width}}  {each.help}" for each in of)
    parser = argparse.ArgumentParser(
        prog="interop/hostile/run",
        description="Attacks `serve` and `get`, and measures what it costs an honest client and the server.",
        epilog=EPILOG.format(attacks=lines(ATTACKS), servers=lines(servers.SERVERS)),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    length = parser.add_mutually_exclusive_group()
    length.add_argument("--quick", action="store_true", help="seconds for each attack, as in CI (the default)")
    length.add_argument("--long", action="store_true", help="up to minutes for each attack, with more clients")
    parser.add_argument("--only", action="append", metavar="NAME", help="attacks whose names contain this; repeatable")
    parser.add_argument("--binary", type=Path, metavar="PATH", help="another build of swiftwater")
    parser.add_argument("--slack", type=float, default=1.0, metavar="FACTOR", help="multiplies the bounds of time")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results there too")
    parser.add_argument("--tests-only", action="store_true", help="only the tests of the harness")
    options = parser.parse_args(arguments)
    chosen = lambda each: not options.only or any(name in each.name for name in options.only)
    options.attacks = [each for each in ATTACKS if chosen(each)]
    options.servers = [each for each in servers.SERVERS if chosen(each)]
    if not options.attacks and not options.servers:
        parser.error("there is no such attack")
    return options


def build():
    subprocess.run(["cargo", "build", "--release", "--bin", "swiftwater"], cwd=REPOSITORY, check=True)
    return REPOSITORY / "target" / "release" / "swiftwater"


def test_the_harness():
    """Checks that can't fail prove nothing."""
    said = io.StringIO()
    result = unittest.TextTestRunner(said).run(unittest.defaultTestLoader.loadTestsFromModule(tests))
    if not result.wasSuccessful():
        sys.exit(f"hostile: the harness is broken\n{said.getvalue()}")
    print(f"hostile: {result.testsRun} tests of the harness passed", file=sys.stderr)


def carry_out_one(runner, name):
    """In a process of its own: the attack of this name."""
    for each in ATTACKS:
        if each.name == name:
            return runner.against_serve(each)
    return runner.against_get(next(each for each in servers.SERVERS if each.name == name))


def carry_out(runner, attacks, together):
    """Carries out attacks, so many at once; their results, in order."""
    results = []
    # Attacks are found by their names there.
    fork = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(together, mp_context=fork) as pool:
        names = [each.name for each in attacks]
        for each, result in zip(attacks, pool.map(carry_out_one, repeat(runner), names), strict=True):
            verdict = "ok" if result.passed else "FAILED: " + "; ".join(result.problems)
            print(f"hostile: {each.name}: {verdict}", file=sys.stderr, flush=True)
            results.append(result)
    return results


def main():
    options = parse()
    test_the_harness()
    if options.tests_only:
        return
    runner = Runner(options.binary or build(), options.long, options.slack)
    began, results = time.monotonic(), []
    try:
        runner.prepare()
        everything = [*options.attacks, *options.servers]
        alone = [each for each in everything if options.long or getattr(each, "alone", False)]
        results += carry_out(runner, alone, 1)
        results += carry_out(runner, [each for each in everything if each not in alone], TOGETHER)
    finally:
        runner.close()
    print(*render(results), sep="\n")
    passed = sum(result.passed for result in results)
    failed = len(results) - passed
    print(f"\n{passed} passed, {failed} failed; {time.monotonic() - began:.0f} s")
    if options.json:
        options.json.write_text(json.dumps([result.record() for result in results], indent=1, default=str))
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
