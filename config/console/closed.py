"""Addresses of Django's admin that the console does not have. The routes stand before the admin's own."""

from typing import NoReturn

from django.http import HttpRequest

from governance.console.errors import LookupRefused
from reasoncodes.base.errors import NotFound


def autocomplete_closed(request: HttpRequest) -> NoReturn:
    """Django's answers for any relation of any page, whether a form uses it or not. No form of ours does."""
    raise LookupRefused


def view_on_site_closed(request: HttpRequest, content_type_id: str, object_id: str) -> NoReturn:
    """Django's tells whether any row of any table exists, also another organization's."""
    raise NotFound
