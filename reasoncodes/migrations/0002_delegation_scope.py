"""Reason codes for delegations."""

from django.db import migrations, models
from django.db.models import Q

SCOPES = ["halt", "step_failure", "human_decline", "denial", "quarantine", "intervention", "delegation"]


class Migration(migrations.Migration):
    dependencies = [("reasoncodes", "0001_initial")]

    operations = [
        migrations.RemoveConstraint(model_name="reasoncode", name="reason_code_known_scope"),
        migrations.AlterField(
            model_name="reasoncode",
            name="scope",
            field=models.CharField(choices=[(scope, scope) for scope in SCOPES], max_length=20),
        ),
        migrations.AddConstraint(
            model_name="reasoncode",
            constraint=models.CheckConstraint(condition=Q(scope__in=SCOPES), name="reason_code_known_scope"),
        ),
    ]
