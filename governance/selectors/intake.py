"""Everything that is known about a request before its body is read, in one round trip.

Written in SQL: the ORM would take ten times as long to put the query together as PostgreSQL takes to answer it.
"""

import json
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any
from uuid import UUID

from django.db import connection
from django.db.models import Model

from governance.keys import key_hash
from governance.models import ApiKey, Contract, Organization, ServiceAccount
from governance.selectors.identity import Credential
from reasoncodes.actors import Actor, ActorKind


@dataclass(frozen=True, slots=True)
class IntakeFacts:
    """The contract as it is now, the policy that decides, and the shutdowns that cover it."""

    contract: Contract
    policy_sha256: str
    policy_version: int | None
    shutdowns: tuple[dict[str, Any], ...]


@dataclass(frozen=True, slots=True)
class Arrival:
    """Who knocks, and at what door. `facts` is None when the organization has no such contract version."""

    credential: Credential
    facts: IntakeFacts | None


PARTS: tuple[tuple[str, type[Model]], ...] = (
    ("k", ApiKey),
    ("a", ServiceAccount),
    ("o", Organization),
    ("c", Contract),
)
SHUTDOWNS = """
    (SELECT json_agg(
        json_build_object('id', s.id, 'scope', s.scope, 'target', s.target, 'drill', s.drill) ORDER BY s.id)
     FROM governance_shutdown s
     WHERE s.state = 'engaged' AND (s.organization_id IS NULL OR s.organization_id = o.id))
"""
POLICY_JOIN = """
    LEFT JOIN governance_policy p ON p.organization_id = o.id AND p.slug = c.policy_slug AND p.state = 'active'
"""
CONTRACT_JOIN = f"""
    LEFT JOIN governance_contract c ON c.organization_id = o.id AND c.slug = %(slug)s AND c.version = %(version)s
    {POLICY_JOIN}
"""


def intake_arrival(*, secret: str, slug: str, version: str, at: datetime) -> Arrival | None:
    """None when the key is unknown, expired, revoked or suspended: the caller learns no difference."""
    with connection.cursor() as cursor:
        cursor.execute(_arrival_sql(), {"sha": key_hash(secret), "at": at, "slug": slug, "version": _number(version)})
        row = cursor.fetchone()
    if row is None:
        return None
    key, account, organization, contract, rest = _models(row)
    key.service_account = account
    account.organization = organization
    actor = Actor(ActorKind.SERVICE, account.id, frozenset({organization.id}), frozenset(key.scopes))
    return Arrival(Credential(key=key, actor=actor), _facts(contract, organization, rest))


def intake_facts(*, organization: Organization, slug: str, version: str) -> IntakeFacts | None:
    """The same facts for an organization that is known already."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT {_columns('c', Contract)}, p.snapshot_sha256, p.version, {SHUTDOWNS}"  # noqa: S608
            f" FROM governance_organization o {CONTRACT_JOIN} WHERE o.id = %(organization)s",
            {"slug": slug, "version": _number(version), "organization": organization.id},
        )
        row = cursor.fetchone()
    if row is None:
        return None
    width = len(Contract._meta.concrete_fields)
    return _facts(_model(Contract, row[:width]), organization, row[width:])


@dataclass(frozen=True, slots=True)
class OwnArrival:
    """Holdpoint itself at a contract's door. `account` is None while the organization has none of this name."""

    organization: Organization
    account: ServiceAccount | None
    facts: IntakeFacts


def intake_own_arrival(*, contract_id: UUID, account_slug: str) -> OwnArrival | None:
    """What `intake_arrival` finds, for an account that needs no key. None when there is no such contract."""
    with connection.cursor() as cursor:
        cursor.execute(_own_arrival_sql(), {"contract": contract_id, "account": account_slug})
        row = cursor.fetchone()
    if row is None:
        return None
    account, organization, contract, rest = _models(row, PARTS[1:])
    facts = _facts(contract, organization, rest)
    return OwnArrival(organization, account, facts) if facts else None


@cache
def _own_arrival_sql() -> str:
    columns = ", ".join(_columns(alias, model) for alias, model in PARTS[1:])
    return (
        f"SELECT {columns}, p.snapshot_sha256, p.version, {SHUTDOWNS}"  # noqa: S608
        " FROM governance_contract c JOIN governance_organization o ON o.id = c.organization_id"
        " LEFT JOIN governance_serviceaccount a ON a.organization_id = o.id AND a.slug = %(account)s"
        f" {POLICY_JOIN} WHERE c.id = %(contract)s"
    )


@cache
def _arrival_sql() -> str:
    columns = ", ".join(_columns(alias, model) for alias, model in PARTS)
    return (
        f"SELECT {columns}, p.snapshot_sha256, p.version, {SHUTDOWNS}"  # noqa: S608
        " FROM governance_apikey k"
        " JOIN governance_serviceaccount a ON a.id = k.service_account_id AND a.status = 'active'"
        " JOIN governance_organization o ON o.id = a.organization_id AND o.status = 'active'"
        f" {CONTRACT_JOIN}"
        " WHERE k.sha256 = %(sha)s AND k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > %(at)s)"
    )


def _columns(alias: str, model: type[Model]) -> str:
    return ", ".join(f"{alias}.{field.column}" for field in model._meta.concrete_fields)


def _models(row: tuple[Any, ...], parts: tuple[tuple[str, type[Model]], ...] = PARTS) -> list[Any]:
    """One instance per part, then the rest of the row."""
    found, start = [], 0
    for _, model in parts:
        end = start + len(model._meta.concrete_fields)
        found.append(_model(model, row[start:end]))
        start = end
    return [*found, row[start:]]


def _model(model: type[Model], values: tuple[Any, ...]) -> Any:
    """None for the empty side of a LEFT JOIN."""
    if values[0] is None:
        return None
    return model.from_db(connection.alias, [field.attname for field in model._meta.concrete_fields], values)


def _facts(contract: Contract | None, organization: Organization, rest: tuple[Any, ...]) -> IntakeFacts | None:
    if contract is None:
        return None
    policy_sha256, policy_version, shutdowns = rest
    rows = json.loads(shutdowns) if isinstance(shutdowns, str) else shutdowns or []
    covering = tuple(row for row in rows if _covers(row, contract, organization))
    return IntakeFacts(contract, policy_sha256 or "", policy_version, covering)


def _number(version: str) -> int:
    """Versions start at 1; what is no number of that kind matches none."""
    return int(version) if version.isascii() and version.isdigit() and len(version) < 10 else 0


def _covers(shutdown: dict[str, Any], contract: Contract, organization: Organization) -> bool:
    match shutdown["scope"]:
        case "contract":
            return shutdown["target"] in {contract.slug, f"{contract.slug}/{contract.version}"}
        case "connector":
            return bool(shutdown["target"] == contract.adapter)
        case "region":
            return shutdown["target"] in organization.regions
        case _:
            return True
