"""Cursor pages in a stable order, newest first by id (UUIDv7 sorts by time)."""

from typing import Any
from uuid import UUID

from rest_framework.pagination import Cursor, CursorPagination
from rest_framework.request import Request

from reasoncodes.base.errors import FieldError, InvalidInput


class CursorPages(CursorPagination):
    page_size = 50
    page_size_query_param = "page_size"
    max_page_size = 200
    ordering = "-id"

    def get_page_size(self, request: Request) -> int | None:
        """A size that cannot be read is refused like any other bad parameter; more than the most gets the most."""
        given = request.query_params.get(self.page_size_query_param, str(self.page_size))
        if not (given.isascii() and given.isdigit() and int(given[:9]) > 0):
            raise InvalidInput(errors=[FieldError("/page_size", f"is a number from 1 to {self.max_page_size}")])
        return min(int(given[:9]), self.max_page_size)

    def get_schema_operation_parameters(self, view: Any) -> list[dict[str, Any]]:
        size = {"type": "integer", "minimum": 1, "default": self.page_size}
        known = {
            "cursor": ({"type": "string"}, "From `next` or `previous` of an earlier page; opaque."),
            "page_size": (size, f"How many; at most {self.max_page_size} are given."),
        }
        return [
            {"name": name, "in": "query", "required": False, "description": text, "schema": schema}
            for name, (schema, text) in known.items()
        ]

    def decode_cursor(self, request: Request) -> Cursor | None:
        """Only what an earlier page gave out: anything else would reach the database as a malformed id."""
        refusal = InvalidInput(errors=[FieldError("/cursor", "is not one that this list gave out")])
        try:
            cursor: Any = super().decode_cursor(request)
            if cursor is not None and cursor.position is not None:
                UUID(cursor.position)
        except Exception as error:
            raise refusal from error
        return cursor
