"""Doors to rows of the record. Changing one is no unknown method but a broken rule: refused, and itself on record."""

from uuid import UUID

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

    @property
    def default_response_headers(self) -> dict[str, str]:
        """`Allow` does not invite what is always refused."""
        return super().default_response_headers | {"Allow": "GET, HEAD, OPTIONS"}

    def find(self, **address: UUID) -> Model:
        raise TypeError("a subclass names its row")

    @extend_schema(exclude=True)
    def put(self, request: Request, **address: UUID) -> Response:
        return self._refuse(**address)

    @extend_schema(exclude=True)
    def patch(self, request: Request, **address: UUID) -> Response:
        return self._refuse(**address)

    @extend_schema(exclude=True)
    def delete(self, request: Request, **address: UUID) -> Response:
        return self._refuse(**address)

    def _refuse(self, **address: UUID) -> Response:
        row = self.find(**address)
        raise RecordImmutable(subject_type=str(row._meta.model_name), subject_id=row.pk)
