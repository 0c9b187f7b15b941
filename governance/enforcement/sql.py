"""Rules that the fast paths need in SQL. Each rule is written once, as a fragment over table aliases; statements are
composed of these fragments. Next to a fragment is the same rule as a condition for the ORM or as a function over rows
in memory, where one is needed. Also the send lock, which makes "nothing is sent after a stop" hold."""

import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from enum import StrEnum
from typing import Any

from django.db import connection
from django.db.models import Q

from governance.contracts.models import Contract
from governance.contracts.states import ContractState
from governance.integrity.states import RECORD_DIFFERS
from governance.people.models import ApiKey, ServiceAccount
from governance.sealing.states import LEDGER_INCONSISTENT
from governance.shutdown.states import ShutdownScope, ShutdownState
from governance.tenancy.models import Organization

# tests/governance/test_rule_parity.py runs all forms of a rule on the same random rows. A form that is changed alone
# fails there; without that test intake and the console could give different answers about the same key or contract.

# Without the limit on length, a target could be a number that does not fit PostgreSQL's integer: an error instead of
# "covers nothing".
VERSION = re.compile(r"[1-9][0-9]{0,8}")

# --- a key has ended -------------------------------------------------------------------------------------------------


def key_not_ended_sql(key: str, at: str) -> str:
    """`key` is an alias of governance_apikey, `at` a timestamp."""
    # `>`: a key has already ended at the exact moment of its expiry. `key_has_ended` has the opposite, `<=`.
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
    """What keeps a contract from taking work. Several may be true at once; the entry point chooses which one a caller
    is told."""

    STATE = "state"
    ORGANIZATION = "organization"
    SHUTDOWN = "shutdown"


def contract_open_sql(contract: str) -> str:
    return f"{contract}.state = '{ContractState.OPEN.value}'"


def policy_active_sql(policy: str) -> str:
    return f"{policy}.state = 'active'"


def shutdown_in_reach_sql(shutdown: str, organization: str) -> str:
    """Engaged, and for the whole installation or for this organization. Whether it covers a given contract is decided
    by `shutdown_covers`."""
    # The target is not compared here: it means something else in each scope, and few shutdowns are engaged at a time.
    return (
        f"({shutdown}.state = '{ShutdownState.ENGAGED.value}'"
        f" AND ({shutdown}.organization_id IS NULL OR {shutdown}.organization_id = {organization}.id))"
    )


def shutdown_covers(shutdown: Mapping[str, Any], contract: Contract, organization: Organization) -> bool:
    """Whether a shutdown that is in reach covers this contract. `contracts_covered` is the same rule for the ORM."""
    match shutdown["scope"]:
        case ShutdownScope.CONTRACT:
            return shutdown["target"] in {contract.slug, f"{contract.slug}/{contract.version}"}
        case ShutdownScope.CONNECTOR:
            return bool(shutdown["target"] == contract.adapter)
        case ShutdownScope.REGION:
            return shutdown["target"] in organization.regions
        case _:  # global, organization, and any scope that this version does not know: stopping is the safe answer
            return True


def contracts_covered(*, scope: str, target: str) -> Q:
    """The contracts that a shutdown with this scope and target covers, among those that it reaches."""
    match scope:
        case ShutdownScope.CONTRACT:
            slug, slash, version = target.partition("/")
            if not slash:
                return Q(slug=slug)
            # Exactly as callers write it, `slug/1`. `int()` alone would also accept `slug/01`, which
            # `shutdown_covers` does not match: the preview would count a contract that the shutdown does not stop.
            return Q(slug=slug, version=int(version)) if VERSION.fullmatch(version) else Q(pk__in=[])
        case ShutdownScope.CONNECTOR:
            return Q(adapter=target)
        case ShutdownScope.REGION:
            return Q(organization__regions__contains=[target])
        case _:
            return Q()


# Scopes whose target names no contract, connector or region, so that a word of ours can stand there.
WHOLE = frozenset({ShutdownScope.GLOBAL, ShutdownScope.ORGANIZATION})


def stopping_reason(covering: Iterable[Mapping[str, Any]]) -> str | None:
    """The reason code of the shutdowns that cover a contract, or None. A drill stops nothing."""
    engaged = [shutdown for shutdown in covering if not shutdown["drill"]]
    # Deny mode first: it is not ended by releasing a shutdown, so the caller must see this reason and no other.
    if any(row["scope"] == ShutdownScope.GLOBAL and row["target"] == LEDGER_INCONSISTENT for row in engaged):
        return LEDGER_INCONSISTENT
    if any(row["scope"] in WHOLE and row["target"] == RECORD_DIFFERS for row in engaged):
        return RECORD_DIFFERS
    return "shutdown_engaged" if engaged else None


def closed_by(
    *, contract: Contract, organization: Organization, covering: Iterable[Mapping[str, Any]]
) -> frozenset[Closed]:
    """Everything that keeps the contract from taking work now. Empty means that it takes work."""
    found = {
        Closed.STATE: contract.state != ContractState.OPEN,
        Closed.ORGANIZATION: organization.status != Organization.Status.ACTIVE,
        Closed.SHUTDOWN: stopping_reason(covering) is not None,
    }
    return frozenset(why for why, holds in found.items() if holds)


# --- the send lock, between "stop" and "send" ------------------------------------------------------------------------
# A transaction that writes an intent takes it shared; one that closes something (a shutdown, a contract, a role) takes
# it exclusively. Each takes it before it reads, and until it ends. So a shutdown waits for the intents that are being
# written, and every later intent sees the shutdown.

# Any number that no other advisory lock uses. All processes must agree on it, also during an upgrade: with a new number
# an old process could send while a new one stops.
SEND_LOCK = 0x686F6C64
# The `first` of a statement that reads what the lock protects. In one and the same statement the read would have a
# snapshot from before the wait, and would not see the shutdown that it waited for.
TAKE_SEND_LOCK = f"SELECT pg_advisory_xact_lock_shared({SEND_LOCK})"


def send_lock_share() -> None:
    """Before the reads that it protects, in a separate statement: their snapshot must be newer than the lock."""
    _send_lock("pg_advisory_xact_lock_shared")


def send_lock_exclude() -> None:
    """Waits for all transactions that send. New ones wait until this one ends."""
    _send_lock("pg_advisory_xact_lock")


def _send_lock(function: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {function}(%s)", [SEND_LOCK])
