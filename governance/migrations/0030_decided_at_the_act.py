"""Decisions before an act: what it was, and the attempt that was decided again."""

from django.db import migrations, models
from django.db.models import Q

ACTS = ("lease", "retry", "dispatch")


class Migration(migrations.Migration):
    dependencies = [("governance", "0029_guard_manifest")]
    operations = [
        migrations.AddField(
            "enforcementdecision",
            "act",
            models.CharField(blank=True, default="", help_text="Empty: the request came in.", max_length=8),
        ),
        migrations.AddField(
            "enforcementdecision",
            "subject_id",
            models.UUIDField(help_text="The attempt that is decided again before the act.", null=True),
        ),
        migrations.AddIndex(
            "enforcementdecision",
            models.Index(
                condition=Q(subject_id__isnull=False), fields=["subject_id", "id"], name="decision_by_subject"
            ),
        ),
        migrations.AddConstraint(
            "enforcementdecision",
            models.CheckConstraint(
                condition=Q(act="", subject_id=None) | Q(act__in=ACTS, subject_id__isnull=False),
                name="decision_act_has_subject",
            ),
        ),
    ]
