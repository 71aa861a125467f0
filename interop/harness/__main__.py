"""The command line of `interop/run`."""

import argparse
import io
import json
import shutil
import signal
import sys
import tempfile
import time
import unittest
from pathlib import Path

from . import programs, tests
from .cases import CASES, Setting
from .programs import Bench, Failure, Unsupported
from .site import Identity, Site

EPILOG = """Cases:
{cases}

Without --swiftwater the release build of this tree is used, built if needed. Ports are picked among
the free ones. Logs of failed cases are kept and their place is printed."""


def parse():
    width = max(len(case.__name__) for case, _ in CASES)
    cases = "\n".join(
        f"  {case.__name__:{width}}  {' '.join(case.__doc__.split())}" for case, _ in CASES
    )
    parser = argparse.ArgumentParser(
        prog="interop/run",
        description="Runs Swiftwater against foreign QUIC stacks, in both roles.",
        epilog=EPILOG.format(cases=cases),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--quick", action="store_true", help="the cases that CI runs, and the tests of the harness itself")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results here, too")
    parser.add_argument("--swiftwater", metavar="PROGRAM", help="program to test")
    parser.add_argument(
        "--control",
        action="store_true",
        help="also run the foreign stacks against each other: is it us or them?",
    )
    parser.add_argument(
        "--only-control", action="store_true", help="just the foreign stacks against each other"
    )
    parser.add_argument(
        "--self", action="store_true", dest="with_self", help="also run Swiftwater against itself"
    )
    parser.add_argument(
        "--peer", action="append", choices=["aioquic", "quinn"], help="only with this peer"
    )
    parser.add_argument(
        "--case", action="append", choices=[case.__name__ for case, _ in CASES], metavar="CASE",
        help="only this case (repeatable)",
    )
    parser.add_argument(
        "--repeat", type=int, default=1, metavar="N", help="run each case N times, with the relay seeded 1 to N"
    )
    parser.add_argument("--logs", type=Path, metavar="DIR", help="keep all logs in this new folder")
    return parser.parse_args()


def pairs(swiftwater, peers, arguments):
    """Server and client of each combination."""
    combinations = []
    if not arguments.only_control:
        for peer in peers:
            combinations += [(swiftwater, peer), (peer, swiftwater)]
        if arguments.with_self:
            combinations.append((swiftwater, swiftwater))
    if arguments.control or arguments.only_control:
        combinations += [(a, b) for a in peers for b in peers if a is not b]
    return combinations


def run_case(case, setting, folder):
    """Verdict and note."""
    try:
        with Bench(folder) as bench:
            setting.bench = bench
            return "pass", case(setting) or ""
    except Unsupported as reason:
        return "skip", str(reason)
    except Failure as failure:
        return "fail", str(failure)


def run_all(arguments, swiftwater, peers, work):
    site = Site(work / "site")
    identity = Identity(work, "small")
    big_identity = Identity(work, "big", extra_names=150)
    wanted = arguments.case or [
        case.__name__ for case, quick in CASES if quick or not arguments.quick
    ]
    rows = []
    print(f"{'server':<11}{'client':<11}{'case':<14}{'verdict':<9}{'s':>6}  note", flush=True)
    for server, client in pairs(swiftwater, peers, arguments):
        for case, _ in CASES:
            if case.__name__ not in wanted:
                continue
            for attempt in range(arguments.repeat):
                name = f"{server.name}-{client.name}-{case.__name__}-{attempt}"
                folder = work / "cases" / name
                setting = Setting(
                    None, site, identity, big_identity, server, client, swiftwater, attempt + 1
                )
                start = time.monotonic()
                verdict, note = run_case(case, setting, folder)
                seconds = time.monotonic() - start
                rows.append(
                    {
                        "server": server.name,
                        "client": client.name,
                        "case": case.__name__,
                        "verdict": verdict,
                        "seconds": round(seconds, 3),
                        "note": note,
                    }
                )
                print(
                    f"{server.name:<11}{client.name:<11}{case.__name__:<14}"
                    f"{verdict:<9}{seconds:6.1f}  {note}",
                    flush=True,
                )
                if verdict == "fail":
                    print(f"    logs: {folder}", flush=True)
                elif arguments.logs is None:
                    shutil.rmtree(folder)
                if verdict == "skip":
                    break
    return rows


def test_harness():
    """True if the harness's own checks work; says so only if they don't."""
    suite = unittest.defaultTestLoader.loadTestsFromModule(tests)
    report = io.StringIO()
    passed = unittest.TextTestRunner(report).run(suite).wasSuccessful()
    if not passed:
        print(report.getvalue(), file=sys.stderr)
    return passed


def main():
    arguments = parse()
    if arguments.quick and not test_harness():
        return 1
    # Whatever ends this program must also end what it has started.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    quinn = programs.quinn(programs.build_quinn())
    swiftwater = None
    # Without it, a control run has no relay and skips the cases that need one.
    if arguments.swiftwater or not arguments.only_control:
        program = (
            programs.executable(arguments.swiftwater)
            if arguments.swiftwater
            else programs.build_swiftwater()
        )
        swiftwater = programs.Swiftwater(program)
    peers = [
        peer
        for peer in (programs.aioquic(), quinn)
        if arguments.peer is None or peer.name in arguments.peer
    ]
    if arguments.logs:
        arguments.logs.mkdir(parents=True)
    work = arguments.logs or Path(tempfile.mkdtemp(prefix="swiftwater-interop-"))
    # After an error of the harness itself the logs are of use, too.
    keep = True
    try:
        rows = run_all(arguments, swiftwater, peers, work.resolve())
        failed = [row for row in rows if row["verdict"] == "fail"]
        keep = bool(failed)
    except (KeyboardInterrupt, SystemExit):
        keep = False
        raise
    finally:
        if not keep and arguments.logs is None:
            shutil.rmtree(work, ignore_errors=True)
    if arguments.json:
        arguments.json.write_text(json.dumps({"results": rows}, indent=1) + "\n")
    passed = sum(row["verdict"] == "pass" for row in rows)
    print(f"{passed} passed, {len(failed)} failed, {len(rows) - passed - len(failed)} skipped")
    # No case at all is no success.
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
