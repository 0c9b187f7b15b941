"""Proof on the card itself: a press that needs a signature or a fresh sign-in is answered with a prompt, and the same
form comes back with the proof and casts the vote."""

import json
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.utils import timezone

from attempts.reviews.errors import SignatureNeeded
from attempts.reviews.selectors.card import needs_fresh_proof, needs_signature
from attempts.reviews.selectors.reviews import review_get
from attempts.reviews.services.signing import SignedWord, signature_begin
from attempts.reviews.states import VoteVerdict
from attempts.reviews.web.base import is_htmx
from governance.people.rules.webauthn_json import AssertionUnreadable, assertion_read
from governance.people.web.accounts import rp_id_of, signed_in_recently
from governance.people.web.proof import PASSKEY, passkey_options, proof_check, proof_kind
from reasoncodes.base.actors import Actor

EVENT = "review-proof"
SIGNATURE = "signature"


@dataclass(frozen=True, slots=True)
class Prompt:
    """What the page asks the person for. `kind` is signature, passkey, code or password."""

    kind: str
    verb: str
    what: str
    error: str = ""
    challenge_id: str = ""
    options: dict[str, Any] | None = None


class StepUpElsewhere(Exception):
    """The browser runs no scripts: the person signs in again on a page of its own."""


def proof_or_prompt(
    request: HttpRequest, *, actor: Actor, review_id: UUID, verb: str, digest: str
) -> Prompt | SignedWord | None:
    """None: nothing more is needed for this vote. Raises StepUpElsewhere or a refusal."""
    if request.POST.get("proof_kind") == SIGNATURE:
        return _signed(request)
    if needs_signature(actor=actor, review_id=review_id):
        if not is_htmx(request):
            raise SignatureNeeded("Signing needs JavaScript and a passkey in your browser.")
        return _ask_signature(request, actor=actor, review_id=review_id, verb=verb, digest=digest)
    if signed_in_recently(request, at=timezone.now()) or not needs_fresh_proof(actor=actor, review_id=review_id):
        return None
    if not is_htmx(request):
        raise StepUpElsewhere
    return _step_up(request, review_id=review_id, verb=verb)


def _signed(request: HttpRequest) -> SignedWord:
    try:
        given = json.loads(request.POST.get("proof", ""))
        return SignedWord(UUID(str(given["challenge_id"])), assertion_read(given))
    except (ValueError, KeyError, TypeError, AssertionUnreadable) as error:
        raise SignatureNeeded from error


def _ask_signature(request: HttpRequest, *, actor: Actor, review_id: UUID, verb: str, digest: str) -> Prompt:
    asked = signature_begin(
        actor=actor,
        at=timezone.now(),
        review_id=review_id,
        verdict=VoteVerdict(verb),
        action_digest=digest,
        rp_id=rp_id_of(request),
    )
    what = _what(review_id)
    return Prompt(SIGNATURE, verb, what, challenge_id=str(asked.challenge_id), options=asked.options)


def _step_up(request: HttpRequest, *, review_id: UUID, verb: str) -> Prompt | None:
    user: Any = request.user
    kind, error = proof_kind(user), ""
    if request.POST.get("proof_kind") == kind:
        error = proof_check(request, user=user, kind=kind, value=request.POST.get("proof", ""))
        if not error:
            return None
    options = passkey_options(user) if kind == PASSKEY else None
    return Prompt(kind, verb, _what(review_id), error=error, options=options)


def _what(review_id: UUID) -> str:
    """The action in words, for the prompt."""
    review = review_get(review_id=review_id)
    if review.attempt is None:
        return f"{review.label or 'the case'} about {review.subject_ref}"
    return f"{review.attempt.operation or 'the action'} on {review.attempt.target_ref or 'no target'}"


def prompt_answer(prompt: Prompt, *, elsewhere: str) -> HttpResponse:
    """Changes nothing on the page: an event tells the script what to ask. `elsewhere`: the page for another way."""
    detail = {
        "kind": prompt.kind,
        "verb": prompt.verb,
        "what": prompt.what,
        "refused": prompt.error,
        "challenge_id": prompt.challenge_id,
        "options": prompt.options,
        "elsewhere": "" if prompt.kind == SIGNATURE else elsewhere,
    }
    answer = HttpResponse()
    answer["HX-Reswap"] = "none"
    answer["HX-Trigger"] = json.dumps({EVENT: detail})
    return answer
