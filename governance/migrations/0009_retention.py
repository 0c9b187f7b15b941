"""Legal holds, exports, deletions, and the one narrow door through which the record may be erased."""

import django.contrib.postgres.fields
import django.db.models.deletion
import django_fsm
from django.db import migrations, models

import governance.retention.states
import reasoncodes.base.ids
from governance.retention.states import DELETION_MOVES, EXPORT_MOVES, HOLD_MOVES, ITEM_MOVES
from governance.sql.erasable import DROP_FUNCTIONS, FUNCTIONS, door, erasable
from governance.sql.guards import legal_moves_only, protect_table

PERSON = """
DECLARE
    item governance_erasureitem;
    person governance_user;
    known governance_personreference;
    place uuid;
BEGIN
    item := holdpoint_erasure_take(wanted, 'person');
    SELECT * INTO person FROM governance_user WHERE id = item.subject_id FOR NO KEY UPDATE;
    SELECT * INTO known FROM governance_personreference WHERE user_id = item.subject_id FOR UPDATE;
    IF person.id IS NULL OR known.user_id IS NULL THEN
        RETURN 'nothing_to_erase';
    END IF;
    UPDATE governance_erasureitem SET refs = ARRAY[known.commitment] WHERE id = item.id RETURNING * INTO item;
    IF holdpoint_held(item) THEN
        RETURN 'legal_hold';
    END IF;
    -- Wherever this person acted a hold counts; locks in one order, so that two of these cannot wait for each other.
    FOR place IN SELECT DISTINCT organization_id FROM governance_ledgerentry
        WHERE actor_ref = known.commitment AND organization_id IS NOT NULL ORDER BY 1
    LOOP
        PERFORM pg_advisory_xact_lock_shared(holdpoint_hold_lock(place));
        IF EXISTS (SELECT FROM governance_legalhold WHERE organization_id = place AND state = 'active'
            AND (scope = 'organization' OR (scope = 'person' AND target = known.commitment)))
        THEN
            RETURN 'legal_hold';
        END IF;
    END LOOP;
    IF person.is_active THEN
        RETURN 'not_finished';
    END IF;
    IF item.not_before IS NULL OR item.not_before > statement_timestamp() THEN
        RETURN 'retention_not_over';
    END IF;
    DELETE FROM governance_personreference WHERE user_id = person.id;
    DELETE FROM governance_user_groups WHERE user_id = person.id;
    DELETE FROM governance_user_user_permissions WHERE user_id = person.id;
    UPDATE governance_user SET username = 'erased-' || id::text, first_name = '', last_name = '', email = '',
        password = '!', is_staff = FALSE, is_superuser = FALSE, last_login = NULL WHERE id = person.id;
    RETURN '';
END
"""


class Migration(migrations.Migration):
    dependencies = [
        ("governance", "0008_evidence"),
    ]

    operations = [
        migrations.AlterField(
            model_name="ledgerentry",
            name="nonce",
            field=models.BinaryField(max_length=16, null=True),
        ),
        migrations.AlterField(
            model_name="ledgerentry",
            name="payload",
            field=models.JSONField(help_text="Empty once it was erased by order; its hash stays.", null=True),
        ),
        migrations.CreateModel(
            name="ErasureItem",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=reasoncodes.base.ids.uuid7, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("kind", models.CharField(max_length=20)),
                ("subject_id", models.UUIDField()),
                ("state", models.CharField(default="waiting", max_length=8)),
                ("problem", models.CharField(blank=True, help_text="The reason code of a refusal.", max_length=64)),
                (
                    "not_before",
                    models.DateTimeField(help_text="End of retention where only the application knows it.", null=True),
                ),
                ("contract", models.CharField(blank=True, max_length=63)),
                (
                    "refs",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=200),
                        default=list,
                        help_text="Emptied when it is done.",
                        size=None,
                    ),
                ),
                (
                    "related",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.UUIDField(),
                        default=list,
                        help_text="Subjects of the ledger entries that it erases.",
                        size=None,
                    ),
                ),
                ("entries", models.PositiveIntegerField(default=0, help_text="Ledger payloads erased.")),
                ("finished_at", models.DateTimeField(null=True)),
                (
                    "organization",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="governance.organization",
                    ),
                ),
            ],
            options={
                "ordering": ["id"],
            },
        ),
        migrations.CreateModel(
            name="ErasedPayload",
            fields=[
                (
                    "entry",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        primary_key=True,
                        related_name="erased",
                        serialize=False,
                        to="governance.ledgerentry",
                    ),
                ),
                (
                    "item",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="payloads",
                        to="governance.erasureitem",
                    ),
                ),
            ],
            options={
                "ordering": ["entry_id"],
            },
        ),
        migrations.CreateModel(
            name="ErasureOrder",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=reasoncodes.base.ids.uuid7, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("kind", models.CharField(max_length=8)),
                ("reason_code", models.CharField(max_length=64)),
                ("ordered_by", models.UUIDField()),
                ("ordered_by_ref", models.CharField(max_length=64)),
                ("created_at", models.DateTimeField()),
                (
                    "resume_at",
                    models.DateTimeField(help_text="When the tick takes it up, should whoever works on it have died."),
                ),
                ("finished_at", models.DateTimeField(null=True)),
                (
                    "note",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="governance.note",
                    ),
                ),
                (
                    "organization",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to="governance.organization"
                    ),
                ),
            ],
            options={
                "ordering": ["-id"],
            },
        ),
        migrations.AddField(
            model_name="erasureitem",
            name="order",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="items",
                to="governance.erasureorder",
            ),
        ),
        migrations.CreateModel(
            name="DeletionRequest",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=reasoncodes.base.ids.uuid7, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("about", models.CharField(help_text="context or person", max_length=8)),
                ("commitment", models.CharField(help_text="Stands for the reference or the person.", max_length=64)),
                (
                    "state",
                    django_fsm.FSMField(
                        choices=[
                            ("requested", "requested"),
                            ("accepted", "accepted"),
                            ("refused", "refused"),
                            ("done", "done"),
                        ],
                        default="requested",
                        editable=False,
                        max_length=12,
                        protected=True,
                    ),
                ),
                ("requested_by_kind", models.CharField(max_length=8)),
                ("requested_by_ref", models.CharField(max_length=64)),
                ("requested_at", models.DateTimeField()),
                ("due_at", models.DateTimeField(help_text="Until when it must be answered, by the regional profile.")),
                ("decided_by_ref", models.CharField(blank=True, max_length=64)),
                ("decided_at", models.DateTimeField(null=True)),
                ("reason_code", models.CharField(blank=True, max_length=64)),
                ("finished_at", models.DateTimeField(null=True)),
                (
                    "note",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="governance.note",
                    ),
                ),
                (
                    "organization",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="governance.organization",
                    ),
                ),
                (
                    "order",
                    models.OneToOneField(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="deletion_request",
                        to="governance.erasureorder",
                    ),
                ),
            ],
            options={
                "ordering": ["-id"],
            },
        ),
        migrations.CreateModel(
            name="ExportRequest",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=reasoncodes.base.ids.uuid7, editable=False, primary_key=True, serialize=False
                    ),
                ),
                (
                    "commitment",
                    models.CharField(
                        blank=True, help_text="Of the context reference; empty: the whole organization.", max_length=64
                    ),
                ),
                (
                    "state",
                    django_fsm.FSMField(
                        choices=[
                            ("requested", "requested"),
                            ("ready", "ready"),
                            ("failed", "failed"),
                            ("expired", "expired"),
                        ],
                        default="requested",
                        editable=False,
                        max_length=12,
                        protected=True,
                    ),
                ),
                ("reason_code", models.CharField(max_length=64)),
                ("requested_by_kind", models.CharField(max_length=8)),
                ("requested_by_ref", models.CharField(max_length=64)),
                ("requested_at", models.DateTimeField()),
                ("due_at", models.DateTimeField()),
                (
                    "resume_at",
                    models.DateTimeField(help_text="When the tick takes it up, should whoever works on it have died."),
                ),
                ("tries", models.PositiveSmallIntegerField(default=0)),
                ("done", models.PositiveIntegerField(default=0, help_text="Rows written so far.")),
                ("total", models.PositiveIntegerField(default=0, help_text="Rows to write, counted at the start.")),
                ("file", models.CharField(blank=True, max_length=200)),
                ("size", models.PositiveBigIntegerField(default=0)),
                ("sha256", models.CharField(blank=True, max_length=64)),
                ("ready_at", models.DateTimeField(null=True)),
                ("expires_at", models.DateTimeField(null=True)),
                (
                    "note",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="governance.note",
                    ),
                ),
                (
                    "organization",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="governance.organization",
                    ),
                ),
            ],
            options={
                "ordering": ["-id"],
            },
        ),
        migrations.CreateModel(
            name="LegalHold",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=reasoncodes.base.ids.uuid7, editable=False, primary_key=True, serialize=False
                    ),
                ),
                (
                    "scope",
                    models.CharField(
                        choices=[
                            ("organization", "organization"),
                            ("contract", "contract"),
                            ("context", "context"),
                            ("attempt", "attempt"),
                            ("run", "run"),
                            ("person", "person"),
                        ],
                        max_length=12,
                    ),
                ),
                (
                    "target",
                    models.CharField(
                        blank=True,
                        help_text="A slug, an id or a commitment; empty for the whole organization.",
                        max_length=140,
                    ),
                ),
                (
                    "state",
                    django_fsm.FSMField(
                        choices=[("active", "active"), ("released", "released")],
                        default="active",
                        editable=False,
                        max_length=12,
                        protected=True,
                    ),
                ),
                ("reason_code", models.CharField(max_length=64)),
                (
                    "authority_ref",
                    models.CharField(
                        blank=True, help_text="Reference of the case or letter that asks for it.", max_length=200
                    ),
                ),
                ("placed_by_kind", models.CharField(max_length=8)),
                ("placed_by_ref", models.CharField(max_length=64)),
                ("placed_at", models.DateTimeField()),
                ("release_reason_code", models.CharField(blank=True, max_length=64)),
                ("released_by_ref", models.CharField(blank=True, max_length=64)),
                ("released_at", models.DateTimeField(null=True)),
                (
                    "note",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="governance.note",
                    ),
                ),
                (
                    "organization",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="governance.organization",
                    ),
                ),
                (
                    "release_note",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="governance.note",
                    ),
                ),
            ],
            options={
                "ordering": ["-id"],
            },
        ),
        migrations.CreateModel(
            name="ContextReference",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=reasoncodes.base.ids.uuid7, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("reference", models.CharField(max_length=200)),
                ("salt", models.BinaryField(max_length=32)),
                ("commitment", models.CharField(max_length=64, unique=True)),
                (
                    "organization",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="governance.organization",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("organization", "reference"), name="context_reference_once")
                ],
            },
        ),
        migrations.AddIndex(
            model_name="erasureorder",
            index=models.Index(
                condition=models.Q(("finished_at", None)), fields=["resume_at"], name="erasure_unfinished"
            ),
        ),
        migrations.AddConstraint(
            model_name="erasureorder",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    (
                        "kind__in",
                        [
                            governance.retention.states.ErasureKind["PURGE"],
                            governance.retention.states.ErasureKind["DELETION"],
                        ],
                    )
                ),
                name="erasure_known_kind",
            ),
        ),
        migrations.AddConstraint(
            model_name="erasureorder",
            constraint=models.CheckConstraint(
                condition=models.Q(("reason_code", ""), _negated=True), name="erasure_has_reason"
            ),
        ),
        migrations.AddIndex(
            model_name="erasureitem",
            index=models.Index(
                condition=models.Q(("state", "waiting")), fields=["order", "id"], name="erasure_item_waiting"
            ),
        ),
        migrations.AddIndex(
            model_name="erasureitem",
            index=models.Index(fields=["subject_id"], name="erasure_item_subject"),
        ),
        migrations.AddConstraint(
            model_name="erasureitem",
            constraint=models.UniqueConstraint(fields=("order", "kind", "subject_id"), name="erasure_item_once"),
        ),
        migrations.AddConstraint(
            model_name="erasureitem",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    (
                        "state__in",
                        [
                            governance.retention.states.ItemState["WAITING"],
                            governance.retention.states.ItemState["DONE"],
                            governance.retention.states.ItemState["REFUSED"],
                        ],
                    )
                ),
                name="erasure_item_known_state",
            ),
        ),
        migrations.AddConstraint(
            model_name="erasureitem",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("state", "refused"), _negated=True),
                    models.Q(("problem", ""), _negated=True),
                    _connector="OR",
                ),
                name="erasure_item_refusal_has_reason",
            ),
        ),
        migrations.AddIndex(
            model_name="deletionrequest",
            index=models.Index(fields=["organization", "id"], name="deletion_by_organization"),
        ),
        migrations.AddIndex(
            model_name="deletionrequest",
            index=models.Index(condition=models.Q(("state", "requested")), fields=["due_at"], name="deletion_due"),
        ),
        migrations.AddConstraint(
            model_name="deletionrequest",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    (
                        "state__in",
                        [
                            governance.retention.states.DeletionState["REQUESTED"],
                            governance.retention.states.DeletionState["ACCEPTED"],
                            governance.retention.states.DeletionState["REFUSED"],
                            governance.retention.states.DeletionState["DONE"],
                        ],
                    )
                ),
                name="deletion_known_state",
            ),
        ),
        migrations.AddConstraint(
            model_name="deletionrequest",
            constraint=models.CheckConstraint(
                condition=models.Q(("about__in", ["context", "person"])), name="deletion_known_subject"
            ),
        ),
        migrations.AddConstraint(
            model_name="deletionrequest",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("decided_by_ref", ""),
                    models.Q(("decided_by_ref", models.F("requested_by_ref")), _negated=True),
                    _connector="OR",
                ),
                name="deletion_decided_by_second_person",
            ),
        ),
        migrations.AddConstraint(
            model_name="deletionrequest",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("state__in", ["accepted", "refused"]), _negated=True),
                    models.Q(("reason_code", ""), _negated=True),
                    _connector="OR",
                ),
                name="deletion_decision_has_reason",
            ),
        ),
        migrations.AddConstraint(
            model_name="deletionrequest",
            constraint=models.UniqueConstraint(
                condition=models.Q(("state__in", ["requested", "accepted"])),
                fields=("organization", "commitment"),
                name="deletion_one_open",
            ),
        ),
        migrations.AddIndex(
            model_name="exportrequest",
            index=models.Index(fields=["organization", "id"], name="export_by_organization"),
        ),
        migrations.AddIndex(
            model_name="exportrequest",
            index=models.Index(
                condition=models.Q(("state", "requested")), fields=["resume_at"], name="export_unfinished"
            ),
        ),
        migrations.AddIndex(
            model_name="exportrequest",
            index=models.Index(condition=models.Q(("state", "ready")), fields=["expires_at"], name="export_expiring"),
        ),
        migrations.AddConstraint(
            model_name="exportrequest",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    (
                        "state__in",
                        [
                            governance.retention.states.ExportState["REQUESTED"],
                            governance.retention.states.ExportState["READY"],
                            governance.retention.states.ExportState["FAILED"],
                            governance.retention.states.ExportState["EXPIRED"],
                        ],
                    )
                ),
                name="export_known_state",
            ),
        ),
        migrations.AddConstraint(
            model_name="exportrequest",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("state", "ready"), _negated=True),
                    models.Q(
                        models.Q(("sha256", ""), _negated=True),
                        models.Q(("file", ""), _negated=True),
                        ("expires_at__isnull", False),
                    ),
                    _connector="OR",
                ),
                name="export_ready_has_file",
            ),
        ),
        migrations.AddIndex(
            model_name="legalhold",
            index=models.Index(
                condition=models.Q(("state", "active")), fields=["organization", "scope", "target"], name="hold_active"
            ),
        ),
        migrations.AddIndex(
            model_name="legalhold",
            index=models.Index(fields=["organization", "id"], name="hold_by_organization"),
        ),
        migrations.AddConstraint(
            model_name="legalhold",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    (
                        "scope__in",
                        [
                            governance.retention.states.HoldScope["ORGANIZATION"],
                            governance.retention.states.HoldScope["CONTRACT"],
                            governance.retention.states.HoldScope["CONTEXT"],
                            governance.retention.states.HoldScope["ATTEMPT"],
                            governance.retention.states.HoldScope["RUN"],
                            governance.retention.states.HoldScope["PERSON"],
                        ],
                    )
                ),
                name="hold_known_scope",
            ),
        ),
        migrations.AddConstraint(
            model_name="legalhold",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    (
                        "state__in",
                        [
                            governance.retention.states.HoldState["ACTIVE"],
                            governance.retention.states.HoldState["RELEASED"],
                        ],
                    )
                ),
                name="hold_known_state",
            ),
        ),
        migrations.AddConstraint(
            model_name="legalhold",
            constraint=models.CheckConstraint(
                condition=models.Q(("reason_code", ""), _negated=True), name="hold_has_reason"
            ),
        ),
        migrations.AddConstraint(
            model_name="legalhold",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("scope", "organization"), ("target", "")),
                    models.Q(
                        models.Q(("scope", "organization"), _negated=True), models.Q(("target", ""), _negated=True)
                    ),
                    _connector="OR",
                ),
                name="hold_target_fits_scope",
            ),
        ),
        migrations.AddConstraint(
            model_name="legalhold",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("release_reason_code", ""), ("released_at", None), ("state", "active")),
                    models.Q(
                        ("released_at__isnull", False),
                        ("state", "released"),
                        models.Q(("release_reason_code", ""), _negated=True),
                    ),
                    _connector="OR",
                ),
                name="hold_release_has_reason_and_time",
            ),
        ),
        migrations.AddConstraint(
            model_name="legalhold",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("released_by_ref", ""),
                    models.Q(("released_by_ref", models.F("placed_by_ref")), _negated=True),
                    _connector="OR",
                ),
                name="hold_release_by_second_person",
            ),
        ),
        migrations.RunSQL(sql=FUNCTIONS, reverse_sql=DROP_FUNCTIONS),
        protect_table("governance_erasedpayload"),
        erasable(
            "governance_ledgerentry",
            belongs="($1).subject_id = ANY(($2).related) AND ($1).organization_id = ($2).organization_id",
            erased={"payload": None, "nonce": None},
        ),
        erasable(
            "governance_enforcementdecision",
            belongs="($1).id = ANY(($2).related) AND ($1).organization_id = ($2).organization_id",
            erased={"request": None, "request_sha256": ""},
        ),
        legal_moves_only(
            "governance_legalhold",
            HOLD_MOVES,
            frozen=["organization_id", "scope", "target", "reason_code", "authority_ref", "placed_by_ref", "placed_at"],
        ),
        legal_moves_only(
            "governance_erasureitem", ITEM_MOVES, frozen=["order_id", "organization_id", "kind", "subject_id"]
        ),
        legal_moves_only(
            "governance_deletionrequest",
            DELETION_MOVES,
            frozen=["organization_id", "about", "commitment", "requested_by_ref", "requested_at", "due_at"],
        ),
        legal_moves_only(
            "governance_exportrequest",
            EXPORT_MOVES,
            frozen=["organization_id", "commitment", "requested_by_ref", "requested_at", "due_at"],
        ),
        door("governance_erase_person", PERSON),
    ]
