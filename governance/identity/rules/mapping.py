"""From the values of a claim, or the names of groups, to roles."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from governance.people.rules.combinations import combinations
from governance.people.rules.roles import PERMISSIONS_OF_ROLE

LONGEST_MAPPING = 200
LONGEST_VALUE = 191
MOST_VALUES = 1000
_TIER = re.compile(r"reviewer:[a-z0-9][a-z0-9_-]{0,53}")


def role_known(role: str) -> bool:
    """An organization may add reviewer tiers; every other role is in the table."""
    return role in PERMISSIONS_OF_ROLE or bool(_TIER.fullmatch(role))


def mapping_problems(mapping: Any) -> list[tuple[str, str]]:
    """Pairs of JSON pointer and message; none: the mapping can be used. Pointers count entries, because a value of the
    mapping is somebody's text, which an answer must not repeat."""
    if not isinstance(mapping, dict):
        return [("/mapping", "is not an object from values to lists of roles")]
    if len(mapping) > LONGEST_MAPPING:
        return [("/mapping", f"has more than {LONGEST_MAPPING} entries")]
    return [problem for index, entry in enumerate(mapping.items()) for problem in _entry_problems(index, *entry)]


def _entry_problems(index: int, value: str, roles: Any) -> list[tuple[str, str]]:
    place = f"/mapping/{index}"
    if not value or len(value) > LONGEST_VALUE:
        return [(place, f"the value has 1 to {LONGEST_VALUE} characters")]
    if not isinstance(roles, list) or not roles or not all(isinstance(role, str) for role in roles):
        return [(place, "is not a list of one or more roles")]
    unknown = [(f"{place}/{at}", "is not a role") for at, role in enumerate(roles) if not role_known(role)]
    return unknown or [(place, f"{pair.one} and {pair.other}: the person {pair.why}") for pair in combinations(roles)]


def values_of(claims: Mapping[str, Any], name: str) -> frozenset[str]:
    """The values of a claim: a text, or a list of texts. A dot leads into an object (`realm_access.roles`) if no claim
    has the whole name."""
    found: Any = claims.get(name)
    if found is None and "." in name:
        found = claims
        for part in name.split("."):
            found = found.get(part) if isinstance(found, Mapping) else None
    if isinstance(found, str):
        found = [found]
    if not isinstance(found, list | tuple):
        return frozenset()
    return frozenset(value for value in found[:MOST_VALUES] if isinstance(value, str))


def roles_of_values(values: Iterable[str], mapping: Mapping[str, list[str]]) -> frozenset[str]:
    return frozenset(role for value in values for role in mapping.get(value, ()))


def roles_allowed(wanted: frozenset[str], *, by_hand: frozenset[str]) -> frozenset[str]:
    """Without those that are forbidden together, or with a role that people gave. All of a pair are left out: which one
    is meant, nobody here can know."""
    pairs = combinations(by_hand | wanted)
    return wanted - {role for pair in pairs for role in (pair.one, pair.other)}


def roles_given(mapping: Mapping[str, list[str]]) -> list[str]:
    """Every role that the mapping can give, in order, for the record."""
    return sorted({role for roles in mapping.values() for role in roles})
