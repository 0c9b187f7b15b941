"""Reviews of human tasks: what is asked beside the tier, and answers with an outcome and a form."""

from django.db import migrations, models
from django.db.models import Q

from governance.sql.erasable import erasable
from governance.sql.explained import door_only

STATUSES = ["requested", "approved", "rejected", "confirmed", "overridden", "decided", "expired", "canceled"]
VERDICTS = ["approve", "reject", "confirm", "override", "decline", "answer"]
FITS = Q(kind="release", attempt__isnull=False, origin_step=None, expires_at__isnull=False)
FITS_NOW = (
    FITS
    | Q(kind="human_review", attempt=None, origin_step__isnull=False, task__isnull=True)
    | Q(kind="human_task", attempt=None, origin_step__isnull=False)
)
# With the columns that are new: a filled form is content like a reference to a result.
REVIEWS = """
CREATE OR REPLACE FUNCTION attempts_erase_reviews(item governance_erasureitem) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE governance_note SET text = '', salt = '' WHERE id IN (
        SELECT note_id FROM attempts_reviewvote WHERE review_id = ANY((item).related));
    UPDATE attempts_reviewvote SET result_ref = '', result_sha256 = '', action_digest = '', outcome = '', form = NULL
        WHERE review_id = ANY((item).related);
    UPDATE attempts_review SET subject_ref = '', label = '', action_digest = '', task = NULL
        WHERE id = ANY((item).related);
END $$;
"""
REVIEWS_BEFORE = """
CREATE OR REPLACE FUNCTION attempts_erase_reviews(item governance_erasureitem) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE governance_note SET text = '', salt = '' WHERE id IN (
        SELECT note_id FROM attempts_reviewvote WHERE review_id = ANY((item).related));
    UPDATE attempts_reviewvote SET result_ref = '', result_sha256 = '', action_digest = ''
        WHERE review_id = ANY((item).related);
    UPDATE attempts_review SET subject_ref = '', label = '', action_digest = '' WHERE id = ANY((item).related);
END $$;
"""
EMPTIED = ["subject_ref", "label", "action_digest"]
BELONGS = "($1).review_id = ANY(($2).related)"
ERASED = {"result_ref": "", "result_sha256": "", "action_digest": ""}


def constraint(model, name, condition):
    made = models.CheckConstraint(condition=condition, name=name)
    return [migrations.RemoveConstraint(model, name), migrations.AddConstraint(model, made)]


class Migration(migrations.Migration):
    dependencies = [("attempts", "0025_lighter_intake"), ("governance", "0034_services_stay")]
    operations = [
        migrations.AddField(
            "review",
            "task",
            models.JSONField(
                null=True,
                help_text="Of a human task: title, facts, form, outcomes, when it is due, who asked for the run.",
            ),
        ),
        migrations.AddField(
            "reviewvote",
            "outcome",
            models.CharField(
                max_length=64, blank=True, default="", help_text="Of a human task: the one that was chosen."
            ),
            preserve_default=False,
        ),
        migrations.AddField(
            "reviewvote",
            "form",
            models.JSONField(null=True, help_text="Of a human task: the form as it was filled in."),
        ),
        *constraint("review", "review_fits_its_kind", FITS_NOW),
        *constraint("review", "review_known_status", Q(status__in=STATUSES)),
        *constraint("reviewvote", "vote_known_verdict", Q(verdict__in=VERDICTS)),
        *constraint("votechallenge", "vote_challenge_known_verdict", Q(verdict__in=VERDICTS)),
        migrations.AddConstraint(
            "reviewvote",
            models.CheckConstraint(
                condition=Q(verdict="answer") | Q(outcome="", form__isnull=True), name="vote_outcome_is_an_answer"
            ),
        ),
        erasable("attempts_reviewvote", belongs=BELONGS, erased=ERASED | {"outcome": "", "form": None}),
        migrations.RunSQL("DROP TRIGGER door_only ON attempts_review;", door_only("attempts_review", EMPTIED).sql),
        door_only("attempts_review", [*EMPTIED, "task"]),
        migrations.RunSQL(REVIEWS, REVIEWS_BEFORE),
    ]
