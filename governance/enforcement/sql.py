"""Rules that the fast paths say in SQL, each once. Beside each stands its other spelling, if it needs one: a condition
for the ORM, or a function over rows that are read already. tests/governance/test_rule_parity.py runs all of them on the
same random rows, so a spelling that is changed alone fails there.

The SQL is a fragment over table aliases. Statements are put together from these fragments and spell no rule themselves.
"""

import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from enum import StrEnum
from typing import Any

from django.db.models import Q

from governance.contracts.models import Contract
from governance.contracts.states import ContractState
from governance.people.models import ApiKey, ServiceAccount
from governance.sealing.states import LEDGER_INCONSISTENT
from governance.shutdown.states import ShutdownScope, ShutdownState
from governance.tenancy.models import Organization

VERSION = re.compile(r"[1-9][0-9]{0,8}")

# --- a key has ended -------------------------------------------------------------------------------------------------


def key_not_ended_sql(key: str, at: str) -> str:
    """`key` is an alias of governance_apikey, `at` a timestamp. A key ends at its moment, not after it."""
    return f"({key}.revoked_at IS NULL AND ({key}.expires_at IS NULL OR {key}.expires_at > {at}))"


def key_not_ended(at: datetime) -> Q:
    return Q(Q(expires_at=None) | Q(expires_at__gt=at), revoked_at=None)


def key_has_ended(key: ApiKey, at: datetime) -> bool:
    return key.revoked_at is not None or (key.expires_at is not None and key.expires_at <= at)


# --- a key is live: not ended, and neither its account nor its organization is suspended ------------------------------


def account_active_sql(account: str) -> str:
    return f"{account}.status = '{ServiceAccount.Status.ACTIVE.value}'"


def organization_active_sql(organization: str) -> str:
    return f"{organization}.status = '{Organization.Status.ACTIVE.value}'"


def key_live(at: datetime) -> Q:
    return Q(
        key_not_ended(at),
        service_account__status=ServiceAccount.Status.ACTIVE,
        service_account__organization__status=Organization.Status.ACTIVE,
    )


# --- a contract takes work now: open, in an active organization, and no shutdown covers it ----------------------------


class Closed(StrEnum):
    """What keeps a contract from taking work. Several may hold at once; which one a caller is told, the door says."""

    STATE = "state"
    ORGANIZATION = "organization"
    SHUTDOWN = "shutdown"


def contract_open_sql(contract: str) -> str:
    return f"{contract}.state = '{ContractState.OPEN.value}'"


def policy_active_sql(policy: str) -> str:
    return f"{policy}.state = 'active'"


def shutdown_in_reach_sql(shutdown: str, organization: str) -> str:
    """Engaged, and everybody's or this organization's. Which contracts of it are covered, `shutdown_covers` says: the
    rows are few, and a target has a meaning of its own in each scope."""
    return (
        f"({shutdown}.state = '{ShutdownState.ENGAGED.value}'"
        f" AND ({shutdown}.organization_id IS NULL OR {shutdown}.organization_id = {organization}.id))"
    )


def shutdown_covers(shutdown: Mapping[str, Any], contract: Contract, organization: Organization) -> bool:
    """Of a shutdown that is in reach. The ORM's spelling, from a shutdown to its contracts, is `contracts_covered`."""
    match shutdown["scope"]:
        case ShutdownScope.CONTRACT:
            return shutdown["target"] in {contract.slug, f"{contract.slug}/{contract.version}"}
        case ShutdownScope.CONNECTOR:
            return bool(shutdown["target"] == contract.adapter)
        case ShutdownScope.REGION:
            return shutdown["target"] in organization.regions
        case _:
            return True


def contracts_covered(*, scope: str, target: str) -> Q:
    """The contracts that a shutdown with this scope and target covers, among those that it reaches."""
    match scope:
        case ShutdownScope.CONTRACT:
            slug, slash, version = target.partition("/")
            if not slash:
                return Q(slug=slug)
            # As it is written, `slug/1`: `slug/01` is no contract's name, so it covers none.
            return Q(slug=slug, version=int(version)) if VERSION.fullmatch(version) else Q(pk__in=[])
        case ShutdownScope.CONNECTOR:
            return Q(adapter=target)
        case ShutdownScope.REGION:
            return Q(organization__regions__contains=[target])
        case _:
            return Q()


def stopping_reason(covering: Iterable[Mapping[str, Any]]) -> str | None:
    """The reason code of the shutdowns that cover a contract; a drill stops nothing. Deny mode is named before all."""
    engaged = [shutdown for shutdown in covering if not shutdown["drill"]]
    if any(row["scope"] == ShutdownScope.GLOBAL and row["target"] == LEDGER_INCONSISTENT for row in engaged):
        return LEDGER_INCONSISTENT
    return "shutdown_engaged" if engaged else None


def closed_by(
    *, contract: Contract, organization: Organization, covering: Iterable[Mapping[str, Any]]
) -> frozenset[Closed]:
    """Everything that keeps the contract from taking work now. Empty: it takes work."""
    found = {
        Closed.STATE: contract.state != ContractState.OPEN,
        Closed.ORGANIZATION: organization.status != Organization.Status.ACTIVE,
        Closed.SHUTDOWN: stopping_reason(covering) is not None,
    }
    return frozenset(why for why, holds in found.items() if holds)
