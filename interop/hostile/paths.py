"""What is hidden, or guarded by a route, stays so however a path is written, over every protocol."""

import http.server
import threading
import time
from contextlib import closing, suppress

from . import h2
from .scene import attack

# Content that must never be served from the directory.
SECRET = b"this is secret"
HIDDEN = ["/.env", "/.git/config", "/a/../.env", "/%2eenv", "/./.env", "//.env", "/.git%2fconfig"]
GUARDED = [
    "//admin/secret.txt",
    "/%61dmin/secret.txt",
    "/./admin/secret.txt",
    "/x/../admin/secret.txt",
    "/x/%2e%2e/admin/secret.txt",
    "/x/..%2fadmin/secret.txt",
    "/x/..%5cadmin/secret.txt",
    "/x/..;/admin/secret.txt",
    "/admin%2fsecret.txt",
    "/admin//secret.txt",
    "/admin/./secret.txt",
    "/admin;x/secret.txt",
    "/ADMIN/../admin/secret.txt",
    "\\admin\\secret.txt",
]


def prepare(site):
    (site / ".git").mkdir()
    (site / "admin").mkdir()
    for name in (".env", ".git/config", "admin/secret.txt"):
        (site / name).write_bytes(SECRET + b"\n")


def get_h1(scene, path):
    """All that comes for a GET over HTTP/1.1, the path as it is."""
    connection = scene.h1()
    if connection is None:
        return b""
    with closing(connection), suppress(OSError):
        connection.settimeout(2)
        connection.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
        answer = b""
        while data := connection.recv(65536):
            answer += data
        return answer
    return b""


def get_h2(scene, path):
    connection = scene.h2()
    if connection is None:
        return b""
    with closing(connection), suppress(OSError):
        stream, answer = connection.get(path.encode()), b""
        for kind, flags, of, payload in connection.frames(time.monotonic() + 2):
            if of == stream:
                answer += payload if kind == h2.DATA else b""
                if flags & h2.END_STREAM or kind == h2.RST_STREAM:
                    break
        return answer
    return b""


def get_h3(scene, path):
    client = scene.quic()
    answer = client and client.get(path.encode(), 2)
    return answer[1] if answer else b""


def get_hq(scene, path):
    client = scene.quic(alpn="hq-interop")
    return (client and client.get_hq(path.encode(), 2)) or b""


GET = {"h1": get_h1, "h2": get_h2, "h3": get_h3, "hq": get_hq}


def try_all(scene, paths):
    tried = 0
    for protocol, get in GET.items():
        for path in paths:
            tried += 1
            if SECRET in get(scene, path):
                scene.fail(f"{protocol} {path} is served from the directory")
    scene.note(f"{tried} tried")


@attack(prepare=prepare)
def hidden_names(scene):
    """Names that begin with a dot, in every writing, over HTTP/1.1, 2, 3 and hq-interop"""
    try_all(scene, HIDDEN)


# Below a route towards an upstream; docs/serve.md promises 400 for what might mean another route.
AMBIGUOUS = ["/api/..%2fadmin", "/api/..%5cadmin", "/api/..;/admin", "/api/%2e%2e%2fadmin"]


def swap(place, outside, over):
    """Makes a file a link out of the directory and back again, as a process with write access could."""
    link, plain = place.with_name("link"), place.with_name("plain")
    while not over.is_set():
        link.symlink_to(outside)
        link.rename(place)
        plain.write_bytes(b"nothing secret")
        plain.rename(place)


@attack(seconds=(2, 30))
def file_that_becomes_a_link(scene):
    """A file that somebody with access to the directory replaces by a link out of it, and back, again and again,
    while it is asked for"""
    outside, place = scene.directory / "outside.txt", scene.site / "swapped.txt"
    outside.write_bytes(SECRET)
    place.write_bytes(b"nothing secret")
    over = threading.Event()
    writer = threading.Thread(target=swap, args=(place, outside, over), daemon=True)
    writer.start()
    end, asked = scene.until(), 0
    connection = scene.h1()
    connection.settimeout(2)
    received = b""
    with suppress(OSError):
        while time.monotonic() < end and SECRET not in received:
            connection.sendall(b"GET /swapped.txt HTTP/1.1\r\nHost: localhost\r\n\r\n" * 16)
            asked += 16
            data = connection.recv(1 << 20)
            if not data:
                break
            received = received[-64:] + data
    over.set()
    writer.join()
    scene.note(f"{asked} asked")
    if SECRET in received:
        scene.fail(f"what is outside the directory is served, after at most {asked} requests")


class Guard(http.server.BaseHTTPRequestHandler):
    """The upstream of the guarded route: it asks for credentials."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.server.seen.append(self.path)
        self.send_response(401)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


def guarded_site(scene):
    upstream = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Guard)
    upstream.seen = []
    threading.Thread(target=upstream.serve_forever, daemon=True).start()
    scene.shared["upstream"] = upstream
    config = scene.directory / "serve.toml"
    config.write_text(
        f"""
[[site]]
[[site.route]]
path = "/admin"
upstream = "http://127.0.0.1:{upstream.server_address[1]}"
[[site.route]]
path = "/api"
upstream = "http://127.0.0.1:{upstream.server_address[1]}"
[[site.route]]
path = "/"
directory = "{scene.site}"
"""
    )
    return ["--config", str(config)]


@attack(prepare=prepare, configure=guarded_site)
def routes_passed_by(scene):
    """A directory whose part `/admin` is an upstream's, which wants credentials: no writing of the path gets the
    file below the directory, and none below another route means this one to its upstream"""
    try_all(scene, ["/admin/secret.txt", *GUARDED])
    upstream = scene.shared["upstream"]
    for path in AMBIGUOUS:
        upstream.seen.clear()
        get_h2(scene, path)
        if upstream.seen:
            scene.fail(f"{path} goes upstream as {upstream.seen[0]}")
    upstream.shutdown()
