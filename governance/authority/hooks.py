"""The handlers of authority changes, one per kind. Apps above register theirs in `apps.py`; this app may not import
them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol
from uuid import UUID

from governance.authority.models import AuthorityChange
from governance.tenancy.models import Organization
from reasoncodes.base.actors import Actor


@dataclass(frozen=True, slots=True)
class Prepared:
    """A proposal after its check. `before` and `after` are what a person compares. `once` is shown to the proposer and
    not stored, such as the clear text of a key."""

    subject: str
    details: dict[str, Any]
    before: dict[str, Any] = field(default_factory=dict)
    after: dict[str, Any] = field(default_factory=dict)
    loosens: bool = False
    once: str = ""


@dataclass(frozen=True, slots=True)
class Applied:
    """What came into force: ids for the record, the object itself for the page that follows, and what is shown once to
    the person who confirmed."""

    result: dict[str, Any]
    made: Any = None
    once: str = ""


class AuthorityAct(Protocol):
    """How one kind of act is checked and done. Calls run in the tenant scope of the organization and in the caller's
    transaction."""

    def prepare(
        self, *, actor: Actor, at: datetime, organization: Organization, subject: str, details: Mapping[str, Any]
    ) -> Prepared:
        """Checks the proposal, and raises what the act itself would raise. Writes nothing."""
        ...

    def excluded(self, *, change: AuthorityChange) -> dict[UUID, str]:
        """Who cannot confirm besides the proposer, and why: who gains by it, and who wrote what comes into force."""
        ...

    def apply(self, *, actor: Actor, at: datetime, change: AuthorityChange) -> Applied:
        """Does it, through the service of its room. `actor` is the proposer."""
        ...


_acts: dict[str, AuthorityAct] = {}


def register_act(kind: str, act: AuthorityAct) -> None:
    _acts[kind] = act


def act_for(kind: str) -> AuthorityAct:
    return _acts[kind]


def kinds_registered() -> frozenset[str]:
    return frozenset(_acts)
