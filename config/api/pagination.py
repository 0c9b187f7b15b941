"""Cursor pages in a stable order: newest first by id, because a UUIDv7 sorts by time."""

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
        """A size that is not a number is refused; a size above the maximum gets the maximum."""
        given = request.query_params.get(self.page_size_query_param, str(self.page_size))
        # isdigit() is also true for other scripts' digits. Nine digits are enough, and int() raises for very
        # long texts.
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
        """Accepts only cursors that an earlier page gave out."""
        refusal = InvalidInput(errors=[FieldError("/cursor", "is not one that this list gave out")])
        try:
            cursor: Any = super().decode_cursor(request)
            if cursor is not None and cursor.position is not None:
                # Otherwise the text would reach PostgreSQL as a malformed id, and the answer would be a 500.
                UUID(cursor.position)
        # DRF raises different errors for bad base64, bad query text and bad positions; all of them mean a bad cursor.
        except Exception as error:
            raise refusal from error
        return cursor
