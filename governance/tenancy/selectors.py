"""One row of the tenant's, or 404. Asking for somebody else's is a violation, and looks the same from outside."""

from typing import TypeVar
from uuid import UUID

from django.db.models import Model

from governance.violations.errors import CrossTenant
from reasoncodes.base.errors import NotFound
from reasoncodes.base.tenancy import every_tenant

M = TypeVar("M", bound=Model)


def tenant_get(model: type[M], row_id: UUID, *, lock: bool = False) -> M:
    """`lock`: FOR NO KEY UPDATE on the row itself."""
    rows = model._default_manager.filter(pk=row_id)
    row = (rows.select_for_update(no_key=True, of=("self",)) if lock else rows).first()
    if row is not None:
        return row
    with every_tenant():
        if model._default_manager.filter(pk=row_id).exists():
            raise CrossTenant(subject_type=str(model._meta.model_name), subject_id=row_id)
    raise NotFound
