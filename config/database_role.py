"""The serving role must not be able to change the record. PostgreSQL is asked, because a role's name says nothing about
its rights."""

from typing import Any

import structlog
from django.core.exceptions import ImproperlyConfigured
from django.db.backends.signals import connection_created

log = structlog.get_logger("holdpoint.startup")
# One row, in the order of FAULTS. MEMBER and not USAGE: a role that does not inherit the owner's rights may still
# `SET ROLE` to the owner. LEFT JOIN and coalesce keep the row before the first migrate, when there is no table yet.
RIGHTS = """
SELECT r.rolsuper, r.rolbypassrls OR r.rolcreaterole,
       coalesce(pg_has_role(current_user, c.relowner, 'MEMBER'), false),
       coalesce(has_table_privilege(c.oid, 'UPDATE, DELETE, TRUNCATE'), false)
FROM pg_roles r LEFT JOIN pg_class c ON c.oid = to_regclass('governance_ledgerentry')
WHERE r.rolname = current_user
"""
FAULTS = (
    "is a superuser",
    "may make roles or pass row security",
    "owns the record's tables, and could drop what protects them",
    "may change or delete what is on record",
)
WAY_OUT = "serve as the application's role, made as docs/deploy.md says, and run `manage.py grant_application_role`"


def role_fault(cursor: Any) -> str:
    """The worst thing that the role of this connection may do, and what to do about it; empty if the role is as it
    should be."""
    cursor.execute(RIGHTS)
    row = cursor.fetchone()
    return next(
        (f"DATABASE_URL's role {fault}: {WAY_OUT}" for given, fault in zip(row, FAULTS, strict=True) if given), ""
    )


def refuse_powerful_roles() -> None:
    """Wiring of web, worker and beat in production. Migrations need such a role and do not call this."""
    connection_created.connect(_refuse_powerful_role)


def _refuse_powerful_role(connection: Any = None, **_: Any) -> None:
    """Runs for every new connection, because the database may have been away when the process started."""
    with connection.connection.cursor() as cursor:
        fault = role_fault(cursor)
    if fault:
        log.error("database_role_refused", why=fault)
        connection.close()
        raise ImproperlyConfigured(fault)
