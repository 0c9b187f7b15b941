"""In which order entries became final, for the sealer; and what the database refuses about the tree.

`txid` is the transaction that wrote the entry. Every transaction below the snapshot's xmin is over, so that whoever reads
entries below it in order of (txid, id) can never be overtaken by a late commit, and appending takes no lock for it.
"""

from django.db import migrations

from governance.sql.guards import protect_table

TREE = ["governance_ledgerleaf", "governance_ledgernode", "governance_ledgercheckpoint", "governance_ledgerkey"]


class Migration(migrations.Migration):
    dependencies = [("governance", "0005_ledger_tree")]
    operations = [
        migrations.RunSQL(
            sql="""
            ALTER TABLE governance_ledgerentry
                ADD COLUMN txid bigint NOT NULL DEFAULT (pg_current_xact_id()::text::bigint);
            CREATE INDEX ledger_unsealed ON governance_ledgerentry (txid, id);
            """,
            reverse_sql="ALTER TABLE governance_ledgerentry DROP COLUMN txid;",
        ),
        *[protect_table(table) for table in TREE],
    ]
