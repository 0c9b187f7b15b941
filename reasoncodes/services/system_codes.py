"""The system's rows follow `reasoncodes.codes`."""

from django.db import transaction

from reasoncodes.codes import SYSTEM_CODES, SystemCode
from reasoncodes.models import ReasonCode
from reasoncodes.tenancy import every_tenant

WORDING = ["label", "description", "requires_note", "applicable_step_kinds", "emitted"]


def system_codes_synchronise() -> None:
    """Insert what is missing and correct wording; never removes a code that the record may name. Safe to repeat."""
    with every_tenant(), transaction.atomic():
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
