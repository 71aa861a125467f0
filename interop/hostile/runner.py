"""Carries out attacks, one after the other, and judges what they cost."""

import shutil
import subprocess
import tempfile
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path

from . import bounds, servers
from .honest import Honest
from .process import Failed, Meter, Program, await_tcp, descriptors, free_port, processor, resident
from .scene import BIG, BIG_SIZE, HONEST, SMALL, Scene

# Rounds of the honest client before an attack and after it.
ROUNDS = {False: 1, True: 3}


@dataclass
class Result:
    """What an attack cost. Times in seconds, memory in bytes; None where it was not measured."""

    name: str
    help: str
    latency: dict = field(default_factory=dict)
    memory: dict = field(default_factory=dict)
    descriptors: int | None = None
    descriptor_limit: int | None = None
    # Processors busy during the attack, and after it.
    processor: dict = field(default_factory=dict)
    problems: list = field(default_factory=list)
    notes: list = field(default_factory=list)

    @property
    def passed(self):
        return not self.problems

    def record(self):
        return {**asdict(self), "passed": self.passed}


def judge(result, attack, slack):
    """Adds what exceeds a bound to the result's problems."""
    for phase in ("during", "after"):
        for protocol, worst in (result.latency.get(phase) or {}).items():
            if worst is None:
                result.problems.append(f"{protocol} {phase}: no request of the honest client")
            elif worst > bounds.LATENCY * slack:
                said = "no answer" if worst == float("inf") else f"{worst:.2f} s"
                result.problems.append(f"{protocol} {phase}: {said}")
    grown = result.memory.get("peak", 0) - result.memory.get("before", 0)
    if grown > attack.memory:
        result.problems.append(f"{grown >> 20} MB more memory, limit {attack.memory >> 20} MB")
    if result.descriptor_limit and result.descriptors is not None:
        if result.descriptors > result.descriptor_limit - bounds.SPARE_DESCRIPTORS:
            result.problems.append(f"{result.descriptors} of {result.descriptor_limit} descriptors")
    if (result.processor.get("after") or 0) > bounds.IDLE:
        result.problems.append(f"{result.processor['after']:.0%} of a processor, with nothing to do")


def make_site(directory):
    site = directory / "site"
    site.mkdir()
    (site / SMALL[1:]).write_bytes(b"hello\n" * 100)
    with open(site / BIG[1:], "wb") as big:
        big.truncate(BIG_SIZE)
    return site


class Runner:
    def __init__(self, binary, long=False, slack=1.0):
        self.binary = str(binary)
        self.long = long
        self.slack = slack
        self.scratch = Path(tempfile.mkdtemp(prefix="hostile-"))
        # One development certificate for all.
        self.state = self.scratch / "state"

    def close(self):
        shutil.rmtree(self.scratch, ignore_errors=True)

    def prepare(self):
        """Has the development certificate made that all servers use."""
        (self.scratch / "empty").mkdir()
        address = ("127.0.0.1", free_port())
        command = [self.binary, "serve", str(self.scratch / "empty"), "--state-dir", str(self.state)]
        command += ["--listen", f"{address[0]}:{address[1]}", "--grace", "0s"]
        program = Program(command, self.scratch / "log")
        await_tcp(program, address)
        program.terminate(bounds.STOPPING)

    def start(self, attack, scene, log):
        command = [self.binary, "serve"]
        flags = list(attack.flags)
        if attack.prepare:
            attack.prepare(scene.site)
        configured = attack.configure(scene) if attack.configure else [str(scene.site)]
        command += [*configured, *flags]
        command += ["--listen", f"{scene.address[0]}:{scene.address[1]}"]
        command += ["--state-dir", str(self.state), "--grace", "1s"]
        pipe = subprocess.PIPE if attack.blocked_output else subprocess.DEVNULL
        program = Program(command, log, nofile=attack.nofile, stdout=pipe)
        await_tcp(program, scene.address)
        return program

    def against_serve(self, attack):
        """One attack on a server of its own."""
        result = Result(attack.name, attack.help)
        directory = Path(tempfile.mkdtemp(dir=self.scratch))
        scene = Scene(
            address=("127.0.0.1", free_port()),
            seconds=attack.seconds[self.long],
            directory=directory,
            site=make_site(directory),
        )
        program = honest = None
        try:
            program = scene.server = self.start(attack, scene, directory / "log")
            if attack.watched:
                honest = Honest(scene.address, SMALL, bounds.NO_ANSWER, source=HONEST)
            self.measure(attack, scene, program, honest, result)
        except Failed as failed:
            result.problems.append(str(failed))
        finally:
            scene.leave()
            if honest:
                honest.stop()
            if program:
                self.stop(program, result)
            scene.close()
            result.problems[:0] = scene.problems
            result.notes += scene.notes
            shutil.rmtree(directory, ignore_errors=True)
        return result

    def measure(self, attack, scene, program, honest, result):
        pid, rounds = program.pid, ROUNDS[self.long]
        began = time.monotonic()
        if honest:
            honest.await_round(rounds)
        result.memory["before"] = resident(pid)
        result.descriptor_limit = attack.nofile
        meter = Meter(pid)
        started, spent = time.monotonic(), processor(pid)
        if honest:
            result.latency["before"] = honest.worst(began, started)
        attack.act(scene)
        if honest:
            # However soon the server has closed the attacker's connection.
            honest.await_since(started)
        ended = time.monotonic()
        result.processor["during"] = (processor(pid) - spent) / max(0.01, ended - started)
        meter.stop()
        scene.leave()
        if honest:
            # What began during the attack may end after it.
            honest.await_round(1)
            quiet = time.monotonic()
            honest.await_round(rounds)
            result.latency["during"] = honest.worst(started, ended)
            result.latency["after"] = honest.worst(quiet, time.monotonic())
            honest.stop()
        result.memory["peak"] = meter.peak_memory
        result.descriptors = meter.peak_descriptors
        if not program.is_alive():
            result.problems.append(f"the server is gone: {program.errors()[-300:]}")
            return
        result.processor["after"] = self.calm(pid)
        result.memory["after"] = resident(pid)
        result.notes.append(f"{descriptors(pid)} descriptors after")
        judge(result, attack, self.slack)

    def calm(self, pid):
        """Processors busy once the server has had time to become idle."""
        end = time.monotonic() + bounds.CALMING * self.slack
        while True:
            spent, began = processor(pid), time.monotonic()
            time.sleep(0.3)
            busy = (processor(pid) - spent) / (time.monotonic() - began)
            if busy <= bounds.IDLE or time.monotonic() > end:
                return busy

    def stop(self, program, result):
        # --grace is a second.
        took = program.terminate(1 + bounds.STOPPING * self.slack)
        if took is None:
            result.problems.append("SIGTERM does not end the server")

    def against_get(self, hostile):
        """One hostile server against `get`."""
        result = Result(hostile.name, hostile.help)
        directory = Path(tempfile.mkdtemp(dir=self.scratch))
        paths = servers.identity(directory)
        kind = servers.QuicServer if hostile.over_quic else servers.TcpServer
        server = kind(hostile.serve, paths)
        patience = 8.0 if hostile.ends_itself else 2.0
        command = [self.binary, "get", f"https://localhost:{server.port}/file", "--ca", str(paths[0])]
        command += [*hostile.flags, "--max-time", f"{patience:.0f}s", "-o", "/dev/null", "--force"]
        program = Program(command, directory / "log", stdout=subprocess.DEVNULL)
        meter, started = Meter(program.pid), time.monotonic()
        try:
            code = program.process.wait(patience + bounds.OVERTIME * self.slack + 1)
        except subprocess.TimeoutExpired:
            code = None
        took = time.monotonic() - started
        if code is None and program.terminate(2) is None:
            result.problems.append("SIGTERM does not end it")
        meter.stop()
        server.close()
        self.judge_get(hostile, result, code, took, patience)
        result.memory = {"before": 0, "peak": meter.peak_memory}
        if meter.peak_memory > hostile.memory:
            result.problems.append(f"{meter.peak_memory >> 20} MB of memory, limit {hostile.memory >> 20} MB")
        result.notes.append(f"{took:.2f} s, exit code {code}")
        shutil.rmtree(directory, ignore_errors=True)
        return result

    def judge_get(self, hostile, result, code, took, patience):
        if code is None:
            result.problems.append(f"--max-time {patience:.0f}s, and still there after {took:.1f} s")
        elif took > patience + bounds.OVERTIME * self.slack:
            result.problems.append(f"--max-time {patience:.0f}s took {took:.1f} s")
        elif hostile.ends_itself and took > patience:
            result.problems.append(f"it waits for --max-time, {took:.1f} s")
        if code == 0:
            result.problems.append("it calls this a success")
        if code is not None and code < 0 or code == 101:
            result.problems.append(f"it dies: {code}")
