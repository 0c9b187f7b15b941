"""Simulation: re-decide recorded decisions with a policy's draft and tell what would change. Writes nothing."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from governance.canonical import canonical_sha256
from governance.enforcement import approval_document
from governance.errors import PolicyInvalid
from governance.models import EnforcementDecision, Policy
from governance.selectors import SnapshotBroken, decisions_newest_first
from governance.services.decision import redecide
from governance.services.policy import policy_problems
from governance.services.snapshot import policy_snapshot
from reasoncodes.errors import FieldError

PROGRESS_EVERY = 500


@dataclass(frozen=True, slots=True)
class Change:
    """One decision that would come out differently."""

    decision_id: UUID
    before: str
    after: str
    rule_before: str
    rule_after: str
    reason_code: str


@dataclass(slots=True)
class Tally:
    """Counts only: memory does not grow with the number of decisions. `unreadable`: a snapshot is gone or altered, or
    the request was erased by order."""

    decided: int = 0
    changed: int = 0
    unreadable: int = 0
    by_move: Counter[str] = field(default_factory=Counter)
    by_rule: Counter[str] = field(default_factory=Counter)

    def as_json(self) -> dict[str, Any]:
        return {
            "decided": self.decided,
            "changed": self.changed,
            "unreadable": self.unreadable,
            "by_move": dict(sorted(self.by_move.items())),
            "by_rule": dict(sorted(self.by_rule.items())),
        }


def policy_simulate(*, policy: Policy, limit: int) -> Iterator[Change | Tally]:
    """Changes as they are found, the running tally now and then, and the final tally last."""
    problems = policy_problems(organization_id=policy.organization_id, rules=policy.rules)
    if problems:
        raise PolicyInvalid(errors=[FieldError(p.pointer, p.message, rule=p.rule) for p in problems])
    return _simulate(policy, limit)


def _simulate(policy: Policy, limit: int) -> Iterator[Change | Tally]:
    draft, tally = policy_snapshot(policy=policy), Tally()
    digest = canonical_sha256(draft)
    rows = decisions_newest_first(limit=limit, policy_slug=policy.slug, organization_id=policy.organization_id)
    for row in rows:
        try:
            change = _redecide(row, draft, digest)
        except SnapshotBroken:
            change = None
            tally.unreadable += 1
        tally.decided += 1
        if change is not None:
            tally.changed += 1
            tally.by_move[f"{change.before} -> {change.after}"] += 1
            tally.by_rule[change.rule_after or change.reason_code] += 1
            yield change
        if tally.decided % PROGRESS_EVERY == 0:
            yield tally
    yield tally


def _redecide(row: EnforcementDecision, draft: dict[str, Any], digest: str) -> Change | None:
    if row.request is None:
        raise SnapshotBroken("erased by order")
    again = redecide(row=row, policy=draft, policy_sha256=digest)
    reason, approval = again.reason_code or "", approval_document(again.approval)
    if (again.verdict.value, reason, approval) == (row.verdict, row.reason_code, row.approval):
        return None
    return Change(row.id, row.verdict, again.verdict.value, row.rule_id, again.rule_id or "", reason)
