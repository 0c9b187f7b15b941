"""Doors to rows of the record. Changing one is not an unknown method but a broken rule: refused, and itself on record."""

from typing import Any

from django.db.models import Model
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from governance.errors import RecordImmutable
from reasoncodes.api.conventions import ApiView


def record_scopes(scope: str) -> dict[str, str]:
    """Whoever may read the row may be told that it cannot be changed."""
    return dict.fromkeys(("GET", "PUT", "PATCH", "DELETE"), scope)


class RecordApi(ApiView):
    """Subclasses say how the row is found; somebody else's is 404 here too."""

    def find(self, **kwargs: Any) -> Model:
        raise NotImplementedError

    @extend_schema(exclude=True)
    def put(self, request: Request, **kwargs: Any) -> Response:
        return self._refuse(**kwargs)

    @extend_schema(exclude=True)
    def patch(self, request: Request, **kwargs: Any) -> Response:
        return self._refuse(**kwargs)

    @extend_schema(exclude=True)
    def delete(self, request: Request, **kwargs: Any) -> Response:
        return self._refuse(**kwargs)

    def _refuse(self, **kwargs: Any) -> Response:
        row = self.find(**kwargs)
        raise RecordImmutable(subject_type=str(row._meta.model_name), subject_id=row.pk)
