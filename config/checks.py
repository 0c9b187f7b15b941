"""System checks: `manage.py check --deploy` reports what production would refuse to start with."""

from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, register
from django.db import Error as DatabaseError
from django.db import connections

from config.database_role import role_fault
from config.safety import unsafe


@register(Tags.security, deploy=True)
def settings_are_safe(**_: Any) -> list[CheckMessage]:
    return [Error(finding, id="holdpoint.E001") for finding in unsafe(settings)]


@register(Tags.database, deploy=True)
def role_is_weak(databases: Any = None, **_: Any) -> list[CheckMessage]:
    """Runs only with `--database default`, as the application's role: without it Django connects to no database."""
    found = []
    for alias in databases or []:
        try:
            with connections[alias].cursor() as cursor:
                found.append(role_fault(cursor))
        except DatabaseError:
            found.append("DATABASE_URL cannot be reached: start PostgreSQL, or correct the address")
    return [Error(fault, id="holdpoint.E002") for fault in found if fault]
