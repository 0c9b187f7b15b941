"""Reviews of workflow steps name the contract of their run: it says whether votes are signed."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("attempts", "0010_signatures"),
        ("governance", "0023_record_checks"),
    ]

    operations = [
        migrations.AddField(
            model_name="review",
            name="contract",
            field=models.ForeignKey(
                db_index=False,
                help_text="Of the run, for a workflow step: it says whether votes are signed.",
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to="governance.contract",
            ),
        ),
    ]
