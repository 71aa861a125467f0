"""Attacks on what all clients of a server share: descriptors, the processor, the standard output."""

import contextlib
import socket
import threading
import time

from . import bounds, h2
from .scene import BIG, attack

# A limit that many systems had; the usual one of today makes an attack longer, not different.
FEW_DESCRIPTORS = 256


@attack(nofile=FEW_DESCRIPTORS, memory=bounds.MEMORY_OF_SLOW_READERS, seconds=(2.5, 20))
def descriptors_by_held_responses(scene):
    """More large files asked for than the process may open, and none of them taken"""
    for _ in range(8):
        connection = scene.h2(initial_window=0)
        if connection is None:
            break
        with contextlib.suppress(OSError):
            for _ in range(99):
                connection.get(BIG.encode())
    scene.sleep_until(scene.until())


@attack(nofile=FEW_DESCRIPTORS, seconds=(2.5, 20))
def descriptors_by_idle_connections(scene):
    """More TCP connections than the process may have descriptors, all of which say nothing"""
    for _ in range(FEW_DESCRIPTORS + 100):
        with contextlib.suppress(OSError):
            connection = socket.socket()
            connection.bind(("127.0.0.1", 0))
            connection.settimeout(0.2)
            connection.connect(scene.address)
            scene.keep(connection)
    scene.sleep_until(scene.until())


def many_entries(site):
    directory = site / "many"
    directory.mkdir()
    for nth in range(6000):
        (directory / f"a-file-with-a-long-name-{nth:05}.txt").touch()


@attack(["--listing"], prepare=many_entries, memory=bounds.MEMORY_OF_LISTINGS, seconds=(3, 20), alone=True)
def listings(scene):
    """Listings of a directory of 6000 entries, a hundred at once on several connections, all taken"""
    end, count, lock = scene.until(), 0, threading.Lock()

    def ask():
        nonlocal count
        connection = scene.h2(initial_window=(1 << 31) - 1)
        if connection is None:
            return
        with contextlib.suppress(OSError):
            connection.send(h2.frame(h2.WINDOW_UPDATE, payload=(0x7FFF0000 - 65535).to_bytes(4, "big")))
            for _ in range(80):
                connection.get(b"/many/")
            for _, flags, stream, _ in connection.frames(end):
                if stream and flags & h2.END_STREAM:
                    with lock:
                        count += 1
                    connection.get(b"/many/")

    threads = [threading.Thread(target=ask, daemon=True) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    scene.note(f"{count} listings")


def long_text(site):
    line = b"the quick brown fox jumps over the lazy dog, and over again: %d\n"
    block = b"".join(line % (nth * 7919) for nth in range(20_000))
    with open(site / "long.txt", "wb") as text:
        for _ in range(60):
            text.write(block)


@attack(prepare=long_text, seconds=(3, 20), alone=True)
def compression(scene):
    """A long text compressed for each of twenty requests on one connection, whose content is taken"""
    connection = scene.h2(initial_window=(1 << 31) - 1)
    connection.send(h2.frame(h2.WINDOW_UPDATE, payload=(0x7FFF0000 - 65535).to_bytes(4, "big")))
    for _ in range(20):
        connection.get(b"/long.txt", extra=[(b"accept-encoding", b"br")])
    size = 0
    with contextlib.suppress(OSError):
        for kind, _, _, payload in connection.frames(scene.until()):
            size += len(payload) if kind == h2.DATA else 0
    scene.note(f"{size >> 10} KiB taken")


@attack(blocked_output=True, seconds=(3, 10))
def blocked_output(scene):
    """Standard output is a pipe without a reader, as under a pager or a collector that hangs"""
    path = b"/" + b"x" * 1000
    connection, count, end = scene.h2(), 0, scene.until()
    with contextlib.suppress(OSError):
        while time.monotonic() < end:
            for _ in range(40):
                connection.get(path)
                count += 1
            connection.skim()
            time.sleep(0.05)
    scene.note(f"{count} lines")
