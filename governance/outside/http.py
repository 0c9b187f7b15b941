"""Outbound HTTP that cannot reach the internal network: a name is resolved once, its addresses must be public, and the
connection goes to exactly the address that was checked.

The check is where the socket is made. A second DNS answer or a redirect cannot bypass it. The backend also keeps one
deadline for the whole exchange and knows whether anything was sent.
"""

import ipaddress
import ssl
import time
from collections.abc import Callable, Iterable
from functools import cache, partial
from typing import Any

import httpcore
import httpx

from governance.outside.names import NameNotFoundInTime, addresses_of

LOOK_UP_SECONDS = 10.0
Address = ipaddress.IPv4Address | ipaddress.IPv6Address
NAT64 = ipaddress.ip_network("64:ff9b::/96")
# Ranges of IANA's special-purpose registries that some version of Python reports as public: their tables differ.
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
    """Whether an address is public. An IPv4 address inside an IPv6 address is checked too."""
    # Mapped, 6to4, Teredo and NAT64 addresses reach an IPv4 host: `::ffff:127.0.0.1` is this machine.
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


def resolve(host: str, port: int, *, seconds: float = LOOK_UP_SECONDS) -> list[str]:
    try:
        return addresses_of(host, port, seconds=seconds)
    except NameNotFoundInTime as error:
        raise httpcore.ConnectTimeout("the name was not found in time") from error
    except UnicodeError as error:  # an empty or too long label of the name
        raise AddressRefused("not a name that can be resolved") from error


def checked_address(
    host: str, port: int, *, private_hosts: frozenset[str], resolver: Callable[[str, int], list[str]] = resolve
) -> str:
    """One address of the host. A name is refused if any of its addresses is not public."""
    # The caller connects to this address and not to the name: a second look-up could give another answer.
    addresses = resolver(host, port)
    if not addresses:
        raise AddressRefused("the name has no address")
    if {host.lower(), f"{host.lower()}:{port}"} & private_hosts:
        return addresses[0]
    if not all(is_public(ipaddress.ip_address(address.partition("%")[0])) for address in addresses):
        raise AddressRefused("the name resolves to an address that is not public")
    return addresses[0]


def url_check(url: str, *, private_hosts: frozenset[str]) -> None:
    """https only, except for hosts that an operator listed; no credentials in the URL."""
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
    """Makes the connection of one exchange. Use a new backend for the next one: the deadline starts here."""

    def __init__(self, *, private_hosts: frozenset[str], seconds: float) -> None:
        self.private_hosts = private_hosts
        # One deadline for everything. httpx limits single reads: a peer that sends a byte now and then would never end.
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
        find = partial(resolve, seconds=self.left(timeout))
        address = checked_address(host, port, private_hosts=self.private_hosts, resolver=find)
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
        # Before the write: if it fails, half of the request may have arrived. An adapter that was told "nothing was
        # sent" would repeat a side effect.
        self._wire.sent = True
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
    """The trusted certificates. Read once per process, because loading them takes longer than many exchanges."""
    return httpx.create_ssl_context(trust_env=False)


def guarded_client(backend: GuardedBackend) -> httpx.Client:
    """A client for one exchange: no redirects, no proxies from the environment, no connection kept alive."""
    # `trust_env=False`: a proxy from the environment would make the connection, past the check of the address.
    # `retries=0`: whether to try again is the caller's decision, who knows what may have been sent.
    transport = httpx.HTTPTransport(trust_env=False, retries=0, verify=_trusted())
    transport._pool.close()
    # A private name: httpx has no public way to set the network backend. A test fails if this stops working.
    transport._pool = httpcore.ConnectionPool(
        ssl_context=_trusted(),
        max_connections=1,
        max_keepalive_connections=0,
        retries=0,
        network_backend=backend,
    )
    return httpx.Client(transport=transport, trust_env=False, follow_redirects=False, timeout=10.0)
