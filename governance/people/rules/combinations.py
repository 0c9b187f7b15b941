"""Pairs of roles that one person must not have in one organization: together they let one person ask and release, or
write and approve. One table, shown in the docs, the console and the API. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from governance.people.rules.roles import AUDITOR, OPERATOR
from governance.people.rules.sign_in import ADMINISTRATOR


@dataclass(frozen=True, slots=True)
class Forbidden:
    """`one` and `other` are role names; a name that ends with a colon stands for every role that begins with it. An
    administrator of the installation counts as having the role `administrator` in every organization."""

    one: str
    other: str
    why: str

    def covers(self, one: str, other: str) -> bool:
        return (_fits(self.one, one) and _fits(self.other, other)) or (
            _fits(self.one, other) and _fits(self.other, one)
        )


FORBIDDEN: Final = (
    Forbidden(OPERATOR, "reviewer:", "could ask for an action through a service and release it"),
    Forbidden(OPERATOR, "owner:", "could write a policy document and approve it"),
    # An administrator can be the second person for every act of an operator, so the same roles are forbidden to them.
    Forbidden(ADMINISTRATOR, "reviewer:", "could confirm a service's key, ask with it and release the action"),
    Forbidden(ADMINISTRATOR, "owner:", "could confirm a change of the rules and approve what depends on it"),
    Forbidden(ADMINISTRATOR, AUDITOR, "would audit their own acts"),
    Forbidden(AUDITOR, OPERATOR, "would audit their own acts"),
    Forbidden(AUDITOR, "reviewer:", "would audit their own releases"),
    Forbidden(AUDITOR, "owner:", "would audit their own approvals"),
)


@dataclass(frozen=True, slots=True)
class Combination:
    """Two roles of one person that are forbidden together."""

    one: str
    other: str
    why: str


def combinations(roles: Iterable[str]) -> list[Combination]:
    """The forbidden pairs among these roles, in order."""
    held = sorted(set(roles))
    pairs = ((one, other) for index, one in enumerate(held) for other in held[index + 1 :])
    return [Combination(one, other, rule.why) for one, other in pairs for rule in FORBIDDEN if rule.covers(one, other)]


def combinations_with(role: str, held: Iterable[str]) -> list[Combination]:
    """The forbidden pairs that a further role would make."""
    return [pair for pair in combinations([*held, role]) if role in (pair.one, pair.other)]


def _fits(named: str, role: str) -> bool:
    return role.startswith(named) if named.endswith(":") else role == named
