"""Cursor pages in a stable order, newest first by id (UUIDv7 sorts by time)."""

from rest_framework.pagination import CursorPagination


class CursorPages(CursorPagination):
    page_size = 50
    page_size_query_param = "page_size"
    max_page_size = 200
    ordering = "-id"
