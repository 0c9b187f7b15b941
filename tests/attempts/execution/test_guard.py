"""Outbound addresses: only public ones, in every notation, unless an operator listed the host."""

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from governance.outside.http import AddressRefused, checked_address, is_public, url_check

pytestmark = pytest.mark.unit
INWARD = [
    "127.0.0.1",
    "127.8.8.8",
    "10.0.0.1",
    "172.16.0.1",
    "192.168.1.1",
    "169.254.169.254",
    "100.64.0.1",
    "0.0.0.0",  # noqa: S104
    "224.0.0.1",
    "255.255.255.255",
    "240.0.0.1",
    "::1",
    "::",
    "fe80::1",
    "fc00::1",
    "fec0::1",
    "ff02::1",
    "::ffff:127.0.0.1",
    "::ffff:169.254.169.254",
    "64:ff9b::7f00:1",
    "64:ff9b::a9fe:a9fe",
    "2002:7f00:1::",
    "2001:db8::1",
    "192.0.0.192",
    "192.88.99.1",
    "198.19.0.1",
    "64:ff9b:1::7f00:1",
    "100::1",
    "3fff::1",
    "5f00::1",
]


@pytest.mark.parametrize("address", INWARD)
def test_an_inward_address_is_refused_in_every_notation(address: str) -> None:
    assert not is_public(ipaddress.ip_address(address))
    with pytest.raises(AddressRefused):
        checked_address("innocent.example", 443, private_hosts=frozenset(), resolver=lambda *_: [address])


@pytest.mark.parametrize("address", ["8.8.8.8", "93.184.216.34", "2606:4700::1111", "64:ff9b::808:808"])
def test_a_public_address_is_called(address: str) -> None:
    found = checked_address("public.example", 443, private_hosts=frozenset(), resolver=lambda *_: [address])
    assert found == address


def test_one_inward_address_among_public_ones_is_enough_to_refuse() -> None:
    with pytest.raises(AddressRefused):
        checked_address("two.example", 443, private_hosts=frozenset(), resolver=lambda *_: ["8.8.8.8", "10.0.0.1"])


def test_a_name_without_an_address_is_refused() -> None:
    with pytest.raises(AddressRefused):
        checked_address("none.example", 443, private_hosts=frozenset(), resolver=lambda *_: [])


@pytest.mark.parametrize("listed", ["inside.example", "inside.example:8443"])
def test_a_host_that_an_operator_listed_may_be_private(listed: str) -> None:
    listed_hosts = frozenset({listed})
    found = checked_address("Inside.example", 8443, private_hosts=listed_hosts, resolver=lambda *_: ["10.0.0.1"])
    assert found == "10.0.0.1"
    with pytest.raises(AddressRefused):
        checked_address("other.example", 8443, private_hosts=listed_hosts, resolver=lambda *_: ["10.0.0.1"])


@pytest.mark.parametrize(
    "url",
    [
        "http://public.example/",
        "ftp://public.example/",
        "https://user:pw@public.example/",
        "/path",
        "file:///etc/hosts",
    ],
)
def test_only_https_without_credentials_is_called(url: str) -> None:
    with pytest.raises(AddressRefused):
        url_check(url, private_hosts=frozenset())


def test_plain_http_is_for_listed_hosts() -> None:
    url_check("http://inside.example:8080/x", private_hosts=frozenset({"inside.example:8080"}))
    url_check("https://public.example/x", private_hosts=frozenset())


private = st.one_of(
    *[
        st.ip_addresses(network=network)
        for network in ("10.0.0.0/8", "127.0.0.0/8", "192.168.0.0/16", "169.254.0.0/16", "fc00::/7", "fe80::/10")
    ]
)


@given(address=private)
def test_nothing_private_gets_through_plain_or_mapped(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> None:
    assert not is_public(address)
    if isinstance(address, ipaddress.IPv4Address):
        assert not is_public(ipaddress.ip_address(f"::ffff:{address}"))
        assert not is_public(ipaddress.IPv6Address(int(ipaddress.IPv6Address("64:ff9b::")) + int(address)))
