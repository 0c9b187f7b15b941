"""An organization's own reason codes (create, change, deactivate, take back; each change is on the ledger), and the
system's codes, which are synchronised with the program."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import IntegrityError, transaction

from reasoncodes.base.actors import Actor
from reasoncodes.base.errors import AlreadyExists, NotFound, Refused
from reasoncodes.base.registry import recorder, registered_text_check
from reasoncodes.base.tenancy import every_tenant
from reasoncodes.codes import EMITTED, SYSTEM_CODES, SystemCode
from reasoncodes.models import ReasonCode
from reasoncodes.selectors import reason_code_is_override

CHANGEABLE = frozenset({"label", "description", "requires_note", "applicable_step_kinds", "active"})


def reason_code_create(
    *,
    actor: Actor,
    at: datetime,
    organization_id: UUID,
    scope: str,
    code: str,
    label: str,
    description: str = "",
    requires_note: bool = False,
    applicable_step_kinds: list[str] | None = None,
) -> ReasonCode:
    """A new code, or the organization's own wording for one of the system's codes."""
    if not actor.may_act_in(organization_id):
        raise NotFound
    _check_words({"label": label, "description": description})
    row = ReasonCode(
        organization_id=organization_id,
        scope=scope,
        code=code,
        label=label,
        description=description,
        requires_note=requires_note,
        applicable_step_kinds=applicable_step_kinds or None,
        emitted=(scope, code) in EMITTED,
    )
    try:
        with transaction.atomic():
            row.save(force_insert=True)
            _record(row, action="reason_code.created", actor=actor, at=at)
    # The unique constraint decides: a look-up before the insert would lose the race against a second request.
    except IntegrityError as error:
        raise AlreadyExists(f"The scope {scope} already has this code.") from error
    return row


def reason_code_update(*, actor: Actor, at: datetime, reason_code_id: UUID, changes: Mapping[str, Any]) -> ReasonCode:
    """Changes wording or activity. Scope and code never change, because the record names them."""
    unknown = set(changes) - CHANGEABLE
    if unknown:
        raise ValueError(f"not changeable: {sorted(unknown)}")
    _check_words(changes)
    with transaction.atomic():
        row = _lock_own(actor, reason_code_id)
        if row.emitted and changes.get("active") is False:
            raise Refused("The program itself emits this code, so it cannot be deactivated.")
        changed = {name: value for name, value in _normal(changes).items() if getattr(row, name) != value}
        if not changed:  # no change, so no ledger entry
            return row
        for name, value in changed.items():
            setattr(row, name, value)
        row.save(update_fields=[*changed, "updated_at"])
        _record(row, action="reason_code.changed", actor=actor, at=at, fields=sorted(changed))
    return row


def _normal(changes: Mapping[str, Any]) -> dict[str, Any]:
    """No step kinds and an empty list of them both mean: all."""
    return {name: value or None if name == "applicable_step_kinds" else value for name, value in changes.items()}


def reason_code_deactivate(*, actor: Actor, at: datetime, reason_code_id: UUID) -> ReasonCode:
    """The soft delete: nobody can choose the code any more, and records that name it stay readable."""
    with transaction.atomic():
        row = _lock_own(actor, reason_code_id)
        if row.emitted:
            raise Refused("The program itself emits this code, so it cannot be deactivated. Take the override back.")
        if row.active:
            row.active = False
            row.save(update_fields=["active", "updated_at"])
            _record(row, action="reason_code.deactivated", actor=actor, at=at)
    return row


def reason_code_take_back(*, actor: Actor, at: datetime, reason_code_id: UUID) -> None:
    """Removes the organization's override of a system code: the system's own wording counts again. Only such a row can
    go, because the record goes on naming the code and the system's row still says what it means."""
    with transaction.atomic():
        row = _lock_own(actor, reason_code_id)
        if not reason_code_is_override(row=row):
            raise Refused("This is a code of your own and overrides none of the system. Deactivate it instead.")
        # Before the delete, which takes the id from the row.
        _record(row, action="reason_code.taken_back", actor=actor, at=at)
        row.delete()


def _check_words(words: Mapping[str, Any]) -> None:
    for name in ("label", "description"):
        if words.get(name):
            registered_text_check()(text=words[name], pointer=f"/{name}")


def _lock_own(actor: Actor, reason_code_id: UUID) -> ReasonCode:
    # Two changes at once run one after the other: each compares with the row as the other one left it, and the entries
    # name what really changed.
    row = ReasonCode.objects.select_for_update(no_key=True, of=("self",)).filter(id=reason_code_id).first()
    if row is None:
        raise NotFound
    if row.organization_id is None:
        raise Refused(
            "This is one of the system's codes. Create one of your own with the same scope and code to override it."
        )
    if not actor.may_act_in(row.organization_id):
        raise NotFound
    return row


def _record(row: ReasonCode, *, action: str, actor: Actor, at: datetime, fields: list[str] | None = None) -> None:
    recorder()(
        action=action,
        organization_id=row.organization_id,
        subject_type="reason_code",
        subject_id=row.id,
        actor=actor,
        at=at,
        payload={"scope": row.scope, "code": row.code, "active": row.active, "fields": fields or []},
    )


WORDING = ["label", "description", "requires_note", "applicable_step_kinds", "emitted"]


def system_codes_synchronise() -> None:
    """Inserts missing codes and corrects wording. Never removes a code, because the record may name it. Safe to
    repeat."""
    with every_tenant(), transaction.atomic():
        # One upsert, so that a repeated or concurrent migrate neither fails nor inserts a code twice.
        ReasonCode.objects.bulk_create(
            [_row(code) for code in SYSTEM_CODES],
            update_conflicts=True,
            unique_fields=["organization", "scope", "code"],
            update_fields=WORDING,
        )


def _row(code: SystemCode) -> ReasonCode:
    return ReasonCode(
        scope=code.scope.value,
        code=code.code,
        label=code.label,
        description=code.description,
        requires_note=code.requires_note,
        applicable_step_kinds=list(code.step_kinds) or None,
        emitted=code.emitted,
    )
