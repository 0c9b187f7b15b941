"""Reviewer tiers are rows of an organization. Those that it had until now, by the groups of its roles, stay."""

import re

import django.db.models.deletion
from django.db import migrations, models

import reasoncodes.base.ids
import reasoncodes.base.tenancy

TIER = r"^[a-z0-9][a-z0-9_-]{0,53}$"
PREFIX = "reviewer:"


def adopt(apps, schema_editor):
    groups, tiers = apps.get_model("governance", "RoleGroup"), apps.get_model("governance", "ReviewerTier")
    with reasoncodes.base.tenancy.every_tenant():
        rows = groups._base_manager.filter(role__startswith=PREFIX).order_by("organization_id", "role")
        slugs = [(row.organization_id, row.role.removeprefix(PREFIX)) for row in rows]
        tiers._base_manager.bulk_create(
            tiers(organization_id=place, slug=slug, label=slug.replace("_", " ").replace("-", " ").capitalize())
            for place, slug in slugs
            if re.fullmatch(TIER, slug)
        )


class Migration(migrations.Migration):
    dependencies = [
        ("governance", "0032_open_holds"),
    ]

    operations = [
        migrations.CreateModel(
            name="ReviewerTier",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=reasoncodes.base.ids.uuid7, editable=False, primary_key=True, serialize=False
                    ),
                ),
                (
                    "slug",
                    models.CharField(
                        help_text="What policies, definitions and roles name. It never changes.", max_length=54
                    ),
                ),
                ("label", models.CharField(help_text="What people see.", max_length=80)),
                ("description", models.CharField(blank=True, max_length=280)),
                ("active", models.BooleanField(default=True)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "organization",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="reviewer_tiers",
                        to="governance.organization",
                    ),
                ),
            ],
            options={
                "ordering": ["organization_id", "slug"],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("organization", "slug"), name="reviewer_tier_once_per_organization"
                    ),
                    models.CheckConstraint(condition=models.Q(("slug__regex", TIER)), name="reviewer_tier_slug_format"),
                ],
            },
        ),
        migrations.RunPython(adopt, migrations.RunPython.noop),
    ]
