"""Outbound HTTP that cannot be turned inwards: resolved once, refused unless public, connected to exactly that address.

The guard sits where the socket is made, so neither a name that resolves differently the second time nor a redirect
gets past it. It also holds one deadline over the whole exchange and knows whether anything was sent.
"""

import ipaddress
import socket
import ssl
import time
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

import httpcore
import httpx

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
NAT64 = ipaddress.ip_network("64:ff9b::/96")
# Of IANA's special-purpose registries, what one Python or another takes for public: their tables differ.
SPECIAL = [
    ipaddress.ip_network(network)
    for network in (
        "192.0.0.0/24",
        "192.88.99.0/24",
        "198.18.0.0/15",
        "64:ff9b:1::/48",
        "100::/64",
        "2001::/23",
        "2001:db8::/32",
        "3fff::/20",
        "5f00::/16",
    )
]


class AddressRefused(Exception):
    """The name resolves to an address that must not be called, or the URL is not one that we call."""


def is_public(address: Address) -> bool:
    """Reachable from the whole Internet, also after looking into the notations that hide an IPv4 address."""
    if isinstance(address, ipaddress.IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour or (address.teredo or (None, None))[1]
        if inner is None and address in NAT64:
            inner = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        if inner is not None:
            return is_public(inner)
        if address.is_site_local:
            return False
    if any(address in network for network in SPECIAL if network.version == address.version):
        return False
    return address.is_global and not address.is_multicast and not address.is_reserved


def resolve(host: str, port: int) -> list[str]:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except UnicodeError as error:  # empty or endless labels
        raise AddressRefused("not a name that can be resolved") from error
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


def checked_address(
    host: str, port: int, *, private_hosts: frozenset[str], resolver: Callable[[str, int], list[str]] = resolve
) -> str:
    """One address of the host. A name with even one inward address is refused: nobody has both for a good reason."""
    addresses = resolver(host, port)
    if not addresses:
        raise AddressRefused("the name has no address")
    if {host.lower(), f"{host.lower()}:{port}"} & private_hosts:
        return addresses[0]
    if not all(is_public(ipaddress.ip_address(address.partition("%")[0])) for address in addresses):
        raise AddressRefused("the name resolves to an address that is not public")
    return addresses[0]


def url_check(url: str, *, private_hosts: frozenset[str]) -> None:
    """https only, unless an operator listed the host; no credentials in the URL."""
    try:
        parsed = httpx.URL(url)
        usual = 443 if parsed.scheme == "https" else 80
        host, port = parsed.host.lower(), usual if parsed.port is None else parsed.port
    except (httpx.InvalidURL, UnicodeError) as error:
        raise AddressRefused("not a URL") from error
    listed = bool({host, f"{host}:{port}"} & private_hosts)
    if not host or parsed.userinfo or parsed.scheme not in ({"https", "http"} if listed else {"https"}):
        raise AddressRefused("not an https URL without credentials")
    if not 0 < port < 65536 or "%" in host:
        raise AddressRefused("not a host and port")


class GuardedBackend(httpcore.NetworkBackend):
    """Makes the one connection of an exchange."""

    def __init__(self, *, private_hosts: frozenset[str], seconds: float) -> None:
        self.private_hosts = private_hosts
        self.ends_at = time.monotonic() + seconds
        self.sent = False
        self._inner = httpcore.SyncBackend()

    def left(self, wanted: float | None) -> float:
        left = self.ends_at - time.monotonic()
        if left <= 0:
            raise httpcore.ReadTimeout("the deadline of the whole exchange has passed")
        return left if wanted is None else min(wanted, left)

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        address = checked_address(host, port, private_hosts=self.private_hosts)
        stream = self._inner.connect_tcp(address, port, timeout=self.left(timeout), socket_options=socket_options)
        return GuardedStream(self, stream)


class GuardedStream(httpcore.NetworkStream):
    def __init__(self, backend: GuardedBackend, inner: httpcore.NetworkStream) -> None:
        self._wire = backend
        self._inner = inner

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._inner.read(max_bytes, timeout=self._wire.left(timeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        limit = self._wire.left(timeout)
        self._wire.sent = True  # before the write: half a request may have arrived when it fails
        self._inner.write(buffer, timeout=limit)

    def close(self) -> None:
        self._inner.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        inner = self._inner.start_tls(ssl_context, server_hostname, timeout=self._wire.left(timeout))
        return GuardedStream(self._wire, inner)

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)


@cache
def _trusted() -> ssl.SSLContext:
    """Read once per process: it takes longer than many an exchange, and what is in it is the same for all."""
    return httpx.create_ssl_context(trust_env=False)


def guarded_client(backend: GuardedBackend) -> httpx.Client:
    """No redirects, no proxies from the environment, one connection, nothing kept alive."""
    transport = httpx.HTTPTransport(trust_env=False, retries=0, verify=_trusted())
    transport._pool.close()
    # httpx has no public way to hand in the network backend; a test fails should this stop working.
    transport._pool = httpcore.ConnectionPool(
        ssl_context=_trusted(),
        max_connections=1,
        max_keepalive_connections=0,
        retries=0,
        network_backend=backend,
    )
    return httpx.Client(transport=transport, trust_env=False, follow_redirects=False, timeout=10.0)
