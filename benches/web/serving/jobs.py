"""The jobs: what is requested over which protocol, and the columns of their tables."""

from dataclasses import dataclass

# All but `PLAIN`, HTTP/1.1 without TLS, are over TLS 1.3.
H1, PLAIN, H2, H3 = "h1", "h1-plain", "h2", "h3"


@dataclass(frozen=True)
class Measure:
    """A column of a job's table."""

    key: str
    title: str
    digits: int
    more: bool = False


PER_REQUEST = [
    Measure("rate", "requests/s", 0, True),
    Measure("cpu", "server CPU µs", 2),
    Measure("load_cpu", "generator CPU µs", 2),
    Measure("p50", "p50 µs", 0),
    Measure("p99", "p99 µs", 0),
]
PER_BYTE = [
    Measure("gbps", "Gbit/s", 3, True),
    Measure("cpu_per_gb", "server CPU s/GB", 3),
    Measure("load_cpu_per_gb", "generator CPU s/GB", 3),
]


@dataclass(frozen=True)
class Job:
    """Requests of one list over one protocol."""

    name: str
    title: str
    protocol: str
    # Name of the listing.
    listing: str
    # Whether the server forwards the requests.
    proxied: bool
    connections: int
    # Requests at any time on each connection.
    in_flight: int
    requests: int
    quick: int
    measures: list


def small(protocol, title, connections, in_flight, requests):
    return Job(f"files-{protocol}", f"Files of 1 to 10 kB, {title}", protocol, "small", False, connections, in_flight,
               requests, 3_200, PER_REQUEST)


def large(protocol, title):
    return Job(f"large-{protocol}", f"Files of 20 MB, {title}", protocol, "large", False, 1, 2, 100, 4, PER_BYTE)


def proxy(protocol, title, connections, in_flight):
    return Job(f"proxy-{protocol}", f"Reverse proxy, answers of 1 kB, {title}", protocol, "answer", True, connections,
               in_flight, 32_000, 3_200, PER_REQUEST)


# So many requests of files that each is requested about twice, or once by four connections.
JOBS = [
    small(H1, "HTTP/1.1 over TLS", 32, 1, 80_000),
    small(PLAIN, "HTTP/1.1 without TLS", 32, 1, 80_000),
    small(H2, "HTTP/2", 4, 8, 40_000),
    small(H3, "HTTP/3", 4, 8, 40_000),
    large(H2, "HTTP/2"),
    large(H3, "HTTP/3"),
    proxy(H1, "HTTP/1.1 over TLS", 32, 1),
    proxy(PLAIN, "HTTP/1.1 without TLS", 32, 1),
    proxy(H2, "HTTP/2", 4, 8),
    proxy(H3, "HTTP/3", 4, 8),
]
