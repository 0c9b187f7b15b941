"""What people do with a policy: draft, change, publish, archive, simulate. A published version does not change; the
next draft of its slug is the next version."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from time import monotonic
from typing import Any
from uuid import UUID

from django.db import IntegrityError, transaction
from django.db.models import Max
from django_fsm import TransitionNotAllowed

from governance.authorship.services import author_require, authorship_add, authorship_copy
from governance.authorship.states import WorkKind
from governance.boundary.services import content_check, reference_check, text_check
from governance.enforcement.models import EnforcementDecision, SnapshotBroken
from governance.enforcement.rules import approval_document
from governance.enforcement.selectors import decisions_newest_first
from governance.enforcement.services import policy_snapshot, redecide, snapshot_store
from governance.enforcement.sql import send_lock_exclude
from governance.ledger.rules.entry import canonical_sha256
from governance.ledger.services import ledger_append
from governance.policies.errors import PolicyInvalid
from governance.policies.models import Policy
from governance.policies.rules.loosening import rules_loosening, weaker
from governance.policies.rules.problems import PolicyProblem, rules_problems
from governance.policies.selectors import policy_get, policy_list, policy_lock, reviewer_tiers
from governance.policies.states import PolicyState
from governance.tenancy.models import Organization
from governance.violations.errors import RecordImmutable
from governance.violations.services import violations_recorded
from reasoncodes.base.actors import Actor
from reasoncodes.base.errors import AlreadyExists, FieldError, NotFound, WrongState
from reasoncodes.codes import Scope
from reasoncodes.selectors import reason_code_list


def policy_problems(*, organization_id: UUID, rules: Any) -> tuple[PolicyProblem, ...]:
    """What is wrong with these rules: asked while somebody edits, before a simulation and before publishing."""
    codes = reason_code_list(organization_ids=[organization_id], scope=Scope.DENIAL, active=True)
    return rules_problems(
        rules,
        reason_codes=set(codes.values_list("code", flat=True)),
        tiers=reviewer_tiers(organization_id=organization_id),
    )


def policy_create(
    *, actor: Actor, at: datetime, organization: Organization, slug: str, title: str, rules: list[dict[str, Any]]
) -> Policy:
    """Creates a draft, as the next version of its slug. A draft may have problems; publishing refuses them."""
    if not actor.may_act_in(organization.id):
        raise NotFound
    _check_words({"slug": slug, "title": title, "rules": rules})
    author = author_require(actor=actor)
    try:
        with transaction.atomic():
            # Two drafts of one slug must not compute the same next version. FOR NO KEY UPDATE: FOR UPDATE would block
            # every insert that refers to the organization, and so all intake.
            Organization.objects.select_for_update(no_key=True).get(id=organization.id)
            siblings = Policy.objects.filter(organization=organization, slug=slug)
            latest = siblings.aggregate(latest=Max("version"))["latest"] or 0
            policy = Policy(
                organization=organization,
                slug=slug,
                version=latest + 1,
                title=title,
                rules=rules,
                written_by_id=author,
            )
            policy.save(force_insert=True)
            _add_author(policy, actor=actor, at=at)
            _keep_authors(policy, at=at)
            _record(policy, "policy.created", actor=actor, at=at)
    except IntegrityError as error:
        raise AlreadyExists from error
    return policy


@violations_recorded
def policy_change(*, actor: Actor, at: datetime, policy_id: UUID, changes: Mapping[str, Any]) -> Policy:
    with transaction.atomic():
        policy = policy_lock(actor=actor, policy_id=policy_id)
        if policy.state != PolicyState.DRAFT:
            raise RecordImmutable(
                "This version is published. Draft a new one.",
                subject_type="policy",
                subject_id=policy.id,
                organization_id=policy.organization_id,
            )
        _check_words(changes)
        author = author_require(actor=actor)
        for name, value in changes.items():
            setattr(policy, name, value)
        policy.written_by_id = author
        policy.save(update_fields=[*changes, "written_by"])
        _add_author(policy, actor=actor, at=at)
        _record(policy, "policy.changed", actor=actor, at=at, fields=sorted(changes))
    return policy


def policy_publish(*, actor: Actor, at: datetime, policy_id: UUID) -> Policy:
    """Validates the draft, archives the active version and makes the draft the active one. One transaction, so that no
    request finds the slug without an active version and is denied. What is sent after it was decided under it."""
    with transaction.atomic():
        # Waits for intents that are being written: their policy was read as active before this commit.
        send_lock_exclude()
        # Two drafts that are published at once lock different policy rows, and both would archive the same version.
        # The organization's lock makes the second one wait and see the first. Lock order: organization, then policy.
        organization_id = policy_get(policy_id=policy_id).organization_id
        Organization.objects.select_for_update(no_key=True).get(id=organization_id)
        policy = policy_lock(actor=actor, policy_id=policy_id)
        _require_valid(policy)
        previous = (
            Policy.objects.select_for_update(no_key=True)
            .filter(organization_id=policy.organization_id, slug=policy.slug, state=PolicyState.ACTIVE)
            .first()
        )
        if previous is not None:
            _archive(previous, actor=actor, at=at)
        digest = snapshot_store(kind="policy", document=policy_snapshot(policy=policy), at=at)
        try:
            policy.publish(snapshot_sha256=digest)
        except TransitionNotAllowed as error:
            raise WrongState(f"A policy that is {policy.state} cannot be published.") from error
        policy.published_at = at
        policy.save(update_fields=["state", "snapshot_sha256", "published_at"])
        _record(policy, "policy.published", actor=actor, at=at, snapshot=digest)
    return policy


def policy_archive(*, actor: Actor, at: datetime, policy_id: UUID) -> Policy:
    """Archives a policy. While a slug has no active version, every attempt under it is denied."""
    with transaction.atomic():
        send_lock_exclude()
        policy = policy_lock(actor=actor, policy_id=policy_id)
        try:
            _archive(policy, actor=actor, at=at)
        except TransitionNotAllowed as error:
            raise WrongState(f"A policy that is {policy.state} cannot be archived.") from error
    return policy


def _check_words(written: Mapping[str, Any]) -> None:
    """Refuses names of people, secrets and patient data, in drafts too: a rule that names a patient would carry the
    name into the snapshot of every decision."""
    if "title" in written:
        text_check(text=written["title"], pointer="/title")
    reference_check(reference=written.get("slug", ""), pointer="/slug")
    for index, rule in enumerate(written.get("rules", ())):
        content_check(content=rule, pointer=f"/rules/{index}")


def _add_author(policy: Policy, *, actor: Actor, at: datetime) -> None:
    authorship_add(
        actor=actor,
        at=at,
        organization_id=policy.organization_id,
        kind=WorkKind.POLICY,
        subject_ids=[policy.id],
    )


def _keep_authors(policy: Policy, *, at: datetime) -> None:
    """Who wrote the same rules in an earlier version that was never published is an author of this one too. Otherwise
    a second person's "new version" would be a way to lose the first."""
    same = Policy.objects.filter(
        organization_id=policy.organization_id, slug=policy.slug, published_at=None, rules=policy.rules
    ).exclude(id=policy.id)
    for old in same.order_by("-version").values_list("id", flat=True)[:50]:
        authorship_copy(at=at, organization_id=policy.organization_id, kind=WorkKind.POLICY, copies={policy.id: old})


def _archive(policy: Policy, *, actor: Actor, at: datetime) -> None:
    policy.archive()
    policy.save(update_fields=["state"])
    _record(policy, "policy.archived", actor=actor, at=at)


def _record(policy: Policy, action: str, *, actor: Actor, at: datetime, **facts: Any) -> None:
    ledger_append(
        action=action,
        organization_id=policy.organization_id,
        subject_type="policy",
        subject_id=policy.id,
        actor=actor,
        at=at,
        payload={"slug": policy.slug, "version": policy.version, **facts},
    )


# A simulation of many decisions takes minutes. Without a tally now and then, a reader of the stream sees nothing when
# nothing changes.
PROGRESS_EVERY = 500
# A proposal carries the tally of so many decisions, and waits so long for it at most.
PROPOSED_WITH = 500
PROPOSED_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class DecisionChange:
    """One stored decision that this policy would decide differently."""

    decision_id: UUID
    before: str
    after: str
    rule_before: str
    rule_after: str
    reason_code: str
    loosens: bool = False
    """It would pass, or pass more easily."""


@dataclass(slots=True)
class DecisionTally:
    """Numbers only, so that memory does not grow with the number of decisions. `unreadable` counts decisions whose
    snapshot is missing or altered, or whose request was erased."""

    decided: int = 0
    changed: int = 0
    unreadable: int = 0
    loosened: int = 0
    by_move: Counter[str] = field(default_factory=Counter)
    by_rule: Counter[str] = field(default_factory=Counter)

    def as_json(self) -> dict[str, Any]:
        return {
            "decided": self.decided,
            "changed": self.changed,
            "unreadable": self.unreadable,
            "loosened": self.loosened,
            "by_move": dict(sorted(self.by_move.items())),
            "by_rule": dict(sorted(self.by_rule.items())),
        }


def policy_simulate(*, policy: Policy, limit: int) -> Iterator[DecisionChange | DecisionTally]:
    """Decides stored requests again with this policy. Yields each change, the tally so far now and then, and the final
    tally last."""
    # Not part of the generator: a problem must be raised now, while the caller can still answer with an error status.
    _require_valid(policy)
    return _simulate(policy, limit)


@dataclass(frozen=True, slots=True)
class PublishEffect:
    """What publishing a draft would change. `active`: the version that decides now. `loosening`: why a rule may let
    more pass, by its id."""

    active: Policy | None
    tally: DecisionTally
    loosening: dict[str, str]

    @property
    def loosens(self) -> bool:
        return bool(self.loosening) or self.tally.loosened > 0


def policy_effect(*, policy: Policy) -> PublishEffect:
    """Compares a draft with the active version, by its rules and by the newest stored decisions."""
    _require_valid(policy)
    active = policy_list(slug=policy.slug, state=PolicyState.ACTIVE).filter(organization_id=policy.organization_id)
    now = active.first()
    tally = DecisionTally()
    for item in _simulate(policy, PROPOSED_WITH, until=monotonic() + PROPOSED_SECONDS):
        tally = item if isinstance(item, DecisionTally) else tally
    before = policy_snapshot(policy=now)["rules"] if now else []
    return PublishEffect(now, tally, rules_loosening(before, policy_snapshot(policy=policy)["rules"]))


def _require_valid(policy: Policy) -> None:
    problems = policy_problems(organization_id=policy.organization_id, rules=policy.rules)
    if problems:
        raise PolicyInvalid(errors=[FieldError(p.pointer, p.message, rule=p.rule) for p in problems])


def _simulate(policy: Policy, limit: int, *, until: float | None = None) -> Iterator[DecisionChange | DecisionTally]:
    draft, tally = policy_snapshot(policy=policy), DecisionTally()
    digest = canonical_sha256(draft)
    rows = decisions_newest_first(
        limit=limit, policy_slug=policy.slug, organization_id=policy.organization_id, at_intake=True
    )
    for row in rows:
        if until is not None and monotonic() > until:
            break
        try:
            change = _redecide(row, draft, digest)
        except SnapshotBroken:
            change = None
            tally.unreadable += 1
        tally.decided += 1
        if change is not None:
            tally.changed += 1
            tally.loosened += change.loosens
            tally.by_move[f"{change.before} -> {change.after}"] += 1
            tally.by_rule[change.rule_after or change.reason_code] += 1
            yield change
        if tally.decided % PROGRESS_EVERY == 0:
            yield tally
    yield tally


def _redecide(row: EnforcementDecision, draft: dict[str, Any], digest: str) -> DecisionChange | None:
    if row.request is None:
        raise SnapshotBroken("erased by order")
    again = redecide(row=row, policy=draft, policy_sha256=digest)
    reason, approval = again.reason_code or "", approval_document(again.approval)
    if (again.verdict.value, reason, approval) == (row.verdict, row.reason_code, row.approval):
        return None
    loosens = weaker(
        {"verdict": row.verdict, **(row.approval or {})}, {"verdict": again.verdict.value, **(approval or {})}
    )
    return DecisionChange(row.id, row.verdict, again.verdict.value, row.rule_id, again.rule_id or "", reason, loosens)
