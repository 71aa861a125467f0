"""The command line of `interop/run`."""

import argparse
import io
import multiprocessing
import shutil
import signal
import sys
import tempfile
import time
import traceback
import unittest
from pathlib import Path

from . import http_tests, programs, results, tap_tests, tests, trace_tests
from .cases import CASES, Setting
from .programs import Bench, Failure, Unsupported
from .peers import PEERS, QUICK, SEVERAL_PATHS, available
from .render import render
from .site import Identity, Site

# Authorities between the root and the server of `amplificationlimit`. (rustls takes no more than six.)
CHAIN_BETWEEN = 6
# Workers inherit what was prepared for them.
FORK = multiprocessing.get_context("fork")
# With --quick, so many failures may be due to the machine's load: they are run again, alone, so often.
CHANCE = 3
REPETITIONS = 3
DOCUMENT = programs.REPOSITORY / "docs" / "interop.md"

EPILOG = """Cases:
{cases}

Environment:
  CARGO_TARGET_DIR  where the foreign stacks are built; by default in the folder of each
  INTEROP_PROFILE   Cargo's profile for those in Rust; by default `smoke`, which builds quickest
  PICOQUICDEMO      the program of picoquic, which no registry has
  XQUIC_DEMO        the folder of the programs of XQUIC, likewise

Without --swiftwater the release build of this tree is used, built if needed. Ports are picked among
the free ones. Logs of failed cases are kept and their place is printed."""

def parse():
    width = max(len(case.name) for case in CASES)
    cases = "\n".join(
        f"  {case.name:{width}}  {case.help}" for case in CASES
    )
    parser = argparse.ArgumentParser(
        prog="interop/run",
        description="Runs Swiftwater against foreign QUIC stacks, in both roles.",
        epilog=EPILOG.format(cases=cases),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--quick", action="store_true", help="the cases that CI runs, and the tests of the harness itself")
    parser.add_argument(
        "--matrix", action="store_true",
        help="the cases of the QUIC interop runner with all peers in both roles; writes docs/interop.md",
    )
    parser.add_argument(
        "--jobs", type=int, default=None, metavar="N",
        help="pairs of stacks that are tested at the same time [default: 1; 3 for --matrix and --quick]",
    )
    parser.add_argument(
        "--again", type=Path, metavar="FILE",
        help="run what failed in these results of --json once more, one case at a time, and amend the file and "
        "docs/interop.md",
    )
    parser.add_argument(
        "--page", type=Path, metavar="FILE", help="run nothing: write docs/interop.md from these results of --json"
    )
    parser.add_argument(
        "--http", type=Path, metavar="FILE",
        help="run the cases of HTTP/3 only, put them into these results of --json, and write docs/interop.md",
    )
    parser.add_argument(
        "--paths", type=Path, metavar="FILE",
        help="the same for the cases of several paths, with Swiftwater against itself, too",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results here, too")
    parser.add_argument("--swiftwater", metavar="PROGRAM", help="program to test")
    parser.add_argument(
        "--http-peer", metavar="PROGRAM", help="program to test in the HTTP cases (crates/http/examples/http_peer)"
    )
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
        "--peer", action="append", choices=PEERS, metavar="PEER",
        help=f"only with this peer (repeatable): {', '.join(PEERS)}",
    )
    parser.add_argument(
        "--case", action="append", choices=[case.name for case in CASES], metavar="CASE",
        help="only this case (repeatable)",
    )
    parser.add_argument(
        "--repeat", type=int, default=1, metavar="N", help="run each case N times, with the relay seeded 1 to N"
    )
    parser.add_argument("--logs", type=Path, metavar="DIR", help="keep all logs in this new folder")
    return parser.parse_args()


def pairs(swiftwater, peers, arguments):
    """Server and client of each combination."""
    if arguments.again:
        stacks = {stack.name: stack for stack in (swiftwater, *peers)}
        return [(stacks[a], stacks[b]) for a, b in sorted({it[:2] for it in arguments.cells})]
    combinations = []
    if not arguments.only_control:
        for peer in peers:
            combinations += [(swiftwater, peer), (peer, swiftwater)]
        if arguments.with_self or arguments.paths:
            combinations.append((swiftwater, swiftwater))
    if arguments.control or arguments.only_control:
        combinations += [(a, b) for a in peers for b in peers if a is not b]
    return combinations


def run_case(case, setting, folder):
    """Verdict and note."""
    try:
        with Bench(folder) as bench:
            setting.bench = bench
            return "pass", case.run(setting) or ""
    except Unsupported as reason:
        return "skip", str(reason)
    except Failure as failure:
        return "fail", str(failure)
    except Exception as error:  # The other cases continue after malformed data of a peer.
        traceback.print_exc()
        return "fail", f"the harness: {type(error).__name__}: {error}"


def chosen_cases(arguments, pair=None):
    """The cases to run, with a pair of stacks those that both have the programs for."""
    chosen = CASES
    if arguments.again:
        place = tuple(stack.name for stack in pair or ())
        chosen = [case for case in CASES if (*place, case.name) in arguments.cells or not pair]
    elif arguments.case:
        chosen = [case for case in CASES if case.name in arguments.case]
    elif arguments.http:
        chosen = [case for case in CASES if case.http]
    elif arguments.paths:
        chosen = [case for case in CASES if case.paths]
    elif arguments.matrix:
        chosen = [case for case in CASES if case.matrix]
    elif arguments.quick:
        chosen = [case for case in CASES if case.quick]
    return [case for case in chosen if not pair or case.fits(pair)]


def run_pair(pair, arguments, make_setting, work):
    """All cases with one server and one client; yields their rows, and where their logs are."""
    server, client = pair
    for case in chosen_cases(arguments, pair):
        for attempt in range(arguments.repeat):
            folder = work / "cases" / f"{server.name}-{client.name}-{case.name}-{attempt}"
            start = time.monotonic()
            verdict, note = run_case(case, make_setting(server, client, attempt + 1), folder)
            yield {
                "server": server.name,
                "client": client.name,
                "case": case.name,
                "verdict": verdict,
                "seconds": round(time.monotonic() - start, 3),
                "note": note,
            }, folder
            if verdict != "fail" and arguments.logs is None:
                shutil.rmtree(folder)
            if verdict == "skip":
                break


def work_on(number, todo, taken, rows, run):
    """A worker's life: takes pairs until there are none. A process, because a tap must not wait for the
    trace of another case to be read."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    programs.ports.be_worker(number)
    try:
        while True:
            with taken:
                index = taken.value
                taken.value += 1
            if index >= len(todo):
                break
            for row in run(todo[index]):
                rows.put(row)
    finally:
        rows.put(None)


def collect(rows, workers):
    """Prints rows as they come, until all workers are done."""
    print(f"{'server':<11}{'client':<11}{'case':<20}{'verdict':<9}{'s':>6}  note", flush=True)
    collected = []
    running = len(workers)
    while running:
        got = rows.get()
        if got is None:
            running -= 1
            continue
        row, folder = got
        collected.append(row)
        print(
            f"{row['server']:<11}{row['client']:<11}{row['case']:<20}"
            f"{row['verdict']:<9}{row['seconds']:6.1f}  {row['note']}",
            flush=True,
        )
        if row["verdict"] == "fail":
            print(f"    logs: {folder}", flush=True)
    return collected


def run_all(arguments, swiftwater, peers, work):
    site = Site(work / "site")
    identity = Identity(work, "small")
    chain = Identity(work, "chain", between=CHAIN_BETWEEN)

    def make_setting(server, client, seed):
        relay = swiftwater
        return Setting(None, site, identity, chain, server, client, swiftwater, relay, seed)

    def run(pair):
        return run_pair(pair, arguments, make_setting, work)

    rows, taken = FORK.Queue(), FORK.Value("i", 0)
    wanted = pairs(swiftwater, peers, arguments)
    jobs = arguments.jobs or (3 if arguments.matrix or arguments.quick or part(arguments) else 1)
    workers = [
        FORK.Process(target=work_on, args=(number, wanted, taken, rows, run))
        for number in range(min(jobs, len(wanted)))
    ]
    try:
        for worker in workers:
            worker.start()
        collected = collect(rows, workers)
    finally:
        for worker in workers:
            if worker.is_alive():
                worker.terminate()
            worker.join()
    order = {case.name: index for index, case in enumerate(CASES)}
    collected.sort(key=lambda row: (row["server"], row["client"], order[row["case"]]))
    return collected


def repeated_failures(arguments, swiftwater, peers, failed, work):
    """Runs what failed beside other cases again, alone, REPETITIONS times: the rows that fail again. A case
    that waits for a busy machine passes then; both verdicts are printed."""
    print(f"again, one case at a time, {REPETITIONS} times:", flush=True)
    alone = argparse.Namespace(**vars(arguments))
    alone.again, alone.repeat, alone.jobs = True, REPETITIONS, 1
    alone.cells = {(row["server"], row["client"], row["case"]) for row in failed}
    rows = run_all(alone, swiftwater, peers, work)
    return [row for row in rows if row["verdict"] == "fail"]


def part(arguments):
    """The part of the cases that is run by itself, and the file with the results of all."""
    named = {"http": arguments.http, "paths": arguments.paths}
    return next(((name, file) for name, file in named.items() if file), None)


def keep_results(arguments, peers, rows):
    """Writes the requested files."""
    told = results.record(peers, rows, arguments.repeat, arguments.commit)
    if arguments.again:
        told = results.amended(results.read(arguments.again), rows)
        results.write(arguments.again, told)
    elif part(arguments):
        name, file = part(arguments)
        told = results.with_part(results.read(file), told, name)
        results.write(file, told)
    if arguments.json:
        results.write(arguments.json, told)
    if arguments.again or part(arguments) or arguments.matrix and not (arguments.peer or arguments.case):
        write_page(told)


def write_page(told):
    DOCUMENT.write_text(render(told, CASES))
    print(f"written: {DOCUMENT}")


def take_failures(arguments):
    """Narrows the run to what failed before; returns the peers that this needs."""
    told = results.read(arguments.again)
    arguments.cells = results.failures(told)
    arguments.repeat, arguments.jobs = told["repeat"], 1
    return [name for name in told["peers"] if any(name in cell[:2] for cell in arguments.cells)]


def test_harness():
    """True if the harness's own checks work; says so only if they don't."""
    load = unittest.defaultTestLoader.loadTestsFromModule
    suite = unittest.TestSuite(map(load, (tests, tap_tests, trace_tests, http_tests)))
    report = io.StringIO()
    passed = unittest.TextTestRunner(report).run(suite).wasSuccessful()
    if not passed:
        print(report.getvalue(), file=sys.stderr)
    return passed


def main():
    arguments = parse()
    if arguments.page:
        write_page(results.read(arguments.page))
        return 0
    amended = arguments.again or (part(arguments) or (None, None))[1]
    if amended and not amended.is_file():
        print(f"interop: there are no results in {amended} to amend", file=sys.stderr)
        return 2
    if arguments.quick and not test_harness():
        return 1
    # Whatever ends this program must also end what it has started.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    # Now: the tree may move on meanwhile.
    arguments.commit = results.newest()
    names = arguments.peer or (QUICK if arguments.quick else SEVERAL_PATHS if arguments.paths else PEERS)
    if arguments.again:
        names = take_failures(arguments)
    peers = available(names)
    # A control run needs it, too: for the relay.
    program = (
        programs.executable(arguments.swiftwater)
        if arguments.swiftwater
        else programs.build_swiftwater()
    )
    http = None
    if any(case.http for case in chosen_cases(arguments)):
        http = programs.executable(arguments.http_peer) if arguments.http_peer else programs.build_http()
    swiftwater = programs.Swiftwater(program, http)
    if arguments.logs:
        arguments.logs.mkdir(parents=True)
    work = arguments.logs or Path(tempfile.mkdtemp(prefix="swiftwater-interop-"))
    # After an error of the harness itself the logs are of use, too.
    keep = True
    try:
        rows = run_all(arguments, swiftwater, peers, work.resolve())
        failed = [row for row in rows if row["verdict"] == "fail"]
        keep = bool(failed)
        counted = failed
        if arguments.quick and 0 < len(failed) <= CHANCE:
            again = work.resolve() / "again"
            again.mkdir()
            counted = repeated_failures(arguments, swiftwater, peers, failed, again)
    except (KeyboardInterrupt, SystemExit):
        keep = False
        raise
    finally:
        if not keep and arguments.logs is None:
            shutil.rmtree(work, ignore_errors=True)
    keep_results(arguments, peers, rows)
    passed = sum(row["verdict"] == "pass" for row in rows)
    print(f"{passed} passed, {len(failed)} failed, {len(rows) - passed - len(failed)} skipped")
    if failed and not counted:
        print("failed once beside other cases and passed alone: no failure of the run")
    # No case at all is no success.
    return 1 if counted or not passed else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
