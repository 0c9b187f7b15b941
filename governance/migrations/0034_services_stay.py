"""Service accounts stay, because the record names them: they are ended, never deleted."""

from django.db import migrations

from governance.sql.references import rows_and_ids_stay


class Migration(migrations.Migration):
    dependencies = [("governance", "0033_review_tiers")]
    operations = [*rows_and_ids_stay("governance_serviceaccount")]
