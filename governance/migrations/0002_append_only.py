"""The ledger is append-only, and the database says so."""

from django.db import migrations

from governance.sql.guards import REFUSE_FUNCTION, protect_table


class Migration(migrations.Migration):
    dependencies = [("governance", "0001_initial")]
    operations = [
        migrations.RunSQL(sql=REFUSE_FUNCTION, reverse_sql="DROP FUNCTION holdpoint_refuse_change();"),
        protect_table("governance_ledgerentry"),
    ]
