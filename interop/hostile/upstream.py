"""Requests that two servers in a row might read differently, through `--upstream`, against an upstream that
records every byte."""

import contextlib
import resource
import time

from . import bounds, quic
from .recorders import Hanging, Upstream, faults
from .scene import attack

# What is smuggled; the upstream must never see it as a request of its own.
SMUGGLED = b"GET /smuggled HTTP/1.1\r\nHost: localhost\r\n\r\n"
# Seconds for the answer to a case.
PATIENCE = 0.7


def post(*fields, target=b"/x", body=b"", host=b"Host: localhost\r\n"):
    head = b"".join(field + b"\r\n" for field in fields)
    return b"POST " + target + b" HTTP/1.1\r\n" + host + head + b"\r\n" + body


CHUNKED = b"Transfer-Encoding: chunked"
NOTHING = b"0\r\n\r\n"
LENGTH = b"Content-Length: %d" % (len(NOTHING) + len(SMUGGLED))

# Two lengths of one message: whoever forwards it must have made one of them.
TWO_LENGTHS = {
    "length and chunked": post(LENGTH, CHUNKED, body=NOTHING + SMUGGLED),
    "chunked and length": post(CHUNKED, LENGTH, body=NOTHING + SMUGGLED),
    "short length and chunked": post(b"Content-Length: 4", CHUNKED, body=b"2d\r\n" + SMUGGLED + b"\r\n" + NOTHING),
    "different lengths": post(b"Content-Length: 0", LENGTH, body=NOTHING + SMUGGLED),
    "list of different lengths": post(b"Content-Length: 0, 50", body=SMUGGLED),
    "signed length": post(b"Content-Length: +5", body=b"hello" + SMUGGLED),
    "negative length": post(b"Content-Length: -1", body=SMUGGLED),
    "hexadecimal length": post(b"Content-Length: 0x5", body=b"hello" + SMUGGLED),
    "length with a point": post(b"Content-Length: 5.0", body=b"hello" + SMUGGLED),
    "empty length": post(b"Content-Length: ", body=SMUGGLED),
    "huge length": post(b"Content-Length: 18446744073709551621", body=b"hello" + SMUGGLED),
    "space before the colon": post(b"Content-Length : 5", body=b"hello" + SMUGGLED),
    "space before chunked's colon": post(b"Transfer-Encoding : chunked", LENGTH, body=NOTHING + SMUGGLED),
    "tab before the value": post(b"Transfer-Encoding:\tchunked", LENGTH, body=NOTHING + SMUGGLED),
    "vertical tab": post(b"Transfer-Encoding: \x0bchunked", LENGTH, body=NOTHING + SMUGGLED),
    "form feed in the name": post(b"Transfer-Encoding\x0c: chunked", LENGTH, body=NOTHING + SMUGGLED),
    "quoted": post(b'Transfer-Encoding: "chunked"', LENGTH, body=NOTHING + SMUGGLED),
    "upper case": post(b"TRANSFER-ENCODING: CHUNKED", LENGTH, body=NOTHING + SMUGGLED),
    "xchunked": post(b"Transfer-Encoding: xchunked", LENGTH, body=NOTHING + SMUGGLED),
    "chunked, identity": post(b"Transfer-Encoding: chunked, identity", LENGTH, body=NOTHING + SMUGGLED),
    "identity, then chunked": post(b"Transfer-Encoding: identity", CHUNKED, LENGTH, body=NOTHING + SMUGGLED),
    "folded": post(b"Transfer-Encoding:\r\n chunked", LENGTH, body=NOTHING + SMUGGLED),
    "underscore": post(b"Transfer_Encoding: chunked", LENGTH, body=NOTHING + SMUGGLED),
    "null in the name": post(b"Transfer-Encoding\x00: chunked", LENGTH, body=NOTHING + SMUGGLED),
    "null in the value": post(b"Transfer-Encoding: chunked\x00", LENGTH, body=NOTHING + SMUGGLED),
    "CR in a value": post(b"X: y\rTransfer-Encoding: chunked", LENGTH, body=NOTHING + SMUGGLED),
    "leading space": post(b" Transfer-Encoding: chunked", LENGTH, body=NOTHING + SMUGGLED),
    "chunked in HTTP/1.0": post(CHUNKED, LENGTH, body=NOTHING + SMUGGLED).replace(b"HTTP/1.1", b"HTTP/1.0", 1),
    "GET with a body": post(LENGTH, body=NOTHING + SMUGGLED).replace(b"POST", b"GET", 1),
}
# Chunks that are no chunks.
CHUNKS = {
    "signed size": post(CHUNKED, body=b"+5\r\nhello\r\n" + NOTHING + SMUGGLED),
    "prefixed size": post(CHUNKED, body=b"0x5\r\nhello\r\n" + NOTHING + SMUGGLED),
    "size too large": post(CHUNKED, body=b"ffffffffffffffff5\r\nhello\r\n" + NOTHING + SMUGGLED),
    "no size": post(CHUNKED, body=b"\r\nhello\r\n" + NOTHING + SMUGGLED),
    "size and more": post(CHUNKED, body=b"5 5\r\nhello\r\n" + NOTHING + SMUGGLED),
    "line feed in an extension": post(CHUNKED, body=b"5;a\nb\r\nhello\r\n" + NOTHING + SMUGGLED),
    "bad end of a chunk": post(CHUNKED, body=b"5\r\nhelloXX0\r\n\r\n" + SMUGGLED),
}
# Heads that a server must refuse (RFC 9112, sections 2.2, 3, 3.2 and 6.1), and does not forward.
REFUSED = {
    "chunked twice": post(b"Transfer-Encoding: chunked, chunked", body=NOTHING),
    "gzip, chunked": post(b"Transfer-Encoding: gzip, chunked", body=NOTHING),
    "no host": post(b"Content-Length: 0", host=b""),
    "two hosts": post(b"Host: other.example", b"Content-Length: 0"),
    "two equal hosts": post(b"Host: localhost", b"Content-Length: 0"),
    "host with a space": post(b"Content-Length: 0", host=b"Host: a b\r\n"),
    "host with credentials": post(b"Content-Length: 0", host=b"Host: user@localhost\r\n"),
    "host with a path": post(b"Content-Length: 0", host=b"Host: localhost/path\r\n"),
    "host with a comma": post(b"Content-Length: 0", host=b"Host: localhost, other\r\n"),
    "host with a null": post(b"Content-Length: 0", host=b"Host: local\x00host\r\n"),
    "empty label": post(b"Content-Length: 0", host=b"Host: .localhost\r\n"),
    "credentials in the target": post(b"Content-Length: 0", target=b"http://user@localhost/x"),
    "null in the target": post(b"Content-Length: 0", target=b"/x\x00y"),
    "space in the target": post(b"Content-Length: 0", target=b"/x y"),
    "no target": b"POST HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n",
    "HTTP/1.2": post(b"Content-Length: 0").replace(b"HTTP/1.1", b"HTTP/1.2x", 1),
    "space in a name": post(b"X Y: z", b"Content-Length: 0"),
    "no colon": post(b"X", b"Content-Length: 0"),
    "empty name": post(b": x", b"Content-Length: 0"),
}
# What a head may have that an upstream believes; it is to be replaced or left out, never passed on.
FORGED = (b"x_forwarded_for", b"\r\nproxy:", b"x-original-url", b"evil.example")


def ask(scene, data):
    """The status of the first answer over HTTP/1.1; 0 if the connection was closed without."""
    connection = scene.h1()
    if connection is None:
        return None
    with contextlib.closing(connection), contextlib.suppress(OSError):
        connection.settimeout(PATIENCE)
        connection.sendall(data)
        answer = b""
        while b"\r\n" not in answer:
            data = connection.recv(65536)
            if not data:
                return 0
            answer += data
        # What follows on the connection has time to be forwarded.
        time.sleep(0.03)
        return int(answer.split()[1])
    return 0


def forwarding(scene):
    scene.shared["upstream"] = scene.provide(Upstream())
    host, port = scene.shared["upstream"].address
    return ["--upstream", f"http://{host}:{port}"]


def check_upstream(scene, name, since):
    """Looks at what went upstream since a case began."""
    for head in scene.shared["upstream"].heads()[since:]:
        for fault in faults(head):
            scene.fail(f"{name}: goes upstream with a bad {fault}")


def answered_by_upstream(scene):
    return len(scene.shared["upstream"].heads())


@attack(configure=forwarding, watched=False, seconds=(1, 1))
def h1_smuggling(scene):
    """Lengths, codings and chunks that servers read differently: what goes upstream has one length and nothing
    of a request within a request"""
    for name, data in {**TWO_LENGTHS, **CHUNKS}.items():
        since = answered_by_upstream(scene)
        ask(scene, data)
        check_upstream(scene, name, since)
        # Content by one of the readings; and after a length beside chunks, or what is no chunk, the connection
        # is not used any more (RFC 9112, section 6.1).
        if any(head.startswith(b"get /smuggled") for head in scene.shared["upstream"].heads()[since:]):
            scene.fail(f"{name}: the smuggled request goes upstream")
    scene.note(f"{len(TWO_LENGTHS) + len(CHUNKS)} cases")


@attack(configure=forwarding, watched=False, seconds=(1, 1))
def h1_requests_to_refuse(scene):
    """Requests without a host, with two, or with one that is none, and other heads that RFC 9112 wants refused"""
    for name, data in REFUSED.items():
        since = answered_by_upstream(scene)
        status = ask(scene, data)
        if status is None:
            scene.fail(f"{name}: no connection")
        elif status != 0 and not 400 <= status < 600:
            scene.fail(f"{name}: {status}")
        if answered_by_upstream(scene) > since:
            scene.fail(f"{name}: goes upstream")
    scene.note(f"{len(REFUSED)} cases")


H3_FIELDS = {
    "list of equal lengths": [(b"content-length", b"5, 5")],
    "two equal lengths": [(b"content-length", b"5"), (b"content-length", b"5")],
    "length with a zero": [(b"content-length", b"05")],
    "different lengths": [(b"content-length", b"5"), (b"content-length", b"6")],
    "chunked": [(b"transfer-encoding", b"chunked")],
    "connection": [(b"connection", b"close")],
    "line break in a value": [(b"x", b"y\r\nz: w")],
    "null in a value": [(b"x", b"y\x00z")],
    "colon in a name": [(b"x:y", b"z")],
    "upper case": [(b"X-Upper", b"z")],
    "another host": [(b"host", b"evil.example")],
}


@attack(configure=forwarding, watched=False, seconds=(1, 1))
def h3_smuggling(scene):
    """The same over HTTP/3: fields that mean something in HTTP/1.1 only, or that no field may be"""
    for name, extra in H3_FIELDS.items():
        since = answered_by_upstream(scene)
        client = scene.quic()
        if client is None:
            scene.fail(f"{name}: no connection")
            continue
        with contextlib.suppress(ValueError, AssertionError):
            send_h3(client, extra)
        check_upstream(scene, name, since)
        forwarded = scene.shared["upstream"].heads()[since:]
        if any(b"evil.example" in head for head in forwarded):
            scene.fail(f"{name}: goes upstream")
        client.vanish()
    scene.note(f"{len(H3_FIELDS)} cases")


def send_h3(client, extra):
    """A POST with five bytes and these fields, as they are."""
    encoder_fields = [
        (b":method", b"POST"),
        (b":scheme", b"https"),
        (b":authority", b"localhost"),
        (b":path", b"/x"),
        *extra,
    ]
    # Literals without references (RFC 9204, section 4.5.6).
    section = b"\x00\x00"
    for name, value in encoder_fields:
        section += prefixed(0x20, 3, len(name)) + name + prefixed(0x00, 7, len(value)) + value
    message = b"\x01" + quic.varint(len(section)) + section + b"\x00\x05hello"
    client.quic.send_stream_data(client.quic.get_next_available_stream_id(), message, end_stream=True)
    client.flush()
    client.run(lambda: any(getattr(e, "stream_id", 3) % 4 == 0 for e in client.events), PATIENCE)


def prefixed(flags, bits, number):
    """An integer with a prefix (RFC 7541, section 5.1)."""
    limit = (1 << bits) - 1
    if number < limit:
        return bytes([flags | number])
    out, number = bytearray([flags | limit]), number - limit
    while number >= 128:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes(out) + bytes([number])


@attack(configure=forwarding, watched=False, seconds=(1, 1))
def forged_fields(scene):
    """Fields that an upstream would believe: who the client is, which proxy to use, which path was meant"""
    fields = [
        b"Proxy: http://evil.example",
        b"x_forwarded_for: 192.0.2.1",
        b"X-Original-URL: /admin",
        b"X-Forwarded-Host: evil.example",
        b"X-Forwarded-Proto: evil.example",
        b"Forwarded: for=evil.example",
        b"Content-Length: 0",
    ]
    ask(scene, post(*fields))
    heads = b"".join(scene.shared["upstream"].heads())
    if not heads:
        scene.fail("nothing goes upstream")
    for name in FORGED:
        if name in heads:
            scene.fail(f"{name.decode().strip()} goes upstream")


def hanging(scene):
    # The server has a descriptor for each request, and so has this process.
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    scene.shared["upstream"] = scene.provide(Hanging())
    host, port = scene.shared["upstream"].address
    return ["--upstream", f"http://{host}:{port}"]


@attack(configure=hanging, memory=bounds.MEMORY_OF_SLOW_READERS, seconds=(3, 20))
def requests_that_hang_upstream(scene):
    """Four thousand requests from one address that the upstream never answers; it answers others"""
    end = scene.until()
    for _ in range(45):
        connection = scene.h2()
        if connection is None or time.monotonic() > end + 10:
            break
        with contextlib.suppress(OSError):
            for _ in range(99):
                connection.get(b"/hangs")
    scene.sleep_until(end)
    scene.note(f"{scene.shared['upstream'].waiting} wait")
