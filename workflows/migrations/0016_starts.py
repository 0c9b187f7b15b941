"""Definitions that only a request starts stand beside the one that takes their product's cases."""

from django.db import migrations, models

from governance.sql.explained import entry_about, explained


class Migration(migrations.Migration):
    dependencies = [("workflows", "0015_tokens")]

    operations = [
        migrations.AddField(
            model_name="workflowdefinition",
            name="takes_cases",
            field=models.BooleanField(
                default=True,
                editable=False,
                help_text="Whether case.created starts it; if not, only run.requested does.",
            ),
        ),
        migrations.RemoveConstraint(model_name="workflowdefinition", name="definition_one_active"),
        migrations.AddConstraint(
            model_name="workflowdefinition",
            constraint=models.UniqueConstraint(
                fields=["organization", "product"],
                condition=models.Q(("is_template", False), ("state", "active"), ("takes_cases", True)),
                nulls_distinct=False,
                name="definition_one_active",
            ),
        ),
        migrations.AddConstraint(
            model_name="workflowdefinition",
            constraint=models.UniqueConstraint(
                fields=["organization", "slug"],
                condition=models.Q(("is_template", False), ("state", "active")),
                name="definition_one_active_per_slug",
            ),
        ),
        explained("workflows_workflowdefinition", moved=["takes_cases"], by=entry_about("NEW.id"), name="takes_cases"),
    ]
