"""Slots are counted per person and per region too, and a full cap is named by its number."""

from django.db import migrations

from attempts.lifecycle.sql import SLOT_FUNCTIONS


class Migration(migrations.Migration):
    dependencies = [("attempts", "0022_holds_notices")]
    # CREATE OR REPLACE: 0020 made them, on a new database in this form already.
    operations = [migrations.RunSQL(sql, "") for sql in SLOT_FUNCTIONS]
