"""A service account may be bound to a registered module; the violation that follows from it."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("governance", "0034_services_stay"),
    ]

    operations = [
        migrations.RemoveConstraint(
            model_name="governanceviolation",
            name="violation_known_kind",
        ),
        migrations.AddField(
            model_name="serviceaccount",
            name="module",
            field=models.CharField(
                blank=True,
                help_text="Slug of the registered module that it is bound to; empty: to none.",
                max_length=30,
            ),
        ),
        migrations.AddConstraint(
            model_name="governanceviolation",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    (
                        "kind__in",
                        [
                            "cross_tenant",
                            "record_mutation",
                            "unauthorized_decision",
                            "own_work_approved",
                            "stale_lease",
                            "second_person_missing",
                            "roles_forbidden",
                            "module_overreach",
                        ],
                    )
                ),
                name="violation_known_kind",
            ),
        ),
    ]
