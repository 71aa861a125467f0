#!/usr/bin/env python3
"""QPACK against ls-qpack, both ways: our decoder reads what ls-qpack encodes, and the reverse.

README: `pip install pylsqpack`, `cargo build -p swiftwater-http --example qpack_pipe`, then
`python3 interop/qpack_check.py [--rounds N] [--seed N] [--binary PATH]`. Exit code 1 with the first
difference. Each round has random field lists with much repetition, a random table capacity and number of
blocked streams; the encoder stream, the sections and the decoder stream are delayed and overtake each
other, and some streams are cancelled.
"""

import argparse
import random
import struct
import subprocess
import sys
from collections import deque
from pathlib import Path

import pylsqpack

ROOT = Path(__file__).resolve().parent.parent
NAMES = [
    b":path", b":status", b"user-agent", b"cache-control", b"cookie", b"etag", b"x-own", b"x-other",
    b"x-frame-options", b"a", b"content-type", b"x-" + b"long" * 20,
]


class Pipe:
    """Our example, one message at a time."""

    def __init__(self, binary, capacity, blocked):
        self.process = subprocess.Popen(
            [binary, str(capacity), str(blocked)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def ask(self, kind, stream=0, data=b""):
        self.process.stdin.write(kind + struct.pack("<II", stream, len(data)) + data)
        self.process.stdin.flush()
        answers = []
        while True:
            head = self.process.stdout.read(9)
            if len(head) < 9:
                raise AssertionError("the example ended")
            kind, (stream, size) = head[:1], struct.unpack("<II", head[1:])
            data = self.process.stdout.read(size)
            if kind == b".":
                return answers
            if kind == b"X":
                raise AssertionError(f"stream {stream}: {data.decode()}")
            answers.append((kind, stream, data))

    def close(self):
        self.process.stdin.close()
        if self.process.wait() != 0:
            raise AssertionError("the example failed")


def to_lines(fields, rng):
    flag = lambda: "1" if rng.random() < 0.1 else "0"
    return "".join(f"{n.hex()} {v.hex()} {flag()}\n" for n, v in fields).encode()


def from_lines(data):
    rows = (line.split(" ") for line in data.decode().splitlines())
    return [(bytes.fromhex(n), bytes.fromhex(v)) for n, v, _ in rows]


class Fields:
    """Random lists, of which much comes again."""

    def __init__(self, rng):
        self.rng = rng
        self.pool = [self.fresh() for _ in range(rng.randrange(1, 40))]

    def fresh(self):
        rng = self.rng
        text = bytes(rng.choice(b"abcdefghijklmnopqrstuvwxyz0123456789-=;/ ") for _ in range(rng.randrange(40)))
        value = rng.choice([b"", b"/", b"200", b"no-store", text, text, rng.randbytes(rng.randrange(30))])
        return rng.choice(NAMES), value

    def list(self):
        rng = self.rng
        # ls-qpack refuses to decode an empty section, which RFC 9204, section 4.5, allows.
        size = rng.randrange(1, 12)
        return [rng.choice(self.pool) if rng.random() < 0.8 else self.fresh() for _ in range(size)]


def pieces(rng, data):
    """Some first part of a stream's bytes and the rest."""
    cut = rng.randrange(len(data) + 1)
    return bytes(data[:cut]), data[cut:]


def theirs_to_ours(binary, rng, capacity, blocked, sections):
    encoder, pipe, fields = pylsqpack.Encoder(), Pipe(binary, capacity, blocked), Fields(rng)
    instructions = bytearray(encoder.apply_settings(capacity, blocked))
    feedback, waiting, expected, seen = bytearray(), deque(), {}, {"blocked": 0, "cancelled": 0}

    def take(answers):
        for kind, stream, data in answers:
            if kind == b"F":
                assert from_lines(data) == expected.pop(stream), f"stream {stream} differs"
            elif kind == b"B":
                seen["blocked"] += 1
            elif kind == b"D":
                feedback.extend(data)

    for number in range(sections):
        stream, lines = 4 * number, fields.list()
        control, block = encoder.encode(stream, lines)
        instructions += control
        expected[stream] = lines
        waiting.append((stream, block))
        while rng.random() < 0.6:
            action = rng.randrange(4)
            if action == 0:
                now, instructions = pieces(rng, instructions)
                take(pipe.ask(b"e", data=now))
            elif action == 1 and waiting:
                waiting.rotate(rng.randrange(len(waiting)))
                stream, block = waiting.popleft()
                if rng.random() < 0.05:
                    del expected[stream]
                    seen["cancelled"] += 1
                    take(pipe.ask(b"c", stream))
                else:
                    take(pipe.ask(b"s", stream, block))
            elif action == 2 and feedback:
                now, feedback = pieces(rng, feedback)
                encoder.feed_decoder(now)
    take(pipe.ask(b"e", data=bytes(instructions)))
    for stream, block in waiting:
        take(pipe.ask(b"s", stream, block))
    assert not expected, "sections stayed blocked"
    encoder.feed_decoder(bytes(feedback))
    pipe.close()
    return seen


def ours_to_theirs(binary, rng, capacity, blocked, sections):
    decoder, pipe, fields = pylsqpack.Decoder(capacity, blocked), Pipe(binary, capacity, blocked), Fields(rng)
    instructions, feedback = bytearray(), bytearray()
    waiting, expected, seen = deque(), {}, {"blocked": 0, "cancelled": 0, "dynamic": 0}

    def check(stream, result):
        control, lines = result
        feedback.extend(control)
        assert lines == expected.pop(stream), f"stream {stream} differs"

    def feed(data):
        for stream in decoder.feed_encoder(data):
            check(stream, decoder.resume_header(stream))

    def section(stream, block):
        try:
            check(stream, decoder.feed_header(stream, block))
        except pylsqpack.StreamBlocked:
            seen["blocked"] += 1

    for number in range(sections):
        stream, lines = 4 * number, fields.list()
        for kind, _, data in pipe.ask(b"f", stream, to_lines(lines, rng)):
            if kind == b"E":
                instructions += data
            elif kind == b"S":
                seen["dynamic"] += data[0] != 0
                waiting.append((stream, data))
        expected[stream] = lines
        while rng.random() < 0.6:
            action = rng.randrange(4)
            if action == 0:
                now, instructions = pieces(rng, instructions)
                feed(now)
            elif action == 1 and waiting:
                waiting.rotate(rng.randrange(len(waiting)))
                stream, block = waiting.popleft()
                if rng.random() < 0.05:
                    del expected[stream]
                    seen["cancelled"] += 1
                    feedback.extend(decoder.cancel_stream(stream))
                else:
                    section(stream, block)
            elif action == 2:
                now, feedback = pieces(rng, feedback)
                pipe.ask(b"d", data=now)
    feed(bytes(instructions))
    for stream, block in waiting:
        section(stream, block)
    assert not expected, "sections stayed blocked"
    pipe.ask(b"d", data=bytes(feedback))
    pipe.close()
    return seen


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--binary", default=ROOT / "target/debug/examples/qpack_pipe")
    arguments = parser.parse_args()
    for direction in (theirs_to_ours, ours_to_theirs):
        totals = {}
        for number in range(arguments.rounds):
            rng = random.Random(f"{arguments.seed} {number}")
            capacity = rng.choice([0, 100, 256, 512, 1024, 4096, 65536])
            blocked = rng.choice([0, 1, 3, 100])
            try:
                seen = direction(arguments.binary, rng, capacity, blocked, 200)
            except Exception as error:
                name = direction.__name__
                print(f"{name}: round {number}, capacity {capacity}, blocked {blocked}: {error!r}")
                return 1
            totals = {key: totals.get(key, 0) + value for key, value in seen.items()}
        print(f"{direction.__name__}: {arguments.rounds} rounds of 200 sections, {totals}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
