"""Tests of the harness itself: a check that can't fail proves nothing."""

import contextlib
import socket
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path
from types import SimpleNamespace

from . import bounds, h2, paths, process, recorders, upstream
from .honest import Honest
from .runner import Result, Runner, judge
from .scene import Scene
from .table import render

MB = 1 << 20
GOOD = {"h2": 0.01, "h3": 0.02}


def result(**values):
    good = {
        "latency": {"before": GOOD, "during": GOOD, "after": GOOD},
        "memory": {"before": 20 * MB, "peak": 30 * MB, "after": 25 * MB},
        "processor": {"during": 0.9, "after": 0.0},
        "descriptors": 20,
    }
    return Result("name", "help", **{**good, **values})


def problems(slack=1.0, **values):
    judged = result(**values)
    judge(judged, SimpleNamespace(memory=bounds.MEMORY), slack)
    return judged.problems


class Judging(unittest.TestCase):
    def test_what_is_within_bounds_passes(self):
        self.assertEqual(problems(), [])

    def test_an_honest_client_that_waits_fails(self):
        for phase in ("during", "after"):
            latency = {"before": GOOD, "during": GOOD, "after": GOOD, phase: {"h2": 0.01, "h3": 1.1}}
            self.assertEqual(problems(latency=latency), [f"h3 {phase}: 1.10 s"])
            self.assertEqual(problems(latency=latency, slack=2), [])
            latency[phase] = {"h2": float("inf"), "h3": 0.02}
            self.assertEqual(problems(latency=latency, slack=2), [f"h2 {phase}: no answer"])

    def test_an_honest_client_that_never_ran_fails(self):
        latency = {"before": GOOD, "during": {"h2": None, "h3": 0.02}, "after": GOOD}
        self.assertEqual(problems(latency=latency), ["h2 during: no request of the honest client"])

    def test_memory(self):
        peak = 20 * MB + bounds.MEMORY
        self.assertEqual(problems(memory={"before": 20 * MB, "peak": peak}), [])
        self.assertEqual(len(problems(memory={"before": 20 * MB, "peak": peak + MB})), 1)

    def test_descriptors(self):
        self.assertEqual(problems(descriptors=256 - bounds.SPARE_DESCRIPTORS, descriptor_limit=256), [])
        self.assertEqual(problems(descriptors=250, descriptor_limit=256), ["250 of 256 descriptors"])

    def test_a_server_that_stays_busy(self):
        self.assertEqual(len(problems(processor={"during": 1, "after": 0.9})), 1)

    def test_the_table_says_why(self):
        text = "\n".join(render([result(problems=["it is broken"]), result()]))
        self.assertIn("FAILED", text)
        self.assertIn("it is broken", text)
        self.assertEqual(text.count(" ok"), 1)


class Measuring(unittest.TestCase):
    """Against a process that wastes what is measured."""

    WASTE = """
import os, time
kept = bytearray(64 << 20)
kept[::4096] = b"x" * len(kept[::4096])
held = [os.open("/dev/null", os.O_RDONLY) for _ in range(100)]
print("ready", flush=True)
end = time.monotonic() + 0.5
while time.monotonic() < end:
    pass
time.sleep(30)
"""

    def test_memory_descriptors_and_processor_time(self):
        waste = subprocess.Popen([sys.executable, "-c", self.WASTE], stdout=subprocess.PIPE)
        with contextlib.closing(waste.stdout):
            try:
                waste.stdout.readline()
                meter = process.Meter(waste.pid)
                time.sleep(0.2)
                meter.stop()
                self.assertGreater(meter.peak_memory, 64 * MB)
                self.assertGreater(meter.peak_descriptors, 100)
                self.assertGreater(process.processor(waste.pid), 0.05)
            finally:
                waste.kill()
                waste.wait()
        self.assertEqual(process.resident(waste.pid), 0)

    def test_a_program_that_ignores_sigterm_is_killed_and_told_of(self):
        with contextlib.ExitStack() as stack:
            directory = stack.enter_context(tempfile.TemporaryDirectory())
            log = Path(directory, "log")
            ignore = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN);"
            code = ignore + "print(1, flush=True); time.sleep(60)"
            program = process.Program([sys.executable, "-c", code], log)
            while not log.read_text():
                time.sleep(0.02)
            self.assertIsNone(program.terminate(0.3))
            judged = Result("name", "help")
            Runner.stop(SimpleNamespace(slack=1.0), SimpleNamespace(terminate=lambda _: None), judged)
            self.assertEqual(judged.problems, ["SIGTERM does not end the server"])


class HonestClient(unittest.TestCase):
    def test_a_server_that_says_nothing_is_no_answer(self):
        with socket.create_server(("127.0.0.1", 0)) as silent:
            honest = Honest(silent.getsockname(), "/", 0.3, protocols=("h2",))
            try:
                began = time.monotonic()
                honest.await_round(1)
                self.assertEqual(honest.worst(began, time.monotonic()), {"h2": float("inf")})
            finally:
                honest.stop()
        self.assertEqual(honest.worst(0, 1), {"h2": None})

    def test_status(self):
        self.assertEqual(h2.status(b"\x88"), 200)
        self.assertEqual(h2.status(b"\x8d\x00"), 404)
        self.assertEqual(h2.status(b"\x48\x03503"), 503)
        # 503 in Huffman's code: 011011 00000 011001, padded with ones.
        code = int("011011" + "00000" + "011001" + "1111111", 2).to_bytes(3, "big")
        self.assertEqual(h2.status(b"\x48\x83" + code), 503)

    def test_sections_of_long_values(self):
        for size in (126, 127, 128, 300, 20000):
            encoded = h2.literal(b"x" * size)
            self.assertEqual(encoded[-size:], b"x" * size)
        self.assertEqual(h2.literal(b"x" * 127)[:2], b"\x7f\x00")


class Forwarding(unittest.TestCase):
    GOOD_HEAD = b"post /x http/1.1\r\nhost: localhost\r\ncontent-length: 5\r\n\r\n"

    def test_a_good_head_has_no_faults(self):
        self.assertEqual(recorders.faults(self.GOOD_HEAD), [])

    def test_bad_heads(self):
        replaced = lambda old, new: self.GOOD_HEAD.replace(old, new)
        for head in (
            replaced(b"host: localhost\r\n", b""),
            replaced(b"host:", b"host: x\r\nhost:"),
            replaced(b"length: 5", b"length: 5, 5"),
            replaced(b"length: 5", b"length: +5"),
            replaced(b"content", b"transfer-encoding: chunked\r\ncontent"),
            replaced(b"content-length: 5", b"transfer-encoding: xchunked"),
            replaced(b"content", b"content-length: 5\r\ncontent"),
            replaced(b"content-length", b"content-length "),
            replaced(b"localhost", b"local\x00host"),
            replaced(b"/x", b"/x y"),
        ):
            self.assertNotEqual(recorders.faults(head), [], head)

    def test_messages_are_read_by_their_length(self):
        both = bytearray(self.GOOD_HEAD + b"hello" + self.GOOD_HEAD + b"hel")
        begin, end = recorders.Upstream.message(both, 0)
        self.assertEqual(both[begin:end], b"hello")
        self.assertIsNone(recorders.Upstream.message(both, end))
        chunked = bytearray(b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\nGET")
        self.assertEqual(chunked[recorders.Upstream.message(chunked, 0)[1] :], b"GET")

    def test_an_upstream_that_gets_two_lengths_is_noticed(self):
        with contextlib.closing(recorders.Upstream()) as recorder:
            with socket.create_connection(recorder.address) as client:
                both = b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n"
                client.sendall(b"POST / HTTP/1.1\r\nHost: a\r\n" + both + b"\r\n0\r\n\r\n")
                client.recv(100)
            scene = Scene(recorder.address, 1, None, None, shared={"upstream": recorder})
            upstream.check_upstream(scene, "case", 0)
        self.assertEqual(scene.problems, ["case: goes upstream with a bad two lengths"])


class Secrets(unittest.TestCase):
    def test_a_secret_that_is_served_is_noticed(self):
        scene = Scene(("127.0.0.1", 1), 1, None, None)
        leaks = {"h1": lambda _, path: paths.SECRET if path == "/b" else b"404"}
        kept, paths.GET = paths.GET, leaks
        try:
            paths.try_all(scene, ["/a", "/b"])
        finally:
            paths.GET = kept
        self.assertEqual(scene.problems, ["h1 /b is served from the directory"])


class Clients(unittest.TestCase):
    def judged(self, code, took, ends_itself=False):
        runner, judged = SimpleNamespace(slack=1.0), Result("name", "help")
        Runner.judge_get(runner, SimpleNamespace(ends_itself=ends_itself), judged, code, took, 2.0)
        return judged.problems

    def test_a_client_that_fails_in_time_passes(self):
        self.assertEqual(self.judged(13, 2.1), [])
        self.assertEqual(self.judged(13, 0.3, ends_itself=True), [])

    def test_a_client_that_hangs_succeeds_or_dies_fails(self):
        for code, took in ((None, 5), (13, 5), (0, 1), (-6, 1), (101, 1)):
            self.assertEqual(len(self.judged(code, took)), 1, code)
        self.assertEqual(len(self.judged(13, 2.5, ends_itself=True)), 1)
