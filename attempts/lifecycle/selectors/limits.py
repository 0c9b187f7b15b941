"""How full an organization's caps are: what runs, what waits for people, what waits for a slot."""

from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import connection
from django.db.models import Count

from attempts.lifecycle.models import Attempt, Slot
from attempts.lifecycle.states import AttemptState
from governance.contracts.models import Contract
from governance.contracts.states import ContractState
from governance.enforcement.models import snapshot_load
from governance.tenancy.models import Organization

# Parts of a hundred of `max_open_holds` at which people are warned.
WARN_AT = 80


@dataclass(frozen=True, slots=True)
class LimitUse:
    """`cap` None: no limit. Only what runs, or holds for `max_open_holds`, uses a place; `queued` waits for one."""

    name: str
    cap: int | None
    used: int
    running: int = 0
    holds: int = 0
    queued: int = 0
    contract: str = ""
    oldest: datetime | None = None

    @property
    def by(self) -> dict[str, int]:
        return {"running": self.running, "holds": self.holds, "queued": self.queued}


@dataclass(frozen=True, slots=True)
class OpenHolds:
    """`cap`: max_open_holds."""

    organization: Organization
    count: int
    oldest: datetime | None

    @property
    def cap(self) -> int:
        return self.organization.max_open_holds

    @property
    def worries(self) -> bool:
        return self.count * 100 >= self.cap * WARN_AT


def open_holds(*, organization: Organization) -> OpenHolds:
    """How many attempts wait for people, and since when the oldest does. Counted up to the cap."""
    rows = Attempt.objects.filter(organization=organization, state=AttemptState.REVIEW_REQUIRED).order_by("id")
    oldest = rows.values_list("created_at", flat=True).first()
    return OpenHolds(organization, rows[: organization.max_open_holds].count() if oldest else 0, oldest)


# By the index `attempt_by_state`, at most as many rows of each organization as its cap has: a GROUP BY would read every
# hold of the installation.
WORRYING = """
SELECT o.id, held.count, oldest.created_at
FROM governance_organization o
CROSS JOIN LATERAL (
    SELECT created_at FROM attempts_attempt WHERE organization_id = o.id AND state = %(held)s ORDER BY id LIMIT 1
) oldest
CROSS JOIN LATERAL (
    SELECT count(*) AS count FROM (
        SELECT 1 FROM attempts_attempt WHERE organization_id = o.id AND state = %(held)s
        LIMIT greatest(o.max_open_holds, 1)
    ) counted
) held
WHERE o.id = ANY(%(organizations)s) AND held.count * 100 >= o.max_open_holds * %(worry)s
ORDER BY o.slug
"""


def holds_that_worry() -> list[OpenHolds]:
    """Of the organizations in scope, those whose holds have nearly reached their cap."""
    ours = {one.id: one for one in Organization.objects.all()}
    parameters: dict[str, Any] = {
        "held": AttemptState.REVIEW_REQUIRED.value,
        "organizations": list(ours),
        "worry": WARN_AT,
    }
    with connection.cursor() as cursor:
        cursor.execute(WORRYING, parameters)
        return [OpenHolds(ours[id_], count, oldest) for id_, count, oldest in cursor.fetchall()]


def limits_used(*, organization: Organization) -> list[LimitUse]:
    """The organization's own caps first, then those of its open contracts that have one number for all."""
    running = Counter(
        dict(
            Slot.objects.filter(organization=organization)
            .order_by()
            .values_list("workflow_slug")
            .annotate(count=Count("attempt_id"))
        )
    )
    queued = Counter(
        dict(
            Attempt.objects.filter(organization=organization, queued_until__isnull=False)
            .order_by()
            .values_list("workflow_slug")
            .annotate(count=Count("id"))
        )
    )
    holds, all_running = open_holds(organization=organization), running.total()
    found = [
        LimitUse("max_concurrency", organization.max_concurrency, all_running, all_running, 0, queued.total()),
        LimitUse("max_open_holds", holds.cap, holds.count, holds=holds.count, oldest=holds.oldest),
    ]
    for contract in Contract.objects.filter(organization=organization, state=ContractState.OPEN).order_by("slug"):
        found += _of_contract(contract, all_running, running[contract.slug], queued[contract.slug])
    return found


def _of_contract(contract: Contract, everywhere: int, here: int, queued: int) -> list[LimitUse]:
    documents: dict[str, Any] = snapshot_load(contract.snapshot_sha256)["documents"]
    limits, name = documents["concurrency_and_locks"]["limits"], f"{contract.slug}/{contract.version}"
    counted = {"per_workflow": here, "per_tenant": everywhere}
    return [
        LimitUse(cap, limits[cap], used, used, 0, queued, contract=name)
        for cap, used in counted.items()
        if limits[cap] is not None
    ]
