"""Upstreams that attacks go through: one that records every byte, and one that answers hardly anything."""

import contextlib
import re
import selectors
import socket
import threading

from .scene import SMALL


class Upstream:
    """An upstream that answers everything with 200 and records what it got, a list for each connection."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=256)
        self.address = self.listener.getsockname()
        self.connections = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self.listener.accept()
                received = bytearray()
                self.connections.append(received)
                threading.Thread(target=self._serve, args=(connection, received), daemon=True).start()

    def _serve(self, connection, received):
        at = 0
        with connection, contextlib.suppress(OSError):
            while data := connection.recv(65536):
                received += data
                while (message := self.message(received, at)) is not None:
                    at = message[1]
                    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nyes")

    @staticmethod
    def message(received, at):
        """Where the message at `at` has its content and its end, read as RFC 9112 says; None if it is not whole."""
        head = received.find(b"\r\n\r\n", at)
        if head < 0:
            return None
        fields = bytes(received[at:head]).lower()
        begin = end = head + 4
        if re.search(rb"\r\ntransfer-encoding:[^\r]*chunked", fields):
            while True:
                line = received.find(b"\r\n", end)
                if line < 0:
                    return None
                size = int(bytes(received[end:line]).split(b";")[0] or b"0", 16)
                end = line + 2 + size + 2
                if end > len(received):
                    return None
                if size == 0:
                    return begin, end
        length = re.search(rb"\r\ncontent-length:\s*(\d+)", fields)
        end += int(length[1]) if length else 0
        return (begin, end) if end <= len(received) else None

    def heads(self):
        """The heads of all messages, in lower case."""
        found = []
        for received in list(self.connections):
            at = 0
            while (message := self.message(received, at)) is not None:
                found.append(bytes(received[at : message[0]]).lower())
                at = message[1]
            rest = bytes(received[at:])
            if rest:
                found.append(rest.lower())
        return found

    def count(self):
        return sum(len(received) for received in self.connections)

    def close(self):
        self.listener.close()


class Hanging:
    """An upstream that answers what is asked for with the honest client's path, and nothing else, ever."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=4096)
        self.listener.setblocking(False)
        self.address = self.listener.getsockname()
        self.selector = selectors.DefaultSelector()
        self.selector.register(self.listener, selectors.EVENT_READ)
        self.waiting = 0
        self.over = False
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self):
        while not self.over:
            for key, _ in self.selector.select(0.2):
                with contextlib.suppress(BlockingIOError):
                    self._serve(key.fileobj)

    def _serve(self, source):
        if source is self.listener:
            with contextlib.suppress(OSError):
                connection, _ = self.listener.accept()
                connection.setblocking(False)
                self.selector.register(connection, selectors.EVENT_READ)
            return
        data = b""
        with contextlib.suppress(ConnectionError):
            data = source.recv(65536)
        if not data:
            self.selector.unregister(source)
            source.close()
        elif SMALL.encode() in data:
            source.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nyes")
        else:
            self.waiting += 1

    def close(self):
        self.over = True
        self._thread.join(2)
        self.listener.close()


def faults(head):
    """What is wrong with a head as an upstream got it."""
    lines = head.split(b"\r\n\r\n")[0].split(b"\r\n")
    wrong = []
    if not re.fullmatch(rb"[!#$%&'*+.^_`|~0-9a-z-]+ [!-~]+ http/1\.[01]", lines[0]):
        wrong.append("request line")
    names = [line.split(b":")[0] for line in lines[1:]]
    if any(not re.fullmatch(rb"[!#$%&'*+.^_`|~0-9a-z-]+", name) for name in names):
        wrong.append("field name")
    if any(re.search(rb"[\x00\r\n]", line) for line in lines[1:]):
        wrong.append("field value")
    if names.count(b"host") != 1:
        wrong.append("host fields")
    if b"content-length" in names and b"transfer-encoding" in names:
        wrong.append("two lengths")
    if names.count(b"content-length") > 1 or names.count(b"transfer-encoding") > 1:
        wrong.append("repeated length")
    for line in lines[1:]:
        if line.startswith(b"content-length:") and not re.fullmatch(rb"content-length: ?\d+", line):
            wrong.append("length")
        if line.startswith(b"transfer-encoding:") and not re.fullmatch(rb"transfer-encoding: ?chunked", line):
            wrong.append("coding")
    return wrong
