"""Serializers of the review API."""

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from attempts.intake.api import AskedBeforeOut
from attempts.intake.selectors import asked_before
from attempts.reviews.models import Review
from attempts.reviews.selectors.card import Card
from attempts.reviews.selectors.reviews import review_overdue
from attempts.reviews.states import ReviewKind, ReviewStatus, VoteVerdict
from governance.boundary.api import ShownFactOut
from governance.contracts.states import SignatureKind


class BucketOut(serializers.Serializer[Any]):
    tier = serializers.CharField()
    approvals_required = serializers.IntegerField()


def _of_attempt(name: str) -> serializers.CharField:
    return serializers.CharField(source=f"attempt.{name}", allow_null=True, default=None)


class ReviewOut(serializers.ModelSerializer[Review]):
    """A line of the queue. What is the attempt's is null in a human review, and the other way round."""

    kind = serializers.ChoiceField(choices=list(ReviewKind))
    parts = BucketOut(many=True, help_text="How many of which tier must sign, all different people.")
    attempt_id = serializers.UUIDField(allow_null=True)
    workflow_slug = _of_attempt("workflow_slug")
    connector = _of_attempt("connector")
    operation = _of_attempt("operation")
    target_ref = _of_attempt("target_ref")
    risk_tier = _of_attempt("risk_tier")
    claimed_by = serializers.CharField(source="claimed_by.username", default=None, allow_null=True)
    overdue = serializers.SerializerMethodField(
        help_text="Past its deadline and not yet marked: nobody can approve it."
    )

    class Meta:
        model = Review
        fields = [
            "id",
            "kind",
            "status",
            "overdue",
            "tier",
            "approvals_required",
            "parts",
            "origin_step",
            "subject_ref",
            "label",
            "requeues",
            "attempt_id",
            "workflow_slug",
            "connector",
            "operation",
            "target_ref",
            "risk_tier",
            "requested_at",
            "expires_at",
            "decided_at",
            "claimed_by",
            "claimed_until",
        ]

    def get_overdue(self, review: Review) -> bool:
        return review_overdue(review, self.context["now"])


class AskedOut(serializers.Serializer[Any]):
    """The declared action, by reference: the content stays in the caller's own system."""

    connector = serializers.CharField()
    operation = serializers.CharField()
    target_ref = serializers.CharField()
    fields = serializers.ListField(child=serializers.CharField())  # type: ignore[assignment]
    effect = serializers.CharField()
    risk_tier = serializers.CharField()
    payload_ref = serializers.CharField()
    payload_sha256 = serializers.CharField()
    reversibility = serializers.CharField(help_text="In words.")
    facts = ShownFactOut(many=True)


class AskedByOut(serializers.Serializer[Any]):
    service_account_id = serializers.UUIDField(source="caller_id")
    service_account = serializers.CharField(source="caller.slug")
    workflow_slug = serializers.CharField()
    contract_version = serializers.IntegerField()
    runtime_mode = serializers.CharField()
    review_owner = serializers.CharField()
    request_trace_id = serializers.CharField()


class WhyHeldOut(serializers.Serializer[Any]):
    decision_id = serializers.UUIDField(help_text="About the request, or a later one before an act.")
    reason_code = serializers.CharField()
    rule_id = serializers.CharField()
    policy_version = serializers.IntegerField(allow_null=True)
    explanation = serializers.CharField(help_text="In words.")
    rationale = serializers.CharField(help_text="What the author of the rule wrote about it; may be empty.")


class TierQuorumOut(BucketOut):
    approvals = serializers.IntegerField()
    missing = serializers.IntegerField()
    may_sign = serializers.ListField(child=serializers.CharField(), help_text="Usernames of those who still can.")


class ReviewQuorumOut(serializers.Serializer[Any]):
    approvals_required = serializers.IntegerField()
    approvals = serializers.IntegerField(help_text="Of different people whose standing still holds.")
    missing = serializers.IntegerField()
    by_tier = TierQuorumOut(many=True)


class ExcludedOut(serializers.Serializer[Any]):
    username = serializers.CharField(allow_null=True)
    reason = serializers.CharField()
    detail = serializers.CharField()


class ClaimOut(serializers.Serializer[Any]):
    username = serializers.CharField()
    until = serializers.DateTimeField()


class MayDecideOut(serializers.Serializer[Any]):
    allowed = serializers.BooleanField()
    verdicts = serializers.ListField(child=serializers.ChoiceField(choices=list(VoteVerdict)))
    reason = serializers.CharField(allow_null=True)
    detail = serializers.CharField()
    on_behalf_of = serializers.CharField(allow_null=True, help_text="Always null: people vote in their own name.")
    stands_in_for = serializers.ListField(
        child=serializers.CharField(), help_text="Usernames of those who delegated a tier of this review to you."
    )


class TaskOut(serializers.Serializer[Any]):
    """What a step of a workflow asks of people. The digest covers title, facts, form, outcomes and approvals."""

    title = serializers.CharField()
    facts = ShownFactOut(many=True)
    form = serializers.JSONField(help_text="JSON Schema of the form; `form` of your answer has to fit it.")
    outcomes = serializers.ListField(child=serializers.CharField())
    due_at = serializers.DateTimeField(allow_null=True, help_text="When it should be done; it stays open after that.")
    past_due = serializers.BooleanField()
    assigned_to = serializers.CharField(allow_null=True, help_text="The only person who may decide, if there is one.")


class VoteSignatureOut(serializers.Serializer[Any]):
    """A person's signature under their vote, checked again for this answer with the public key in the ledger."""

    signed_by_person = serializers.BooleanField(
        help_text="False: it does not stand the check; the vote does not count."
    )
    passkey_registered_at = serializers.DateTimeField()
    registered_entry = serializers.UUIDField(help_text="The ledger entry of the registration.")
    new_key = serializers.BooleanField(help_text="The passkey was registered within a day before the vote.")


class VoteOut(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    verdict = serializers.ChoiceField(choices=list(VoteVerdict))
    voter = serializers.CharField()
    on_behalf_of = serializers.CharField(allow_null=True, help_text="Only in votes of earlier versions.")
    stands_in_for = serializers.ListField(
        child=serializers.CharField(), help_text="Usernames of those for whom the voter stood in at that time."
    )
    reason_code = serializers.CharField()
    result_ref = serializers.CharField(help_text="Where the overriding judgement is kept.")
    result_sha256 = serializers.CharField()
    outcome = serializers.CharField(help_text="Of a task: the one that was chosen.")
    form = serializers.JSONField(allow_null=True, help_text="Of a task: the form as it was filled in.")
    note = serializers.CharField(allow_null=True)
    action_digest = serializers.CharField()
    at = serializers.DateTimeField()
    signature = VoteSignatureOut(allow_null=True, help_text="Null: the vote is unsigned.")


class CardOut(serializers.Serializer[Card]):
    """A review as the person who looks at it sees it."""

    id = serializers.UUIDField(source="review.id")
    kind = serializers.ChoiceField(choices=list(ReviewKind), source="review.kind")
    status = serializers.ChoiceField(choices=list(ReviewStatus), source="review.status")
    overdue = serializers.BooleanField()
    tier = serializers.CharField(source="review.tier")
    action_digest = serializers.CharField(source="review.action_digest", help_text="Send it back with your decision.")
    requested_at = serializers.DateTimeField(source="review.requested_at")
    expires_at = serializers.DateTimeField(source="review.expires_at", allow_null=True)
    decided_at = serializers.DateTimeField(source="review.decided_at", allow_null=True)
    requeues = serializers.IntegerField(source="review.requeues")
    origin_step = serializers.UUIDField(source="review.origin_step", allow_null=True)
    subject_ref = serializers.CharField(source="review.subject_ref", help_text="The case of a human review.")
    label = serializers.CharField(source="review.label")  # type: ignore[assignment]
    attempt_id = serializers.UUIDField(source="attempt.id", allow_null=True)
    attempt_state = serializers.CharField(source="attempt.state", allow_null=True)
    asked = AskedOut(allow_null=True)
    task = TaskOut(allow_null=True, help_text="Of a task; null in every other review.")
    asked_by = AskedByOut(source="attempt", allow_null=True)
    asked_before = serializers.SerializerMethodField(help_text="Who asked for the same effect under other keys.")
    why_held = WhyHeldOut(allow_null=True)
    quorum = ReviewQuorumOut()
    excluded = ExcludedOut(many=True)
    claim = ClaimOut(allow_null=True)
    may_decide = MayDecideOut()
    release_blocked = serializers.CharField(allow_null=True, help_text="The reason code of what forbids a release now.")
    signature = serializers.ChoiceField(
        choices=list(SignatureKind), help_text="`passkey`: the contract asks for a signature under every vote."
    )
    votes = VoteOut(many=True)

    @extend_schema_field(AskedBeforeOut(many=True))
    def get_asked_before(self, card: Card) -> list[dict[str, Any]]:
        found = asked_before(attempt=card.attempt) if card.attempt is not None else []
        return list(AskedBeforeOut(found, many=True).data)
