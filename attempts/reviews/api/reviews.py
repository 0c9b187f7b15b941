"""`/reviews`: reads, claims, delegates and decides reviews. Services may read; only people decide."""

from typing import Any
from uuid import UUID

from django.urls import path
from django.utils import timezone
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from attempts.reviews.api.delegations import DelegationOut
from attempts.reviews.api.shapes import CardOut, ReviewOut
from attempts.reviews.api.signing import (
    CHALLENGE,
    SIGNED,
    ChallengeIn,
    ChallengeOut,
    SignatureIn,
    challenge_shown,
    signed_word,
)
from attempts.reviews.errors import StepUpNeeded
from attempts.reviews.selectors.card import needs_fresh_proof, review_card
from attempts.reviews.selectors.reviews import ME, UNCLAIMED, database_now, review_list
from attempts.reviews.services.claim import review_claim, review_release
from attempts.reviews.services.decide import review_vote
from attempts.reviews.services.delegate import AWAY, LONGEST_HOURS, review_delegate
from attempts.reviews.services.human_review import human_review_decide
from attempts.reviews.services.human_task import human_task_decide, is_human_task
from attempts.reviews.services.signing import signature_begin
from attempts.reviews.states import VERDICTS_OF, ReviewKind, ReviewStatus, VoteVerdict
from governance.people.rules.roles import VIEW, ApiScope
from governance.people.web.accounts import rp_id_of, signed_in_recently
from governance.sealing.api import PURPOSE, opened
from reasoncodes.base.api import ApiView, EmptyQuery, StrictSerializer
from reasoncodes.base.errors import WrongState


class ReviewFilter(StrictSerializer):
    status = serializers.ChoiceField(choices=list(ReviewStatus), required=False)
    kind = serializers.ChoiceField(choices=list(ReviewKind), required=False)
    tier = serializers.CharField(max_length=63, required=False)
    assigned = serializers.ChoiceField(choices=[ME, UNCLAIMED], required=False)


class ApproveIn(StrictSerializer):
    action_digest = serializers.CharField(max_length=64)
    reason_code = serializers.CharField(max_length=64, required=False, allow_blank=True, default="")
    note = serializers.CharField(max_length=280, required=False, allow_blank=True, default="")


class RejectIn(StrictSerializer):
    action_digest = serializers.CharField(max_length=64)
    reason_code = serializers.CharField(max_length=64)
    note = serializers.CharField(max_length=280, required=False, allow_blank=True, default="")


class TaskFormIn(StrictSerializer):
    form = serializers.DictField(required=False, help_text="Of a task: its form, filled in.")


class SignedApproveIn(ApproveIn, TaskFormIn):
    signature = SignatureIn(required=False, help_text="Where the contract asks for signed votes.")


class RefuseIn(RejectIn, TaskFormIn):
    signature = SignatureIn(required=False, help_text="Where the contract asks for signed votes.")


class TaskDecideIn(TaskFormIn):
    action_digest = serializers.CharField(max_length=64)
    outcome = serializers.CharField(max_length=64, help_text="One of the task's outcomes.")
    reason_code = serializers.CharField(max_length=64, required=False, allow_blank=True, default="")
    note = serializers.CharField(max_length=280, required=False, allow_blank=True, default="")


class OverrideIn(SignedApproveIn):
    result_ref = serializers.CharField(
        max_length=200, required=False, allow_blank=True, default="", help_text="Where your own judgement is kept."
    )
    payload_sha256 = serializers.RegexField("^([0-9a-f]{64})?$", required=False, allow_blank=True, default="")


class DelegateIn(StrictSerializer):
    to_username = serializers.CharField(max_length=150, help_text="Somebody who has the tier too.")
    tier = serializers.CharField(max_length=63, required=False, default="", help_text="The review's own if left out.")
    hours = serializers.IntegerField(min_value=1, max_value=LONGEST_HOURS)
    reason_code = serializers.CharField(max_length=64, required=False, default=AWAY)


DIGEST = "3f0c7a5de1b2" + "0" * 52
APPROVE = OpenApiExample("Released", value={"action_digest": DIGEST}, request_only=True)
REJECT = OpenApiExample(
    "Rejected", value={"action_digest": DIGEST, "reason_code": "reviewer_wrong_target", "note": ""}, request_only=True
)
OVERRIDE = OpenApiExample(
    "Overridden",
    value={"action_digest": DIGEST, "result_ref": "finding-0007", "payload_sha256": "9b" * 32},
    request_only=True,
)
DECIDE = OpenApiExample(
    "A refund released",
    value={"action_digest": DIGEST, "outcome": "approve", "form": {"cause": "damaged"}},
    request_only=True,
)
DECLINE = OpenApiExample(
    "Declined", value={"action_digest": DIGEST, "reason_code": "not_my_speciality", "note": ""}, request_only=True
)
DELEGATE = OpenApiExample(
    "A week off", value={"to_username": "rita", "hours": 168, "reason_code": AWAY}, request_only=True
)


class ReviewReadView(ApiView):
    """Keys that serve reviewers may read the queue; so may everybody who may see the organization."""

    required_scopes = {"GET": ApiScope.REVIEWS_DECIDE}
    people_permissions = {"GET": VIEW}


class DecidingView(ApiView):
    """Only people. Who may look may try: the service asks for the role inside its transaction and puts a refusal on
    record."""

    required_scopes = {"POST": ApiScope.REVIEWS_DECIDE}
    people_permissions = {"POST": VIEW}
    services_allowed = False

    def act(self, request: Request) -> dict[str, Any]:
        return {"actor": self.actor(request), "at": timezone.now()}

    def decide(self, request: Request, review_id: UUID, *, signed: bool = False) -> dict[str, Any]:
        """Like `act`, for a verdict: on an action of high risk only by somebody who signed in a moment ago, or who
        signs the vote itself."""
        recent = signed or signed_in_recently(request, at=timezone.now())
        if not recent and needs_fresh_proof(actor=self.actor(request), review_id=review_id):
            raise StepUpNeeded
        return self.act(request)

    def vote(self, request: Request, review_id: UUID, verdict: VoteVerdict, shape: type[StrictSerializer]) -> Response:
        """Votes on a held attempt or on a workflow step, signed or not; of a task, the outcome of that name."""
        word = self.body(request, shape)
        given = word.pop("signature", None)
        signed = signed_word(given) if given is not None else None
        act = self.decide(request, review_id, signed=signed is not None)
        form = word.pop("form", None)
        decide = review_vote if verdict in VERDICTS_OF[ReviewKind.RELEASE] else human_review_decide
        try:
            decide(review_id=review_id, verdict=verdict, signature=signed, **act, **word)
        except WrongState:
            # Only now: asking before each vote what kind of review it is would cost every approval a statement.
            if verdict is VoteVerdict.DECLINE or not is_human_task(review_id=review_id):
                raise
            said = {name: word[name] for name in ("action_digest", "reason_code", "note")}
            human_task_decide(review_id=review_id, outcome=verdict.value, form=form, **act, **said)
        return self.card(request, review_id)

    def card(self, request: Request, review_id: UUID) -> Response:
        return Response(CardOut(review_card(actor=self.actor(request), review_id=review_id)).data)


class ReviewListApi(ReviewReadView):
    @extend_schema(operation_id="reviews_list", parameters=[ReviewFilter], responses=ReviewOut(many=True))
    def get(self, request: Request) -> Response:
        now = database_now()
        rows = review_list(actor=self.actor(request), now=now, **self.query(request, ReviewFilter))
        return self.page(request, rows, ReviewOut, now=now)


class ReviewApi(ReviewReadView):
    @extend_schema(operation_id="reviews_read", parameters=[PURPOSE], responses=CardOut)
    def get(self, request: Request, review_id: UUID) -> Response:
        self.query(request)
        card = review_card(actor=self.actor(request), review_id=review_id)
        found = {"subject_id": card.review.id, "organization_id": card.review.organization_id}
        opened(self, request, subject_kind="review", **found)
        return Response(CardOut(card).data)


class ReviewClaimApi(DecidingView):
    @extend_schema(operation_id="reviews_claim", request=None, responses=CardOut)
    def post(self, request: Request, review_id: UUID) -> Response:
        self.body(request, EmptyQuery)
        review_claim(review_id=review_id, **self.act(request))
        return self.card(request, review_id)


class ReviewReleaseApi(DecidingView):
    @extend_schema(operation_id="reviews_release", request=None, responses=CardOut)
    def post(self, request: Request, review_id: UUID) -> Response:
        self.body(request, EmptyQuery)
        review_release(review_id=review_id, **self.act(request))
        return self.card(request, review_id)


class ReviewDelegateApi(DecidingView):
    @extend_schema(
        operation_id="reviews_delegate", request=DelegateIn, responses={201: DelegationOut}, examples=[DELEGATE]
    )
    def post(self, request: Request, review_id: UUID) -> Response:
        delegation = review_delegate(review_id=review_id, **self.act(request), **self.body(request, DelegateIn))
        out = DelegationOut(delegation, context={"now": database_now()})
        return Response(out.data, status=status.HTTP_201_CREATED)


class ReviewApproveApi(DecidingView):
    @extend_schema(
        operation_id="reviews_approve", request=SignedApproveIn, responses=CardOut, examples=[APPROVE, SIGNED]
    )
    def post(self, request: Request, review_id: UUID) -> Response:
        return self.vote(request, review_id, VoteVerdict.APPROVE, SignedApproveIn)


class ReviewRejectApi(DecidingView):
    @extend_schema(operation_id="reviews_reject", request=RefuseIn, responses=CardOut, examples=[REJECT])
    def post(self, request: Request, review_id: UUID) -> Response:
        return self.vote(request, review_id, VoteVerdict.REJECT, RefuseIn)


class SignatureChallengeApi(DecidingView):
    """What to sign for one verdict. The answer is given to `navigator.credentials.get` in the person's browser."""

    @extend_schema(
        operation_id="reviews_signature_challenge",
        request=ChallengeIn,
        responses={201: ChallengeOut},
        examples=[CHALLENGE],
    )
    def post(self, request: Request, review_id: UUID) -> Response:
        asked = self.body(request, ChallengeIn)
        found = signature_begin(
            review_id=review_id,
            verdict=VoteVerdict(asked["verdict"]),
            action_digest=asked["action_digest"],
            rp_id=rp_id_of(request),
            **self.act(request),
        )
        return Response(ChallengeOut(challenge_shown(found)).data, status=status.HTTP_201_CREATED)


class ReviewConfirmApi(DecidingView):
    """For human reviews: what the workflow found is right."""

    @extend_schema(operation_id="reviews_confirm", request=SignedApproveIn, responses=CardOut, examples=[APPROVE])
    def post(self, request: Request, review_id: UUID) -> Response:
        return self.vote(request, review_id, VoteVerdict.CONFIRM, SignedApproveIn)


class ReviewOverrideApi(DecidingView):
    """For human reviews: the person's own judgement counts instead, kept in their own system."""

    @extend_schema(operation_id="reviews_override", request=OverrideIn, responses=CardOut, examples=[OVERRIDE])
    def post(self, request: Request, review_id: UUID) -> Response:
        return self.vote(request, review_id, VoteVerdict.OVERRIDE, OverrideIn)


class ReviewDecideApi(DecidingView):
    """For tasks: one of the task's outcomes, with its form."""

    @extend_schema(operation_id="reviews_decide", request=TaskDecideIn, responses=CardOut, examples=[DECIDE])
    def post(self, request: Request, review_id: UUID) -> Response:
        word = self.body(request, TaskDecideIn)
        human_task_decide(review_id=review_id, **self.decide(request, review_id), **word)
        return self.card(request, review_id)


class ReviewDeclineApi(DecidingView):
    """For human reviews and tasks: somebody else should decide. It stays open, without the person who declined."""

    @extend_schema(operation_id="reviews_decline", request=RefuseIn, responses=CardOut, examples=[DECLINE])
    def post(self, request: Request, review_id: UUID) -> Response:
        return self.vote(request, review_id, VoteVerdict.DECLINE, RefuseIn)


urlpatterns = [
    path("reviews", ReviewListApi.as_view(), name="review_list"),
    path("reviews/<uuid:review_id>", ReviewApi.as_view(), name="review"),
    path("reviews/<uuid:review_id>/claim", ReviewClaimApi.as_view(), name="review_claim"),
    path("reviews/<uuid:review_id>/release", ReviewReleaseApi.as_view(), name="review_release"),
    path("reviews/<uuid:review_id>/delegate", ReviewDelegateApi.as_view(), name="review_delegate"),
    path("reviews/<uuid:review_id>/approve", ReviewApproveApi.as_view(), name="review_approve"),
    path("reviews/<uuid:review_id>/reject", ReviewRejectApi.as_view(), name="review_reject"),
    path("reviews/<uuid:review_id>/signature-challenge", SignatureChallengeApi.as_view(), name="review_challenge"),
    path("reviews/<uuid:review_id>/decide", ReviewDecideApi.as_view(), name="review_decide"),
    path("reviews/<uuid:review_id>/confirm", ReviewConfirmApi.as_view(), name="review_confirm"),
    path("reviews/<uuid:review_id>/override", ReviewOverrideApi.as_view(), name="review_override"),
    path("reviews/<uuid:review_id>/decline", ReviewDeclineApi.as_view(), name="review_decline"),
]
