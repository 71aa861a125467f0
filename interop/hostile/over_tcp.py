"""Attacks over TCP: HTTP/2 and HTTP/1.1."""

import contextlib
import socket
import time

from . import bounds, h2
from .process import descriptors
from .scene import BIG, attack

# Files that may be open beside those of the start, after all that held them should have been given up.
LEFT_OPEN = 30


def hold(scene, connections, streams, initial_window, evade=False, patience=None):
    """Asks for many large files and takes none; with `evade` each connection does something small meanwhile.
    After `patience` seconds nothing of it may be left."""
    before = descriptors(scene.server.pid)
    held = []
    for _ in range(connections):
        connection = scene.h2(initial_window=initial_window)
        if connection is None:
            break
        for _ in range(streams):
            connection.get(BIG.encode())
        held.append(connection)
    end = scene.until()
    while time.monotonic() < end:
        if evade:
            for connection in held:
                with contextlib.suppress(OSError):
                    # Without content it is complete although there is no window.
                    connection.get(b"/small.txt", method=b"HEAD")
                    connection.skim()
        time.sleep(0.3)
    left = descriptors(scene.server.pid) - before
    scene.note(f"{len(held)} connections, {left} descriptors left")
    if patience and left > LEFT_OPEN:
        scene.fail(f"{left} descriptors are still held after {scene.seconds:.0f} s, timeout {patience} s")


@attack(["--send-timeout", "2s"], memory=bounds.MEMORY_OF_SLOW_READERS, seconds=(5, 40))
def h2_without_window(scene):
    """A hundred downloads on each of many connections of HTTP/2 with a window of nothing"""
    hold(scene, 6, 99, 0, patience=2)


@attack(["--send-timeout", "2s"], memory=bounds.MEMORY_OF_SLOW_READERS, seconds=(5, 40))
def h2_without_window_and_small_requests(scene):
    """The same, and a small request on each connection several times a second: progress of one response is none
    of the others"""
    hold(scene, 4, 95, 0, evade=True, patience=2)


@attack(["--send-timeout", "2s"], memory=bounds.MEMORY_OF_SLOW_READERS, seconds=(5, 40))
def h2_nothing_read(scene):
    """Downloads over HTTP/2 with large windows, of which nothing is read from the socket"""
    hold(scene, 10, 99, (1 << 31) - 1, patience=2)


@attack(["--send-timeout", "2s"], memory=bounds.MEMORY_OF_SLOW_READERS, seconds=(5, 40))
def h1_stalled(scene):
    """Downloads over HTTP/1.1 of which nothing is read"""
    before = descriptors(scene.server.pid)
    for _ in range(40):
        connection = scene.h1(receive_buffer=4096)
        if connection:
            connection.sendall(f"GET {BIG} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    scene.sleep_until(scene.until())
    left = descriptors(scene.server.pid) - before
    if left > LEFT_OPEN:
        scene.fail(f"{left} descriptors are still held after {scene.seconds:.0f} s, timeout 2 s")


@attack()
def h2_rapid_reset(scene):
    """Requests over HTTP/2 that are cancelled at once (CVE-2023-44487)"""
    end, count, connections = scene.until(), 0, 0
    while time.monotonic() < end:
        connection = scene.h2()
        if connection is None:
            break
        connections += 1
        with contextlib.suppress(OSError):
            while time.monotonic() < end:
                for _ in range(50):
                    stream = connection.get(b"/small.txt")
                    connection.send(h2.frame(h2.RST_STREAM, stream=stream, payload=b"\0\0\0\x08"))
                    count += 1
                if not connection.skim():
                    break
        connection.close()
    scene.note(f"{count} requests on {connections} connections")


def flood(scene, frames):
    """Sends frames until the time is over, on a new connection when one is closed."""
    end, sent, connections = scene.until(), 0, 0
    while time.monotonic() < end:
        connection = scene.h2()
        if connection is None:
            break
        connections += 1
        connection.socket.settimeout(1)
        with contextlib.suppress(OSError):
            while time.monotonic() < end:
                data = frames(connection)
                connection.send(data)
                sent += len(data)
                if not connection.skim():
                    break
                connection.socket.settimeout(1)
        connection.close()
    scene.note(f"{sent >> 20} MB on {connections} connections")


@attack(seconds=(1, 10))
def h2_pings(scene):
    """PING frames"""
    flood(scene, lambda _: h2.frame(h2.PING, payload=bytes(8)) * 500)


@attack(seconds=(1, 10))
def h2_settings(scene):
    """SETTINGS frames"""
    flood(scene, lambda _: h2.settings(initial_window=65535) * 500)


@attack(seconds=(1, 10))
def h2_window_updates(scene):
    """WINDOW_UPDATE frames"""
    flood(scene, lambda _: h2.frame(h2.WINDOW_UPDATE, payload=b"\0\0\0\1") * 500)


@attack(seconds=(1, 10))
def h2_continuations(scene):
    """A request's head that never ends, in CONTINUATION frames"""

    def frames(connection):
        begin = b""
        if connection.stream == 1:
            connection.stream = 3
            begin = h2.frame(h2.HEADERS, h2.END_STREAM, 1, h2.section([(b":method", b"GET")]))
        return begin + h2.frame(h2.CONTINUATION, 0, 1, h2.section([(b"x", b"y" * 100)])) * 100

    flood(scene, frames)


@attack(seconds=(1, 10))
def h2_empty_data(scene):
    """DATA frames without content, on a request that goes on"""

    def frames(connection):
        if connection.stream == 1:
            connection.get(b"/small.txt", method=b"POST", end=False)
        return h2.frame(h2.DATA, 0, 1) * 500

    flood(scene, frames)


@attack(["--header-timeout", "2s", "--idle-timeout", "2s", "--handshake-timeout", "2s"], seconds=(6, 30))
def slow_heads(scene):
    """Connections of HTTP/1.1 whose head comes a byte at a time, and others that never begin TLS: all are gone
    after the timeouts"""
    before = descriptors(scene.server.pid)
    dripping = [each for each in (scene.h1() for _ in range(40)) if each]
    for _ in range(100):
        scene.keep(socket.create_connection(scene.address, 1))
    end, nth, head = scene.until(), 0, b"GET /small.txt HTTP/1.1\r\nX: " + b"x" * 4000
    while time.monotonic() < end:
        for connection in dripping:
            with contextlib.suppress(OSError):
                connection.sendall(head[nth : nth + 1])
        nth += 1
        time.sleep(0.2)
    left = descriptors(scene.server.pid) - before
    scene.note(f"{left} left of 140")
    if left > LEFT_OPEN:
        scene.fail(f"{left} connections are still open")


@attack(["--max-connections", "20"], seconds=(3, 30))
def idle_tcp_connections_hold_all_places(scene):
    """As many connections of HTTP/2 as the server takes, from one address, each with a PING twice a second"""
    held = [each for each in (scene.h2(timeout=1) for _ in range(24)) if each]
    end = scene.until()
    while time.monotonic() < end:
        for connection in held:
            with contextlib.suppress(OSError):
                connection.send(h2.frame(h2.PING, payload=bytes(8)))
                connection.skim()
        time.sleep(0.5)
    scene.note(f"{len(held)} connections")
