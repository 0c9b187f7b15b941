"""Attempts and runs of years ago, whose retention is over, and orders about them."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.utils import timezone
from time_machine import travel

from attempts.lifecycle.models import Attempt
from governance.ledger.models import LedgerEntry
from governance.retention.models import ErasureItem, ErasureOrder, LegalHold
from governance.retention.services.erasure import erasure_work, purge_order
from governance.retention.services.legal_hold import legal_hold_place
from governance.retention.states import HoldScope
from reasoncodes.base.actors import Actor
from reasoncodes.base.tenancy import every_tenant
from tests.attempts.execution.support import ask, contract
from tests.cast import Cast
from tests.governed import DENY

LONG_AGO = "2012-03-01T10:00:00+00:00"  # US keeps ten years
RECENT = (timezone.now() - timedelta(days=365)).isoformat()


@contextmanager
def at_time(moment: str) -> Iterator[None]:
    with travel(moment, tick=False):
        yield


class Clinic:
    """A contract that denies everything, so that an attempt is over at once; `hold` makes one that waits for people."""

    def __init__(self, cast: Cast) -> None:
        self.cast = cast
        self.organization = cast.organization
        self.contract = contract(cast, slug="never", policy_slug="never", rules=DENY)
        self.client = cast.api("attempts:create")

    @property
    def operator(self) -> Actor:
        return self.cast.actor(self.cast.operator, [self.organization])

    @property
    def second(self) -> Actor:
        return self.cast.actor(self.cast.person("bob", "operator"), [self.organization])

    def denied(self, number: int = 1, *, moment: str = LONG_AGO) -> UUID:
        with at_time(moment):
            answer = ask(self.client, number, slug="never")
        assert answer.status_code == 403, answer.content
        return UUID(answer.json()["attempt_id"])

    def hold(self, scope: str = "organization", target: str = "", **changes: Any) -> LegalHold:
        with every_tenant():
            return legal_hold_place(
                actor=changes.pop("actor", self.operator),
                at=timezone.now(),
                organization_id=self.organization.id,
                scope=HoldScope(scope),
                target=target,
                reason_code="litigation",
                **changes,
            )

    def order(self, actor: Actor | None = None) -> ErasureOrder:
        with every_tenant():
            return purge_order(
                actor=actor or self.operator,
                at=timezone.now(),
                organization_id=self.organization.id,
                reason_code="retention_over",
            )


def work(order: ErasureOrder) -> ErasureOrder:
    with every_tenant():
        while erasure_work(order_id=order.id, now=timezone.now):
            pass
        return ErasureOrder.objects.get(id=order.id)


def results(order: ErasureOrder) -> list[tuple[str, str]]:
    with every_tenant():
        return list(ErasureItem.objects.filter(order=order).order_by("id").values_list("state", "problem"))


def attempt(attempt_id: UUID) -> Attempt:
    with every_tenant():
        return Attempt.objects.get(id=attempt_id)


def payloads(subject_id: UUID) -> list[Any]:
    """The facts of each move."""
    with every_tenant():
        rows = LedgerEntry.objects.filter(subject_id=subject_id).order_by("id")
        return [move.facts for row in rows for move in row.moves]


def actions(*prefixes: str) -> list[str]:
    with every_tenant():
        told = [move.action for entry in LedgerEntry.objects.order_by("id") for move in entry.moves]
    return [action for action in told if action.startswith(prefixes)]


@pytest.fixture
def clinic(cast: Cast) -> Clinic:
    return Clinic(cast)
