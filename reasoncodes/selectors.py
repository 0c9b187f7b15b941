"""Reading reason codes: lists, what a code means for an organization, what a person may choose, and how often one is
used."""

from collections.abc import Iterable
from uuid import UUID

from django.db.models import Q, QuerySet

from reasoncodes.base.errors import FieldError, InvalidInput, NotFound
from reasoncodes.base.registry import usage_counter
from reasoncodes.models import ReasonCode

# Counting further would make the page slower the more the record grows, for a number that nobody needs exactly.
USAGE_LIMIT = 1000


def reason_code_list(
    *, organization_ids: Iterable[UUID], scope: str | None = None, active: bool | None = None
) -> QuerySet[ReasonCode]:
    """The system's codes and those of these organizations."""
    rows = ReasonCode.objects.filter(Q(organization_id__in=list(organization_ids)) | Q(organization=None))
    if scope is not None:
        rows = rows.filter(scope=scope)
    if active is not None:
        rows = rows.filter(active=active)
    return rows


def reason_code_get(*, reason_code_id: UUID) -> ReasonCode:
    row = ReasonCode.objects.filter(id=reason_code_id).first()
    if row is None:
        raise NotFound
    return row


def reason_code_is_override(*, row: ReasonCode) -> bool:
    """Whether an organization's code has a row of the system behind it."""
    return ReasonCode.objects.filter(organization=None, scope=row.scope, code=row.code).exists()


def reason_code_resolve(*, organization_id: UUID | None, scope: str, code: str) -> ReasonCode | None:
    """What the code means for this organization: its own row replaces the system's. Inactive rows do not count."""
    rows = ReasonCode.objects.filter(Q(organization_id=organization_id) | Q(organization=None), scope=scope, code=code)
    row = rows.order_by("organization_id").first()  # PostgreSQL sorts NULL last: the organization's row first
    return row if row is not None and row.active else None


def reason_codes_active(*, organization_id: UUID | None, scope: str) -> dict[str, frozenset[str]]:
    """Every code that `reason_code_resolve` would find, with the step kinds that may name it; none: all. A code that
    the organization deactivated does not count."""
    rows = ReasonCode.objects.filter(Q(organization_id=organization_id) | Q(organization=None), scope=scope)
    meant: dict[str, tuple[bool, frozenset[str]]] = {}
    for code, active, kinds in rows.order_by("organization_id").values_list("code", "active", "applicable_step_kinds"):
        meant.setdefault(code, (active, frozenset(kinds or ())))
    return {code: kinds for code, (active, kinds) in meant.items() if active}


def reason_code_choices(*, organization_id: UUID | None, scope: str) -> list[ReasonCode]:
    """What a person may choose from, by label: active, not emitted by the program, and the organization's own row
    instead of the system's."""
    rows = ReasonCode.objects.filter(Q(organization_id=organization_id) | Q(organization=None), scope=scope)
    meant: dict[str, ReasonCode] = {}
    for row in rows.order_by("organization_id"):
        meant.setdefault(row.code, row)
    return sorted((row for row in meant.values() if row.active and not row.emitted), key=lambda row: row.label)


def reason_code_require(
    *, organization_id: UUID | None, scope: str, code: str, note: str = "", step_kind: str = ""
) -> ReasonCode:
    """The code that a person chose, or a refusal that lists the valid codes. `step_kind`: of the step that it is said
    about, which the code may be limited to."""
    row = reason_code_resolve(organization_id=organization_id, scope=scope, code=code)
    if row is None:
        raise InvalidInput(
            "The reason code does not exist for this scope, or is not active.",
            errors=_choices(organization_id, scope),
        )
    if step_kind and row.applicable_step_kinds and step_kind not in row.applicable_step_kinds:
        kinds = ", ".join(row.applicable_step_kinds)
        raise InvalidInput(errors=[FieldError("/reason_code", f"is for steps of kind {kinds} only", rule="step_kind")])
    if row.requires_note and not note.strip():
        raise InvalidInput(f"The reason code {row.code} requires a note.")
    return row


def _choices(organization_id: UUID | None, scope: str) -> list[FieldError]:
    rows = reason_code_list(
        organization_ids=[organization_id] if organization_id else [], scope=scope, active=True
    ).values_list("code", flat=True)
    return [FieldError("/reason_code", "one of: " + ", ".join(sorted(set(rows))), rule="unknown_reason_code")]


def reason_code_usage(*, organization_id: UUID | None, codes: list[str]) -> dict[str, int]:
    """How often the record names each code, counted up to USAGE_LIMIT."""
    return usage_counter()(organization_id=organization_id, codes=codes, limit=USAGE_LIMIT)
