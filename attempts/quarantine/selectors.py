"""Reads quarantine cases: lists, whose they are, one as a workbench, and causes that come again."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db.models import Count, Max, Min, Q, QuerySet

from attempts.execution.models import DispatchIntent, Receipt
from attempts.lifecycle.models import Attempt
from attempts.lifecycle.selectors.attempts import (
    attempt_decision,
    attempt_receipts,
    compensation_of,
    documents_of,
)
from attempts.quarantine.models import QuarantineCase
from attempts.quarantine.rules import CaseFacts, NextAct, how_to_ask, next_acts, not_yet
from attempts.reviews.rules import AskedAction
from attempts.reviews.selectors.card import asked_action
from governance.contracts.models import Contract
from governance.contracts.states import ContractState
from governance.ledger.models import LedgerEntry
from governance.ledger.rules.actions import wording
from governance.people.models import User
from governance.people.rules.roles import OPERATE, roles_meant
from governance.people.selectors.people import people_behind, people_in_role, person_may
from governance.tenancy.models import RoleGroup
from governance.tenancy.selectors import tenant_get

LATELY = timedelta(days=30)
SHOWN = 50


def quarantine_case_list(
    *, category: str | None = None, resolved: bool | None = None, mine_of: UUID | None = None
) -> QuerySet[QuarantineCase]:
    """`mine_of`: only those whose escalation owner is a group of this person."""
    rows = QuarantineCase.objects.select_related("attempt").order_by("-id")
    if category is not None:
        rows = rows.filter(category=category)
    if resolved is not None:
        rows = rows.exclude(resolution="") if resolved else rows.filter(resolution="")
    return rows if mine_of is None else rows.filter(owned_by(user_id=mine_of))


def cases_shown(*, rows: QuerySet[QuarantineCase], which: str) -> QuerySet[QuarantineCase]:
    """Resolved cases if `which` is "resolved", else those that wait for a person."""
    return rows.exclude(resolution="") if which == "resolved" else rows.filter(resolution="")


def quarantine_case_get(*, case_id: UUID) -> QuarantineCase:
    return tenant_get(QuarantineCase, case_id)


def quarantine_finding(*, attempt_id: UUID) -> str | None:
    """The investigated outcome; empty while there is none, None if the attempt was never in quarantine."""
    return QuarantineCase.objects.filter(attempt_id=attempt_id).values_list("finding", flat=True).first()


def owned_by(*, user_id: UUID) -> Q:
    """The cases of the person's groups, in the organizations that gave them the group."""
    found = Q(pk__in=[])
    rows = RoleGroup.objects.filter(group__user__id=user_id).values_list("organization_id", "role")
    for organization_id, role in rows:
        found |= Q(organization_id=organization_id, escalation_owner=role.partition(":")[2] or role)
    return found


def case_owners(*, case: QuarantineCase) -> list[User]:
    """Active people of the escalation owner's group."""
    found: dict[UUID, User] = {}
    for role in roles_meant(case.escalation_owner):
        people = people_in_role(organization_id=case.organization_id, role=role)
        found |= {person.id: person for person in people}
    return list(found.values())


def may_act(*, user_id: UUID, case: QuarantineCase) -> bool:
    """Whether the person may act on the case: as an operator, or as a member of its escalation owner."""
    if person_may(user_id=user_id, organization_id=case.organization_id, permission=OPERATE):
        return True
    roles = RoleGroup.objects.filter(organization_id=case.organization_id, role__in=roles_meant(case.escalation_owner))
    return roles.filter(group__user__id=user_id, group__user__is_active=True).exists()


@dataclass(frozen=True, slots=True)
class CaseSheet:
    """A case as a workbench."""

    case: QuarantineCase
    attempt: Attempt
    asked: AskedAction
    sent: list[DispatchIntent]
    came_back: list[Receipt]
    ask: list[str]
    acts: list[NextAct]
    not_yet: list[str]
    story: list[dict[str, Any]]
    alike: int
    """Cases of the same cause within the last 30 days, this one included."""


def case_sheet(*, case: QuarantineCase, now: datetime, reader: UUID | None) -> CaseSheet:
    """`reader`: the person who looks at it, which decides what is possible."""
    attempt = Attempt.objects.select_related("contract", "caller").get(id=case.attempt_id)
    facts = case_facts(case=case, attempt=attempt, reader=reader)
    sent = list(DispatchIntent.objects.select_related("attempt").filter(attempt=attempt).order_by("number"))
    return CaseSheet(
        case=case,
        attempt=attempt,
        asked=asked_action(attempt=attempt, decision=attempt_decision(attempt=attempt)),
        sent=sent,
        came_back=list(attempt_receipts(attempt=attempt)[:SHOWN]),
        ask=how_to_ask(
            connector=attempt.connector,
            target_ref=attempt.target_ref,
            keys=[one.effect_key for one in sent],
            executors=[one.executor_ref for one in sent],
        ),
        acts=next_acts(facts),
        not_yet=not_yet(facts),
        story=_story(case),
        alike=_alike(case, attempt, since=now - LATELY),
    )


def is_own(*, attempt: Attempt, person_id: UUID | None) -> bool:
    """Whether this person answers for the service that asked: what it does counts as theirs."""
    return person_id is not None and attempt.caller.responsible_id == person_id


def case_facts(*, case: QuarantineCase, attempt: Attempt, reader: UUID | None) -> CaseFacts:
    compensation = compensation_of(attempt)
    return CaseFacts(
        resolved=bool(case.resolution),
        finding=case.finding,
        incident_ref=case.incident_ref,
        incident_required=documents_of(attempt)["failure_quarantine"]["incident_required"],
        contract_open=attempt.contract.state == ContractState.OPEN,
        repeatable=attempt.erased_at is None and attempt.operation != "",
        compensation=compensation,
        compensation_open=bool(compensation) and _is_open(attempt.organization_id, compensation),
        own=is_own(attempt=attempt, person_id=reader),
    )


def _is_open(organization_id: UUID, named: str) -> bool:
    slug, _, version = named.partition("/")
    rows = Contract.objects.filter(organization_id=organization_id, slug=slug, state=ContractState.OPEN)
    return version.isdigit() and rows.filter(version=int(version)).exists()


def _story(case: QuarantineCase) -> list[dict[str, Any]]:
    entries = list(LedgerEntry.objects.filter(subject_id=case.id).order_by("id")[:SHOWN])
    people = people_behind(commitments={entry.actor_ref for entry in entries if entry.actor_kind == "person"})
    return [
        {"at": entry.at, "who": people.get(entry.actor_ref, entry.actor_kind), "what": wording(move.action)}
        for entry in entries
        for move in entry.moves
    ]


def _alike(case: QuarantineCase, attempt: Attempt, *, since: datetime) -> int:
    rows = QuarantineCase.objects.filter(organization_id=case.organization_id, opened_at__gte=since)
    same = rows.filter(category=case.category, reason_code=case.reason_code)
    return same.filter(attempt__workflow_slug=attempt.workflow_slug, attempt__operation=attempt.operation).count()


def causes(*, rows: QuerySet[QuarantineCase], since: datetime) -> list[dict[str, Any]]:
    """Cases by their cause (contract, operation, category, reason), those that come again most often first."""
    grouped = (
        rows.filter(opened_at__gte=since)
        .order_by()
        .values("attempt__workflow_slug", "attempt__operation", "category", "reason_code")
        .annotate(
            count=Count("id"), open=Count("id", filter=Q(resolution="")), first=Min("opened_at"), last=Max("opened_at")
        )
        .order_by("-count", "-last")[:SHOWN]
    )
    return [_cause(dict(row)) for row in grouped]


def _cause(row: dict[str, Any]) -> dict[str, Any]:
    return {
        "workflow_slug": row["attempt__workflow_slug"],
        "operation": row["attempt__operation"],
        **{name: row[name] for name in ("category", "reason_code", "count", "open")},
        "first_seen": row["first"],
        "last_seen": row["last"],
    }


def repeated(found: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """The causes that came more than once and still have open cases."""
    return [row for row in found if row["count"] > 1 and row["open"]]
