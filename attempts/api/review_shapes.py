"""How reviews look from outside."""

from typing import Any

from rest_framework import serializers

from attempts.models import Delegation, Review
from attempts.selectors.review_card import Card
from attempts.states import ReviewStatus, VoteVerdict


class ReviewOut(serializers.ModelSerializer[Review]):
    """A line of the queue."""

    attempt_id = serializers.UUIDField()
    workflow_slug = serializers.CharField(source="attempt.workflow_slug")
    connector = serializers.CharField(source="attempt.connector")
    operation = serializers.CharField(source="attempt.operation")
    target_ref = serializers.CharField(source="attempt.target_ref")
    risk_tier = serializers.CharField(source="attempt.risk_tier")
    claimed_by = serializers.CharField(source="claimed_by.username", default=None, allow_null=True)
    overdue = serializers.SerializerMethodField(
        help_text="Past its deadline and not yet marked: nobody can approve it."
    )

    class Meta:
        model = Review
        fields = [
            "id",
            "status",
            "overdue",
            "tier",
            "approvals_required",
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
        return review.status == ReviewStatus.REQUESTED and bool(review.expires_at <= self.context["now"])


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


class AskedByOut(serializers.Serializer[Any]):
    service_account_id = serializers.UUIDField(source="caller_id")
    service_account = serializers.CharField(source="caller.slug")
    workflow_slug = serializers.CharField()
    contract_version = serializers.IntegerField()
    runtime_mode = serializers.CharField()
    review_owner = serializers.CharField()
    request_trace_id = serializers.CharField()


class WhyHeldOut(serializers.Serializer[Any]):
    decision_id = serializers.UUIDField()
    reason_code = serializers.CharField()
    rule_id = serializers.CharField()
    policy_version = serializers.IntegerField(allow_null=True)
    explanation = serializers.CharField(help_text="In words.")


class TierQuorumOut(serializers.Serializer[Any]):
    tier = serializers.CharField()
    approvals_required = serializers.IntegerField()
    approvals = serializers.IntegerField()
    missing = serializers.IntegerField()


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
    reason = serializers.CharField(allow_null=True)
    detail = serializers.CharField()
    on_behalf_of = serializers.CharField(allow_null=True)


class VoteOut(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    verdict = serializers.ChoiceField(choices=list(VoteVerdict))
    voter = serializers.CharField()
    on_behalf_of = serializers.CharField(allow_null=True)
    reason_code = serializers.CharField()
    note = serializers.CharField(allow_null=True)
    action_digest = serializers.CharField()
    at = serializers.DateTimeField()


class CardOut(serializers.Serializer[Card]):
    """A review as the person who looks at it sees it."""

    id = serializers.UUIDField(source="review.id")
    status = serializers.ChoiceField(choices=list(ReviewStatus), source="review.status")
    overdue = serializers.BooleanField()
    tier = serializers.CharField(source="review.tier")
    action_digest = serializers.CharField(source="review.action_digest", help_text="Send it back with your decision.")
    requested_at = serializers.DateTimeField(source="review.requested_at")
    expires_at = serializers.DateTimeField(source="review.expires_at")
    decided_at = serializers.DateTimeField(source="review.decided_at", allow_null=True)
    attempt_id = serializers.UUIDField(source="attempt.id")
    attempt_state = serializers.CharField(source="attempt.state")
    asked = AskedOut(source="attempt")
    asked_by = AskedByOut(source="attempt")
    why_held = WhyHeldOut()
    quorum = ReviewQuorumOut()
    excluded = ExcludedOut(many=True)
    claim = ClaimOut(allow_null=True)
    may_decide = MayDecideOut()
    release_blocked = serializers.CharField(allow_null=True, help_text="The reason code of what forbids a release now.")
    votes = VoteOut(many=True)


class DelegationOut(serializers.ModelSerializer[Delegation]):
    from_username = serializers.CharField(source="from_user.username")
    to_username = serializers.CharField(source="to_user.username")

    class Meta:
        model = Delegation
        fields = ["id", "tier", "from_username", "to_username", "starts_at", "ends_at"]
