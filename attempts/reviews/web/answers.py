"""Submits of the review pages: votes, claims, delegations. Each calls one service; after a vote the next item opens."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any
from uuid import UUID

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone

from attempts.reviews.errors import StepUpNeeded
from attempts.reviews.models import Review
from attempts.reviews.selectors.queue import QueueFilter, queue_next, reader_of
from attempts.reviews.selectors.reviews import database_now
from attempts.reviews.services.claim import review_claim, review_release
from attempts.reviews.services.decide import review_vote
from attempts.reviews.services.delegate import review_delegate
from attempts.reviews.services.human_review import human_review_decide
from attempts.reviews.services.human_task import human_task_decide, task_form
from attempts.reviews.states import ReviewKind, ReviewStatus, VoteVerdict
from attempts.reviews.web.base import (
    DelegateForm,
    NothingForm,
    OverrideForm,
    ReviewPage,
    TaskForm,
    WordForm,
    is_htmx,
    read,
    refusal_answer,
)
from attempts.reviews.web.card import card_opened
from attempts.reviews.web.proof import Prompt, StepUpElsewhere, prompt_answer, proof_or_prompt
from attempts.reviews.web.queue import query_of, wanted_from
from governance.boundary.rules.forms import form_read
from governance.people.web.accounts import step_up_url
from reasoncodes.base.errors import DomainError, NotFound


@dataclass(frozen=True, slots=True)
class ReviewAnswer:
    """One kind of submit. `done`: the message for the person. `decides`: it is a vote, so the next item opens."""

    service: Callable[..., Any]
    form: type[forms.Form] = WordForm
    done: str = ""
    decides: bool = True


ANSWER = "answer"
ANSWERS: dict[str, ReviewAnswer] = {
    "approve": ReviewAnswer(partial(review_vote, verdict=VoteVerdict.APPROVE)),
    "reject": ReviewAnswer(partial(review_vote, verdict=VoteVerdict.REJECT)),
    "confirm": ReviewAnswer(partial(human_review_decide, verdict=VoteVerdict.CONFIRM)),
    "override": ReviewAnswer(partial(human_review_decide, verdict=VoteVerdict.OVERRIDE), OverrideForm),
    "decline": ReviewAnswer(partial(human_review_decide, verdict=VoteVerdict.DECLINE)),
    ANSWER: ReviewAnswer(human_task_decide, TaskForm),
    "claim": ReviewAnswer(
        review_claim, NothingForm, "Claimed for 15 minutes. Nobody else can decide until then.", decides=False
    ),
    "release": ReviewAnswer(review_release, NothingForm, "Given back to the queue.", decides=False),
    "delegate": ReviewAnswer(
        review_delegate, DelegateForm, "Delegated. They stand in for you from now on.", decides=False
    ),
}
OUTCOMES = {
    ReviewStatus.APPROVED: "Released",
    ReviewStatus.REJECTED: "Rejected",
    ReviewStatus.CONFIRMED: "Confirmed",
    ReviewStatus.OVERRIDDEN: "Overridden",
    ReviewStatus.DECIDED: "Decided",
}


class AnswerView(ReviewPage):
    http_method_names = ["post"]

    def post(self, request: HttpRequest, review_id: UUID, verb: str) -> HttpResponse:
        answer, wanted = ANSWERS.get(verb), wanted_from(QueryDict(request.POST.get("queue", "")))
        if answer is None:
            raise NotFound
        try:
            word = read(answer.form, request.POST)
            if answer.decides:
                digest = word["action_digest"]
                proof = proof_or_prompt(request, actor=self.actor, review_id=review_id, verb=verb, digest=digest)
                if isinstance(proof, Prompt):
                    return prompt_answer(proof, elsewhere=step_up_url(back=_address(review_id, wanted)))
                word |= {"signature": proof} if proof is not None else {}
            if verb == ANSWER:
                word.pop("signature", None)  # answers to tasks are not signed
                word |= {"form": _form(review_id, request.POST)}
            result = answer.service(actor=self.actor, at=timezone.now(), review_id=review_id, **word)
        except StepUpElsewhere:
            return self._step_up(request, review_id, wanted)
        except DomainError as refusal:
            return self._refused(request, review_id, wanted, refusal)
        if answer.decides and _stays(request):
            return render(request, "review/parts/notices.html", {"notice": _done(result)})
        if answer.decides:
            return self._next(request, result, wanted)
        return self._show(request, review_id, wanted, notice=answer.done)

    def _step_up(self, request: HttpRequest, review_id: UUID, wanted: QueueFilter) -> HttpResponse:
        """Without scripts: sends the person to sign in again. Nothing is decided; afterwards they decide on the
        card."""
        messages.info(request, StepUpNeeded.summary())
        return HttpResponseRedirect(step_up_url(back=_address(review_id, wanted)))

    def _next(self, request: HttpRequest, review: Review, wanted: QueueFilter) -> HttpResponse:
        now = database_now()
        reader = reader_of(actor=self.actor, now=now)
        following = queue_next(reader=reader, wanted=wanted, now=now, past=review)
        return self._show(request, following, wanted, notice=_done(review))

    def _show(self, request: HttpRequest, review_id: UUID | None, wanted: QueueFilter, *, notice: str) -> HttpResponse:
        address = _address(review_id, wanted)
        if not is_htmx(request):
            messages.success(request, notice)
            return HttpResponseRedirect(address)
        if review_id is None:
            answer = render(request, "review/parts/nothing.html", {"notice": notice, "query": query_of(wanted)})
        else:
            answer = render(
                request, "review/parts/card.html", self._card(request, review_id, wanted) | {"notice": notice}
            )
        answer["HX-Push-Url"] = address
        answer["HX-Trigger-After-Swap"] = "review-changed"
        return answer

    def _refused(
        self, request: HttpRequest, review_id: UUID, wanted: QueueFilter, refusal: DomainError
    ) -> HttpResponse:
        """Shows the refusal above the card as it is now, so that an outdated card is replaced."""
        if _stays(request):
            return refusal_answer(request, refusal)
        if not is_htmx(request):
            return refusal_answer(request, refusal, back=_address(review_id, wanted))
        context = self._card(request, review_id, wanted) | {"refusal": refusal}
        context |= {"filled": request.POST, "field_errors": _beside_fields(refusal)}
        answer = render(request, "review/parts/card.html", context)
        answer["HX-Trigger-After-Swap"] = "review-changed"
        return answer

    def _card(self, request: HttpRequest, review_id: UUID, wanted: QueueFilter) -> dict[str, Any]:
        now = database_now()
        reader = reader_of(actor=self.actor, now=now)
        return card_opened(request, actor=self.actor, reader=reader, review_id=review_id, wanted=wanted, now=now)


def _form(review_id: UUID, posted: QueryDict) -> dict[str, Any]:
    """The fields of a task's form, by its types."""
    lists = {name.removeprefix("form."): posted.getlist(name) for name in posted if name.startswith("form.")}
    return form_read(task_form(review_id=review_id), lists)


def _beside_fields(refusal: DomainError) -> dict[str, str]:
    """What is wrong with a form, by its field."""
    named = ((one.pointer.removeprefix("/form/"), one.message) for one in refusal.errors)
    return {name: message for name, message in named if "/" not in name}


def _stays(request: HttpRequest) -> bool:
    """An answer that was held back in the browser: meanwhile another card is open, and this reply must not replace
    it."""
    return is_htmx(request) and request.POST.get("stay") == "1"


def _address(review_id: UUID | None, wanted: QueueFilter) -> str:
    path = reverse("review:card", args=[review_id]) if review_id else reverse("review:queue")
    return f"{path}?{query_of(wanted)}"


def _done(review: Review) -> str:
    about = review.attempt.target_ref if review.attempt is not None else review.subject_ref
    ended = OUTCOMES.get(ReviewStatus(review.status))
    if ended and review.kind == ReviewKind.HUMAN_TASK:
        ended = OUTCOMES[ReviewStatus.DECIDED]
    if ended:
        return f"{ended}: {about}."
    if review.attempt is not None:
        return f"Signed: {about}. It waits for others to sign."
    if review.kind == ReviewKind.HUMAN_TASK:
        return f"Recorded: {about}. It waits for others."
    return f"Declined: {about}. It waits for somebody else."
