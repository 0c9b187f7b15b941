"""What one web process allows its clients: connections, seconds, bytes, and which threads answer which address."""

import os
import resource
from dataclasses import dataclass
from functools import cached_property
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

# Both are larger than anything the application accepts: it refuses such an address or body itself, as a problem.
MOST_HEAD_BYTES = 64 * 1024
MOST_BODY_BYTES = 1024 * 1024
# File descriptors for the database, Valkey, logs and listeners of a process.
SPARE_FILES = 128

PEOPLE, PROGRAMS, PROBES = "people", "programs", "probes"
PROBE_ADDRESSES = (b"/health", b"/health/ready", b"/metrics")
PROGRAM_ADDRESSES = (b"/api/v1/", b"/scim/", b"/integrations/")


def pool_for(head: bytes) -> str:
    """Which threads answer a request, by its address as it was sent. What is not plainly the API's goes to the threads
    of people: an address that is written in another way must not bring password hashing to intake's threads."""
    target = head.split(b" ", 2)[1:2]
    path = target[0].partition(b"?")[0] if target else b""
    if path in PROBE_ADDRESSES:
        return PROBES
    return PROGRAMS if path.startswith(PROGRAM_ADDRESSES) else PEOPLE


@dataclass(frozen=True)
class EdgeLimits:
    """Per process. Seconds are totals, not per read: a client that sends one byte now and then gains nothing."""

    connections: int = 1000
    per_address: int = 200
    head_seconds: float = 10.0
    body_seconds: float = 20.0
    idle_seconds: float = 15.0
    answer_seconds: float = 30.0
    linger_seconds: float = 2.0
    console_threads: int = 4
    proxies: tuple[str, ...] = ("127.0.0.1", "::1")

    @classmethod
    def from_environment(cls) -> "EdgeLimits":
        proxies = os.environ.get("WEB_PROXIES", ",".join(cls.proxies))
        return cls(
            connections=files_raised(int(os.environ.get("WEB_CONNECTIONS", cls.connections))),
            per_address=int(os.environ.get("WEB_CONNECTIONS_PER_ADDRESS", cls.per_address)),
            head_seconds=float(os.environ.get("WEB_HEAD_SECONDS", cls.head_seconds)),
            body_seconds=float(os.environ.get("WEB_BODY_SECONDS", cls.body_seconds)),
            console_threads=int(os.environ.get("WEB_CONSOLE_THREADS", cls.console_threads)),
            proxies=tuple(one.strip() for one in proxies.split(",") if one.strip()),
        )

    @cached_property
    def _networks(self) -> tuple[object, ...]:
        return tuple(ip_network(one, strict=False) for one in self.proxies)

    def counted(self, address: str) -> bool:
        """Whether connections of this address are counted. A proxy speaks for many; a Unix socket has no address."""
        try:
            found: IPv4Address | IPv6Address = ip_address(address)
        except ValueError:
            return False
        mapped = getattr(found, "ipv4_mapped", None)
        return not any((mapped or found) in network for network in self._networks)  # type: ignore[operator]


def files_raised(wanted: int) -> int:
    """Raises this process's limit of open files as far as it may, and returns how many connections fit under it. At
    the limit `accept` fails, and nobody gets in."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    target = wanted + SPARE_FILES
    if hard != resource.RLIM_INFINITY:
        target = min(target, hard)
    if soft != resource.RLIM_INFINITY and soft < target:
        resource.setrlimit(resource.RLIMIT_NOFILE, (target, hard))
        soft = target
    return wanted if soft == resource.RLIM_INFINITY else max(1, min(wanted, soft - SPARE_FILES))
