"""Reads what a decision needs: key, account, organization, contract, policy and shutdowns in one round trip.

Also stored decisions with the snapshots that they were computed from, and their figures for the overview.
"""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any
from uuid import UUID

from django.db.models import Model, QuerySet, Sum
from django.db.models.functions import TruncHour

from governance.console.models import IntakeMinute
from governance.console.selectors.lists import by_organization
from governance.console.selectors.pages import COUNT_LIMIT, id_floor, id_moment
from governance.contracts.models import Contract
from governance.enforcement.models import EnforcementDecision
from governance.enforcement.sql import (
    Closed,
    account_active_sql,
    closed_by,
    key_not_ended_sql,
    organization_active_sql,
    policy_active_sql,
    shutdown_covers,
    shutdown_in_reach_sql,
    stopping_reason,
)
from governance.people.models import ApiKey, ServiceAccount
from governance.people.rules.keys import key_hash
from governance.people.selectors.people import Credential
from governance.sql.statements import fetch, stored_row
from governance.sql.wire import Rows
from governance.tenancy.models import Organization
from governance.tenancy.selectors import tenant_get
from reasoncodes.base.actors import Actor, ActorKind


@dataclass(frozen=True, slots=True)
class IntakeFacts:
    """The contract and its organization as they are now, the active policy, and the shutdowns that cover the
    contract."""

    contract: Contract
    organization: Organization
    policy_sha256: str
    policy_version: int | None
    shutdowns: tuple[dict[str, Any], ...]

    @property
    def stopped_by(self) -> str | None:
        """The reason code of the shutdown that stops the contract."""
        return stopping_reason(self.shutdowns)

    @property
    def closed_by(self) -> frozenset[Closed]:
        """Everything that keeps the contract from taking work now. Empty means that it takes work."""
        return closed_by(contract=self.contract, organization=self.organization, covering=self.shutdowns)


@dataclass(frozen=True, slots=True)
class Arrival:
    """The caller and the contract it asks on. `facts` is None if the organization has no such contract version. `also`
    has the additional columns that the caller of the selector asked for, one tuple per row."""

    credential: Credential
    facts: IntakeFacts | None
    also: tuple[tuple[Any, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class Also:
    """Additional columns and a join for the same query. The join may use the aliases `a` (account), `o` (organization)
    and `c` (contract), and parameters from $5 on."""

    columns: str
    join: str


@dataclass(frozen=True, slots=True)
class OwnArrival:
    """The same for a request that Holdpoint itself makes. `account` is None while the organization has no account with
    this name."""

    organization: Organization
    account: ServiceAccount | None
    facts: IntakeFacts


Parts = tuple[tuple[str, type[Model], tuple[str, ...]], ...]

# Alias, model and the columns that are read of it. Other columns are deferred: touching one costs a query of its own,
# so a column that intake needs belongs here.
PARTS: Parts = (
    ("k", ApiKey, ("id", "service_account_id", "scopes")),
    ("a", ServiceAccount, ("id", "organization_id", "slug", "status", "responsible_id")),
    ("o", Organization, ("id", "slug", "status", "regions", "max_concurrency", "max_open_holds", "capacity_units")),
    (
        "c",
        Contract,
        (
            *("id", "organization_id", "slug", "version", "state", "effect", "risk_tier"),
            *("adapter", "review_owner", "policy_slug", "snapshot_sha256"),
        ),
    ),
)
# For Holdpoint's own requests: no key, and in addition the organization's limits for runs.
OWN_PARTS: Parts = (
    PARTS[1],
    ("o", Organization, (*PARTS[2][2], "max_runs_per_min", "max_writes_per_run")),
    PARTS[3],
)
WIDTH = sum(len(names) for _, _, names in PARTS) + 3
# Policy and shutdowns. The shutdowns are a subquery and not a join: several of them must not multiply the row. They are
# ordered, because the environment's hash depends on their order.
FACTS = f"""
    p.snapshot_sha256, p.version,
    (SELECT json_agg(
        json_build_object('id', s.id, 'scope', s.scope, 'target', s.target, 'drill', s.drill) ORDER BY s.id)
     FROM governance_shutdown s
     WHERE {shutdown_in_reach_sql("s", "o")})
"""  # noqa: S608
# `OFFSET 0` makes each lateral subquery one look-up from what is known already. Without it the planner, while the
# tables are small, begins with all organizations, and a prepared statement keeps that plan when they have grown.
POLICY = f"""
    LEFT JOIN LATERAL (
        SELECT active.snapshot_sha256, active.version FROM governance_policy active
        WHERE active.organization_id = o.id AND active.slug = c.policy_slug AND {policy_active_sql("active")} OFFSET 0
    ) p ON TRUE
"""  # noqa: S608
CONTRACT = """
    LEFT JOIN LATERAL (
        SELECT * FROM governance_contract
        WHERE organization_id = o.id AND slug = {slug} AND version = {version} OFFSET 0
    ) c ON TRUE
"""
# $1 hash of the key, $2 now. No row unless the key is live. Keys are stored and looked up as hashes only.
BY_KEY = f"""
    FROM (
        SELECT * FROM governance_apikey given WHERE given.sha256 = $1 AND {key_not_ended_sql("given", "$2")} OFFSET 0
    ) k
    CROSS JOIN LATERAL (
        SELECT * FROM governance_serviceaccount its WHERE its.id = k.service_account_id AND {account_active_sql("its")}
        OFFSET 0
    ) a
    CROSS JOIN LATERAL (
        SELECT * FROM governance_organization its WHERE its.id = a.organization_id AND {organization_active_sql("its")}
        OFFSET 0
    ) o
"""  # noqa: S608


def intake_arrival(
    *, secret: str, slug: str, version: str, at: datetime, also: Also | None = None, parameters: tuple[Any, ...] = ()
) -> Arrival | None:
    """None if the key is unknown, expired or revoked, or its account or organization is suspended. One answer for all
    of them: a caller without a live key must not learn which keys exist."""
    # SQL by hand, prepared: building this query with the ORM takes ten times as long as PostgreSQL takes to answer it.
    rows = fetch(_arrival_sql(also), (key_hash(secret), at, slug, str(_number(version)), *parameters))
    if not rows:
        return None
    key, account, organization, contract, facts = _split(rows[0], PARTS)
    # As if they had been read with select_related: touching `key.service_account` must not cost a query.
    key._state.fields_cache["service_account"] = account
    account._state.fields_cache["organization"] = organization
    actor = Actor(ActorKind.SERVICE, account.id, frozenset({organization.id}), frozenset(key.scopes))
    return Arrival(Credential(key=key, actor=actor), _facts(contract, organization, facts), _also(rows))


def intake_facts(*, organization: Organization, slug: str, version: str) -> IntakeFacts | None:
    """The same facts for an organization that was read before."""
    rows = fetch(_facts_sql(), (organization.id, slug, str(_number(version))))
    if not rows:
        return None
    contract, facts = _split(rows[0], PARTS[3:])
    return _facts(contract, organization, facts)


def intake_own_arrival(*, contract_id: UUID, account_slug: str) -> OwnArrival | None:
    """What `intake_arrival` reads, for an account that needs no key. None if there is no such contract."""
    rows = fetch(_own_arrival_sql(), (contract_id, account_slug))
    return own_side(rows[0]).arrival if rows else None


@dataclass(frozen=True, slots=True)
class OwnSide:
    """The rows made of a query's `own_columns`. Each is None if it does not exist; `arrival` needs organization and
    contract."""

    organization: Organization | None
    contract: Contract | None
    arrival: OwnArrival | None


def own_side(columns: Sequence[Any]) -> OwnSide:
    account, organization, contract, columns = _split(columns, OWN_PARTS)
    facts = _facts(contract, organization, columns) if organization else None
    return OwnSide(organization, contract, OwnArrival(organization, account, facts) if facts else None)


@cache
def own_columns() -> str:
    """The columns of the contract `c`, its organization `o` and what `own_joins` adds, for a larger query that reads an
    own arrival with its own rows."""
    return f"{_columns(OWN_PARTS)}, {FACTS}"


def own_joins(account_slug: str) -> str:
    """`account_slug` is SQL: a parameter or a quoted constant of the program, never a value from outside."""
    return f"""
    LEFT JOIN LATERAL (
        SELECT * FROM governance_serviceaccount WHERE organization_id = o.id AND slug = {account_slug} OFFSET 0
    ) a ON TRUE
    {POLICY}
    """  # noqa: S608


@cache
def _arrival_sql(also: Also | None) -> str:
    """$1 hash of the key, $2 now, $3 slug, $4 version, then the parameters of `also`."""
    # Cached: prepared statements are found by their text, so it must be the same for every request.
    columns, join = (f", {also.columns}", also.join) if also else ("", "")
    contract = CONTRACT.format(slug="$3", version="$4::int")
    return f"SELECT {_columns(PARTS)}, {FACTS}{columns} {BY_KEY} {contract} {POLICY} {join}"


@cache
def _facts_sql() -> str:
    return (
        f"SELECT {_columns(PARTS[3:])}, {FACTS} FROM governance_organization o"  # noqa: S608
        f" {CONTRACT.format(slug='$2', version='$3::int')} {POLICY} WHERE o.id = $1"
    )


@cache
def _own_arrival_sql() -> str:
    return (
        f"SELECT {own_columns()}"  # noqa: S608
        " FROM governance_contract c JOIN governance_organization o ON o.id = c.organization_id"
        f" {own_joins('$2')} WHERE c.id = $1"
    )


def _columns(parts: Parts) -> str:
    return ", ".join(f"{alias}.{name}" for alias, _, names in parts for name in names)


def _split(row: Sequence[Any], parts: Parts) -> list[Any]:
    """One row object per part, then the three columns of `FACTS`."""
    found: list[Any] = []
    start = 0
    for _, model, names in parts:
        end = start + len(names)
        found.append(stored_row(model, names, row[start:end]))
        start = end
    found.append(row[start : start + 3])
    return found


def _also(rows: Rows) -> tuple[tuple[Any, ...], ...]:
    """The additional columns, of those rows that have them (`also` is an outer join)."""
    return tuple(row[WIDTH:] for row in rows if len(row) > WIDTH and row[WIDTH] is not None)


def _facts(contract: Contract | None, organization: Organization, columns: Sequence[Any]) -> IntakeFacts | None:
    if contract is None:
        return None
    policy_sha256, policy_version, shutdowns = columns
    rows = json.loads(shutdowns) if isinstance(shutdowns, str) else shutdowns or ()
    covering = tuple(row for row in rows if shutdown_covers(row, contract, organization))
    return IntakeFacts(contract, organization, policy_sha256 or "", policy_version, covering)


def _number(version: str) -> int:
    """The version as a number; 0, which no contract has, if it is not one."""
    # Ten digits or more may not fit PostgreSQL's integer: the answer must be "no such contract", not an error.
    return int(version) if version.isascii() and version.isdigit() and len(version) < 10 else 0


def decision_get(*, decision_id: UUID) -> EnforcementDecision:
    return tenant_get(EnforcementDecision, decision_id)


def decisions_at_act(*, subject_id: UUID) -> QuerySet[EnforcementDecision]:
    """The decisions before the acts of this attempt, oldest first."""
    return EnforcementDecision.objects.filter(subject_id=subject_id).order_by("id")


def decision_list(*, verdict: str | None = None, contract_id: UUID | None = None) -> QuerySet[EnforcementDecision]:
    rows = EnforcementDecision.objects.order_by("-id")
    if verdict is not None:
        rows = rows.filter(verdict=verdict)
    if contract_id is not None:
        rows = rows.filter(contract_id=contract_id)
    return rows


def decisions_newest_first(
    *,
    limit: int | None = None,
    policy_slug: str | None = None,
    organization_id: UUID | None = None,
    at_intake: bool = False,
) -> Iterator[EnforcementDecision]:
    """All decisions, in bounded memory. `at_intake`: only one for each request, not those before an act."""
    # Pages by id: no cursor stays open while the caller works. With offsets, decisions that arrive meanwhile would
    # shift the pages and rows would come twice.
    rows = EnforcementDecision.objects.order_by("-id")
    if organization_id is not None:
        rows = rows.filter(organization_id=organization_id)
    if at_intake:
        rows = rows.filter(act="")
    if policy_slug is not None:
        rows = rows.filter(contract__policy_slug=policy_slug)
    last, left = None, limit
    while left is None or left > 0:
        size = 500 if left is None else min(500, left)
        page = list((rows.filter(id__lt=last) if last else rows)[:size])
        yield from page
        if len(page) < size:
            return
        last, left = page[-1].id, None if left is None else left - len(page)


VERDICTS = ("allow", "needs_approval", "deny")
HOURS = 24


@dataclass(frozen=True, slots=True)
class IntakeHours:
    """`hours` are (beginning, {verdict: number of decisions}), oldest first. `capped`: more decisions than
    COUNT_LIMIT are not yet in the minute rows, so the newest hours are too low."""

    hours: list[tuple[datetime, dict[str, int]]]
    capped: bool

    @property
    def totals(self) -> dict[str, int]:
        return {verdict: sum(counts[verdict] for _, counts in self.hours) for verdict in VERDICTS}


def intake_by_verdict(*, at: datetime, hours: int = HOURS) -> IntakeHours:
    """Adds up the counted minutes, and counts the decisions after the last counted minute directly."""
    this_hour = at.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
    first = this_hour - timedelta(hours=hours - 1)
    found: Counter[tuple[datetime, str]] = Counter()
    minutes = IntakeMinute.objects.filter(minute__gte=first).order_by()
    for hour, verdict, decisions in minutes.values_list(TruncHour("minute"), "verdict").annotate(sum=Sum("decisions")):
        found[hour, verdict] += decisions
    # The newest minute of any organization: the scheduled task counts all of them together, and an organization
    # without decisions has no row. With its own newest row it would read a long tail that is counted as zero.
    newest = IntakeMinute._base_manager.order_by("-minute").values_list("minute", flat=True).first()
    since = max(newest + timedelta(minutes=1), first) if newest else first
    rows = EnforcementDecision.objects.filter(by_organization(), act="", id__gte=id_floor(since)).order_by("-id")
    # Limited, because a scheduled task that stopped must not make the overview read a day of decisions.
    tail = list(rows.values_list("id", "verdict")[:COUNT_LIMIT])
    found.update((id_moment(id_).replace(minute=0, second=0, microsecond=0), verdict) for id_, verdict in tail)
    shown = [first + timedelta(hours=number) for number in range(hours)]
    return IntakeHours(
        [(hour, {verdict: found[hour, verdict] for verdict in VERDICTS}) for hour in shown],
        capped=len(tail) == COUNT_LIMIT,
    )
