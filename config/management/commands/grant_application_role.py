"""Gives the application's role the rights that it needs and no more: on the record it may read and insert, and call the
functions that erase by order."""

from typing import Any

from django.apps import apps
from django.core.management.base import BaseCommand
from django.db import connection, transaction
from django.utils import timezone
from psycopg import sql

from config.env import env
from governance.record.models import GuardManifest
from governance.record.services.manifest import guards_adopt
from governance.retention.hooks import erasing_doors
from governance.sql.guards import append_only_tables


class Command(BaseCommand):
    help = "Run as the tables' owner after migrate. The role comes from HOLDPOINT_APP_ROLE; without it nothing is done."

    def handle(self, *args: Any, **options: Any) -> None:
        role = env.str("HOLDPOINT_APP_ROLE", default="")
        if not role:
            self.stdout.write("HOLDPOINT_APP_ROLE is not set: the application uses the owner's role.")
            return
        # Only the owner adopts: with the application's rights nobody can make a manifest that fits a change.
        # In one transaction: between the broad GRANT and the REVOKEs the role could change the record.
        with transaction.atomic(), connection.cursor() as cursor:
            for statement in self._statements(role):
                cursor.execute(statement)
            guards_adopt(at=timezone.now())
        self.stdout.write(f"{role} may use the tables; the record is insert-only for it.")

    @staticmethod
    def _statements(role: str) -> list[sql.Composed]:
        name = sql.Identifier(role)
        grants = [
            sql.SQL("GRANT USAGE ON SCHEMA public TO {}").format(name),
            sql.SQL("GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO {}").format(name),
            sql.SQL("GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA public TO {}").format(name),
            sql.SQL("REVOKE ALL ON TABLE django_migrations FROM {}").format(name),
            sql.SQL("GRANT SELECT ON TABLE django_migrations TO {}").format(name),
        ]
        # After the broad GRANT above, which includes these tables. The triggers protect them too; without these rights
        # the role cannot even try.
        for table in append_only_tables(apps.get_models()):
            grants.append(
                sql.SQL("REVOKE UPDATE, DELETE, TRUNCATE, TRIGGER ON TABLE {} FROM {}").format(
                    sql.Identifier(table), name
                )
            )
        # The manifest of guards is the owner's word about what protects the record.
        grants.append(
            sql.SQL("REVOKE INSERT ON TABLE {} FROM {}").format(sql.Identifier(GuardManifest._meta.db_table), name)
        )
        for function in erasing_doors():
            grants.append(sql.SQL("GRANT EXECUTE ON FUNCTION {}(uuid) TO {}").format(sql.Identifier(function), name))
        return grants
