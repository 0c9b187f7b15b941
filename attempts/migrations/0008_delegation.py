"""Delegations with a reason, an end and a guard. Those that run now were given without a reason, perhaps to somebody
without the tier: they end here."""

from datetime import timedelta

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models
from django.db.models import F, Q

ENDS = ["by_delegator", "by_delegate", "by_operator", "role_taken", "deactivated", "ran_out", "upgrade"]
# Its end can be written, once; nothing else changes. A new one needs two people who have the tier, whoever inserts it.
GUARD = """
CREATE FUNCTION attempts_delegation_guard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        IF (SELECT count(DISTINCT member.user_id) FROM governance_user_groups member
            JOIN governance_rolegroup held ON held.group_id = member.group_id
            WHERE held.organization_id = NEW.organization_id AND held.role = 'reviewer:' || NEW.tier
              AND member.user_id IN (NEW.from_user_id, NEW.to_user_id)) < 2 THEN
            RAISE EXCEPTION 'a tier is delegated between two people who have it' USING ERRCODE = 'HP002';
        END IF;
        RETURN NEW;
    END IF;
    IF TG_OP = 'UPDATE' THEN
        IF OLD.ended_at IS NULL AND NEW.ended_at IS NOT NULL
            AND (OLD.id, OLD.organization_id, OLD.tier, OLD.from_user_id, OLD.to_user_id, OLD.reason_code,
                 OLD.created_at, OLD.starts_at, OLD.ends_at)
              = (NEW.id, NEW.organization_id, NEW.tier, NEW.from_user_id, NEW.to_user_id, NEW.reason_code,
                 NEW.created_at, NEW.starts_at, NEW.ends_at) THEN
            RETURN NEW;
        END IF;
    END IF;
    RAISE EXCEPTION 'append-only: % on % is refused', TG_OP, TG_TABLE_NAME USING ERRCODE = 'HP001';
END $$;
CREATE TRIGGER delegation_guard BEFORE INSERT OR UPDATE OR DELETE ON attempts_delegation
    FOR EACH ROW EXECUTE FUNCTION attempts_delegation_guard();
CREATE TRIGGER append_only_table BEFORE TRUNCATE ON attempts_delegation
    FOR EACH STATEMENT EXECUTE FUNCTION holdpoint_refuse_change();
ALTER TABLE attempts_delegation ENABLE ALWAYS TRIGGER delegation_guard;
ALTER TABLE attempts_delegation ENABLE ALWAYS TRIGGER append_only_table;
"""
UNGUARD = """
DROP TRIGGER delegation_guard ON attempts_delegation;
DROP TRIGGER append_only_table ON attempts_delegation;
DROP FUNCTION attempts_delegation_guard();
"""
# Longer ones than today's limit cannot exist: the service has always kept to fourteen days.
EARLIER = """
UPDATE attempts_delegation SET reason_code = 'not_recorded', created_at = starts_at,
    ended_at = least(ends_at, now()), end_cause = CASE WHEN ends_at <= now() THEN 'ran_out' ELSE 'upgrade' END;
SET CONSTRAINTS ALL IMMEDIATE;
"""


def person(**changes: object) -> models.ForeignKey:
    return models.ForeignKey(
        to=settings.AUTH_USER_MODEL, on_delete=django.db.models.deletion.PROTECT, related_name="+", **changes
    )


class Migration(migrations.Migration):
    dependencies = [
        ("attempts", "0007_notifications"),
        ("governance", "0012_streams"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddField("delegation", "reason_code", models.CharField(default="", max_length=64), False),
        migrations.AddField("delegation", "created_at", models.DateTimeField(null=True)),
        migrations.AddField(
            "delegation", "ended_at", models.DateTimeField(help_text="When it really ended.", null=True)
        ),
        migrations.AddField(
            "delegation",
            "ended_by",
            person(null=True, db_index=False, help_text="Empty if no person ended it."),
        ),
        migrations.AddField("delegation", "end_cause", models.CharField(blank=True, max_length=12), False),
        migrations.RunSQL(EARLIER, migrations.RunSQL.noop),
        migrations.AlterField("delegation", "created_at", models.DateTimeField()),
        migrations.AlterField("delegation", "ends_at", models.DateTimeField(help_text="It ends then by itself.")),
        migrations.AlterField("delegation", "from_user", person()),
        migrations.AlterField("delegation", "to_user", person()),
        migrations.AlterField(
            "delegation",
            "organization",
            models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to="governance.organization",
            ),
        ),
        migrations.AddConstraint(
            "delegation",
            models.CheckConstraint(
                condition=Q(ends_at__lte=F("starts_at") + timedelta(days=14)), name="delegation_is_bounded"
            ),
        ),
        migrations.AddConstraint(
            "delegation", models.CheckConstraint(condition=~Q(reason_code=""), name="delegation_has_a_reason")
        ),
        migrations.AddConstraint(
            "delegation",
            models.CheckConstraint(
                condition=Q(ended_at=None, ended_by=None, end_cause="") | Q(ended_at__isnull=False, end_cause__in=ENDS),
                name="delegation_end_has_a_cause",
            ),
        ),
        migrations.AddConstraint(
            "delegation",
            models.UniqueConstraint(
                fields=["organization", "from_user", "tier"],
                condition=Q(ended_at=None),
                name="delegation_one_at_a_time",
            ),
        ),
        migrations.AddIndex("delegation", models.Index(fields=["organization", "-id"], name="delegation_newest")),
        migrations.AddIndex(
            "delegation", models.Index(fields=["ends_at"], condition=Q(ended_at=None), name="delegation_due")
        ),
        migrations.AddIndex(
            "delegation",
            models.Index(
                fields=["organization", "tier", "to_user"], condition=Q(ended_at=None), name="delegation_open"
            ),
        ),
        migrations.RunSQL(GUARD, UNGUARD),
    ]
