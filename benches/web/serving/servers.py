"""The servers: how each is found, configured and started. One worker each, access log off."""

import os
import re
import resource
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from .jobs import H1, H2, H3, PLAIN

REPOSITORY = Path(__file__).resolve().parent.parent.parent.parent
OURS = "swiftwater"
CADDY_MODULE = "github.com/caddyserver/caddy/v2/cmd/caddy@v2.11.9"


class Missing(Exception):
    """A program can't be found or built; the text says why."""


@dataclass(frozen=True)
class Place:
    """Where a server works."""

    # For what it writes itself, and with the certificate (`cert.pem`, `key.pem`).
    folder: Path
    identity: Path
    root: Path
    # Ports of 127.0.0.1 with and without TLS.
    port: int
    plain_port: int
    # Of the upstream; `None` where files are served.
    upstream: int | None


@dataclass(frozen=True)
class Server:
    """A program that serves."""

    name: str
    path: Path
    version: str
    protocols: frozenset
    # Makes the command from program and place, and may write a configuration.
    command: object = field(compare=False)
    environment: dict = field(default_factory=dict, compare=False)

    def does(self, job):
        return job.protocol in self.protocols


def build_dir():
    """Cargo's target folder of the repository."""
    return Path(os.environ.get("CARGO_TARGET_DIR", REPOSITORY / "target"))


def open_files():
    """How many files a process may have open."""
    return resource.getrlimit(resource.RLIMIT_NOFILE)[1]


def text_of(*command):
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    return (ended.stdout + ended.stderr).strip()


def swiftwater(path, name=OURS):
    """Ours, the command line program."""
    return Server(name, path, text_of(path, "--version"), frozenset({H1, H2, H3}), swiftwater_command)


def swiftwater_command(program, place):
    content = [place.root] if place.upstream is None else ["--upstream", f"http://127.0.0.1:{place.upstream}"]
    if place.upstream is None and "--file-cache-time" in text_of(program, "serve", "--help"):
        # As nginx's: it holds all files, and validates them after ten minutes.
        content += ["--file-cache", str(512 << 20), "--file-cache-time", "600s"]
    return [
        program, "serve", *content, "--listen", f"127.0.0.1:{place.port}", "--workers", "1",
        "--cert", place.identity / "cert.pem", "--key", place.identity / "key.pem", "--min-tls", "1.3",
        "--state-dir", place.folder, "--no-compression", "--access-log", "off",
    ]


NGINX = """
daemon off;
worker_processes 1;
worker_rlimit_nofile {open_files};
{user}
pid {folder}/nginx.pid;
error_log stderr crit;
events {{ worker_connections 4096; }}
http {{
    include {mime_types};
    access_log off;
    sendfile on;
    tcp_nopush on;
    tcp_nodelay on;
    keepalive_timeout 300s;
    keepalive_requests 1000000000;
    open_file_cache max=30000 inactive=600s;
    open_file_cache_valid 600s;
    open_file_cache_min_uses 1;
    ssl_certificate {identity}/cert.pem;
    ssl_certificate_key {identity}/key.pem;
    ssl_protocols TLSv1.3;
    ssl_session_tickets off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    {upstream}
    server {{
        listen 127.0.0.1:{port} ssl http2;
        listen 127.0.0.1:{plain_port};
        server_name localhost;
        {content}
    }}
}}
"""
NGINX_UPSTREAM = """upstream behind {{
        server 127.0.0.1:{upstream};
        keepalive 64;
        keepalive_requests 1000000000;
    }}"""
NGINX_PROXY = """location / {
            proxy_pass http://behind;
            proxy_http_version 1.1;
            proxy_set_header Connection "";
        }"""


def nginx(path):
    version = re.sub(r".*/", "", text_of(path, "-v"))
    return Server("nginx", path, version, frozenset({H1, PLAIN, H2}), nginx_command)


def nginx_command(program, place):
    if place.upstream is None:
        content, upstream = f"root {place.root};", ""
    else:
        content, upstream = NGINX_PROXY, NGINX_UPSTREAM.format(upstream=place.upstream)
    config = place.folder / "nginx.conf"
    config.write_text(NGINX.format(
        open_files=open_files(),
        # Workers of root are nobody's otherwise, who can't read the files.
        user="user root;" if os.geteuid() == 0 else "",
        mime_types="/etc/nginx/mime.types", folder=place.folder, identity=place.identity, upstream=upstream,
        port=place.port, plain_port=place.plain_port, content=content,
    ))
    return [program, "-p", place.folder, "-c", config, "-e", "stderr"]


CADDY = """
{{
    admin off
    auto_https off
    persist_config off
    grace_period 1s
}}
https://localhost:{port} {{
    bind 127.0.0.1
    tls {identity}/cert.pem {identity}/key.pem {{
        protocols tls1.3
    }}
    {content}
}}
http://localhost:{plain_port} {{
    bind 127.0.0.1
    {content}
}}
"""


def caddy(path):
    version = text_of(path, "version").split(" ")[0]
    protocols = frozenset({H1, PLAIN, H2, H3})
    return Server("caddy", path, version, protocols, caddy_command, {"GOMAXPROCS": "1"})


def caddy_command(program, place):
    if place.upstream is None:
        content = f"root * {place.root}\n    file_server"
    else:
        content = f"reverse_proxy 127.0.0.1:{place.upstream}"
    config = place.folder / "Caddyfile"
    config.write_text(CADDY.format(
        port=place.port, plain_port=place.plain_port, identity=place.identity, content=content
    ))
    return [program, "run", "--config", config, "--adapter", "caddyfile"]


def find_nginx():
    for found in (shutil.which("nginx"), "/usr/sbin/nginx"):
        if found and os.access(found, os.X_OK):
            return Path(found)
    raise Missing("nginx is not installed")


def find_caddy():
    """Caddy as installed, or built once by Go into the target folder."""
    built = build_dir() / "peers" / "caddy"
    if built.exists():
        return built
    if found := shutil.which("caddy"):
        return Path(found)
    if not shutil.which("go"):
        raise Missing("caddy is not installed, nor is Go to build it")
    built.parent.mkdir(parents=True, exist_ok=True)
    print(f"building {CADDY_MODULE}", flush=True)
    environment = os.environ | {"GOBIN": str(built.parent)}
    if subprocess.run(["go", "install", CADDY_MODULE], env=environment, check=False).returncode != 0:
        raise Missing("Go can't build Caddy")
    return built


def build_swiftwater(anew):
    if anew:
        command = ["cargo", "build", "--release", "--locked", "-p", "swiftwater-cli"]
        if subprocess.run(command, cwd=REPOSITORY, check=False).returncode != 0:
            raise Missing(f"`{' '.join(command)}` failed")
    return build_dir() / "release" / "swiftwater"
