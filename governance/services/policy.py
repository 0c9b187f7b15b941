"""Policies: draft, change, publish, new version. A published version never changes."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import IntegrityError, transaction
from django.db.models import Max
from django_fsm import TransitionNotAllowed

from governance.errors import PolicyInvalid, RecordImmutable
from governance.ledger.append import ledger_append
from governance.models import Organization, Policy
from governance.policies import PolicyProblem, rules_problems
from governance.selectors import author_of, policy_get, policy_lock, reviewer_tiers
from governance.services.note import content_check, reference_check, text_check
from governance.services.snapshot import policy_snapshot, snapshot_store
from governance.services.violation import violations_recorded
from governance.states import PolicyState
from reasoncodes.actors import Actor
from reasoncodes.codes import Scope
from reasoncodes.errors import AlreadyExists, FieldError, NotFound, WrongState
from reasoncodes.selectors import reason_code_list


def policy_problems(*, organization_id: UUID, rules: Any) -> tuple[PolicyProblem, ...]:
    """For live validation and before every write."""
    codes = reason_code_list(organization_ids=[organization_id], scope=Scope.DENIAL, active=True)
    return rules_problems(
        rules,
        reason_codes=set(codes.values_list("code", flat=True)),
        tiers=reviewer_tiers(organization_id=organization_id),
    )


def policy_create(
    *, actor: Actor, at: datetime, organization: Organization, slug: str, title: str, rules: list[dict[str, Any]]
) -> Policy:
    """A draft, the next version of its slug. A draft may have faults; publishing finds them."""
    if not actor.may_act_in(organization.id):
        raise NotFound
    _check_words({"slug": slug, "title": title, "rules": rules})
    try:
        with transaction.atomic():
            Organization.objects.select_for_update(no_key=True).get(id=organization.id)
            siblings = Policy.objects.filter(organization=organization, slug=slug)
            latest = siblings.aggregate(latest=Max("version"))["latest"] or 0
            policy = Policy(
                organization=organization,
                slug=slug,
                version=latest + 1,
                title=title,
                rules=rules,
                written_by_id=author_of(actor=actor),
            )
            policy.save(force_insert=True)
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
        for name, value in changes.items():
            setattr(policy, name, value)
        policy.written_by_id = author_of(actor=actor)
        policy.save(update_fields=[*changes, "written_by"])
        _record(policy, "policy.changed", actor=actor, at=at, fields=sorted(changes))
    return policy


def policy_publish(*, actor: Actor, at: datetime, policy_id: UUID) -> Policy:
    """Validates, archives the active version and takes its place, in one transaction."""
    with transaction.atomic():
        # Two drafts published at once lock different rows: the organization's keeps them in line.
        organization_id = policy_get(policy_id=policy_id).organization_id
        Organization.objects.select_for_update(no_key=True).get(id=organization_id)
        policy = policy_lock(actor=actor, policy_id=policy_id)
        problems = policy_problems(organization_id=policy.organization_id, rules=policy.rules)
        if problems:
            raise PolicyInvalid(errors=[FieldError(p.pointer, p.message, rule=p.rule) for p in problems])
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
    """Without an active version every attempt under it is denied."""
    with transaction.atomic():
        policy = policy_lock(actor=actor, policy_id=policy_id)
        try:
            _archive(policy, actor=actor, at=at)
        except TransitionNotAllowed as error:
            raise WrongState(f"A policy that is {policy.state} cannot be archived.") from error
    return policy


def _check_words(written: Mapping[str, Any]) -> None:
    """Also for a draft, which is stored: a rule about one patient would carry the name into every decision."""
    if "title" in written:
        text_check(text=written["title"], pointer="/title")
    reference_check(reference=written.get("slug", ""), pointer="/slug")
    for index, rule in enumerate(written.get("rules", ())):
        content_check(content=rule, pointer=f"/rules/{index}")


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
