"""Signed votes: a challenge for one person and one verdict, its use inside the vote's transaction, and the signature on
record. Where a contract asks for signatures, the signature is the step-up too."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from secrets import token_hex
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Q

from attempts.reviews.errors import DigestChanged, SignatureInvalid, SignatureNeeded
from attempts.reviews.models import Review, ReviewVote, VoteChallenge, VoteSignature
from attempts.reviews.selectors.reviews import LockedReview, actor_at, review_get, signature_needed
from attempts.reviews.states import VERDICTS_OF, ReviewKind, VoteVerdict
from governance.ledger.rules.entry import canonical_sha256
from governance.ledger.services import person_commitment
from governance.people.models import Passkey
from governance.people.rules.passkeys import Assertion, assertion_fault, counter_fits, sign_count, vote_challenge
from governance.people.rules.webauthn_json import request_options
from governance.people.selectors.sign_in import KnownPasskey, passkey_lock, passkeys_usable
from reasoncodes.base.actors import Actor, ActorKind
from reasoncodes.base.errors import DomainError, ScopeMissing, WrongState

LIFETIME = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class SignedWord:
    """The challenge that a person signed, and their authenticator's answer."""

    challenge_id: UUID
    assertion: Assertion


@dataclass(frozen=True, slots=True)
class SigningRequest:
    """What the person's browser needs to ask their authenticator."""

    challenge_id: UUID
    nonce: str
    expires_at: datetime
    options: dict[str, Any]
    """For `navigator.credentials.get`."""


@dataclass(frozen=True, slots=True)
class CheckedSignature:
    """A signature that fits the vote that is being cast."""

    assertion: Assertion
    nonce: str
    known: KnownPasskey


def signature_begin(
    *, actor: Actor, at: datetime, review_id: UUID, verdict: VoteVerdict, action_digest: str, rp_id: str
) -> SigningRequest:
    """A challenge for this person, review and verdict, valid once and for five minutes. It decides nothing."""
    person = _person(actor_at(actor=actor, review_id=review_id))
    review = review_get(review_id=review_id)
    if verdict not in VERDICTS_OF[ReviewKind(review.kind)]:
        raise WrongState(f"This review is decided by: {', '.join(VERDICTS_OF[ReviewKind(review.kind)])}.")
    if action_digest != review.action_digest:
        raise DigestChanged
    passkeys = passkeys_usable(user_id=person, rp_id=rp_id)
    if not passkeys:
        raise SignatureNeeded("You have no passkey here that can sign. Add one, then decide.")
    row = _challenge_store(review=review, person=person, verdict=verdict, at=at)
    challenge = vote_challenge(
        review=str(review.id), action_digest=row.action_digest, verdict=row.verdict, nonce=row.nonce
    )
    ids = [passkey.credential_id for passkey in passkeys]
    options = request_options(challenge=challenge, rp_id=rp_id, credential_ids=ids)
    return SigningRequest(row.id, row.nonce, row.expires_at, options)


def _challenge_store(*, review: Review, person: UUID, verdict: VoteVerdict, at: datetime) -> VoteChallenge:
    row = VoteChallenge(
        review=review,
        user_id=person,
        verdict=verdict.value,
        action_digest=review.action_digest,
        nonce=token_hex(32),
        expires_at=at + LIFETIME,
    )
    with transaction.atomic():
        # Nothing else removes them: without it the table would grow with every press.
        VoteChallenge.objects.filter(Q(expires_at__lte=at) | Q(used_at__isnull=False), user_id=person).delete()
        row.save(force_insert=True)
    return row


def signature_take(
    locked: LockedReview,
    *,
    verdict: VoteVerdict,
    signed: SignedWord | None,
    person: UUID | None,
    now: datetime,
) -> CheckedSignature | DomainError | None:
    """Checks the signature under a vote and uses up its challenge, in the vote's transaction. None: there is none, and
    none is needed. A refusal is returned and not raised, so that the challenge stays used up."""
    if signed is None:
        return SignatureNeeded() if signature_needed(review=locked.review, attempt=locked.attempt) else None
    if person is None:
        return SignatureNeeded()
    # Locked (FOR UPDATE): of two votes with one challenge the second one finds it used.
    rows = VoteChallenge.objects.select_for_update(of=("self",)).filter(id=signed.challenge_id, used_at=None)
    challenge = rows.filter(expires_at__gt=now).first()
    if challenge is None:
        return SignatureNeeded("The challenge has expired or was used before. Decide again.")
    challenge.used_at = now
    challenge.save(update_fields=["used_at"])
    return _checked(locked.review, challenge, verdict=verdict, assertion=signed.assertion, person=person)


def _checked(
    review: Review, row: VoteChallenge, *, verdict: VoteVerdict, assertion: Assertion, person: UUID
) -> CheckedSignature | SignatureInvalid:
    invalid = SignatureInvalid(subject_type="review", subject_id=review.id)
    bound = (row.review_id, row.user_id, row.verdict, row.action_digest)
    if bound != (review.id, person, verdict.value, review.action_digest):
        return invalid
    # Only the person's own passkeys are looked at: somebody else's is unknown here.
    found = passkey_lock(user_id=person, credential_sha256=sha256(assertion.credential_id).hexdigest())
    if found is None:
        return invalid
    passkey, known = found
    challenge = vote_challenge(
        review=str(review.id), action_digest=row.action_digest, verdict=row.verdict, nonce=row.nonce
    )
    if (
        known.registered.person != person_commitment(user_id=person)
        or assertion_fault(assertion, challenge=challenge, registered=known.registered) is not None
        or not _count(passkey, assertion)
    ):
        return invalid
    return CheckedSignature(assertion, row.nonce, known)


def _count(passkey: Passkey, assertion: Assertion) -> bool:
    """Moves the passkey's counter; False if it did not grow, as that of a copy would not."""
    now = sign_count(assertion.authenticator_data)
    if not counter_fits(before=passkey.sign_count, now=now):
        return False
    passkey.sign_count = now
    passkey.save(update_fields=["sign_count"])
    return True


def signature_store(*, vote: ReviewVote, checked: CheckedSignature) -> dict[str, str]:
    """Puts the signature on record with its vote. Returns what the ledger entry of the vote says about it."""
    known, assertion = checked.known, checked.assertion
    row = VoteSignature(
        vote=vote,
        passkey=known.passkey_id,
        registered_entry=known.entry_id,
        registered_at=known.registered_at,
        algorithm=known.registered.key.algorithm,
        public_key=known.registered.key.text,
        rp_id=known.registered.rp_id,
        nonce=checked.nonce,
        credential_id=assertion.credential_id,
        authenticator_data=assertion.authenticator_data,
        client_data_json=assertion.client_data_json,
        signature=assertion.signature,
    )
    row.save()
    return {"passkey": str(row.passkey), "signature_sha256": canonical_sha256(row.as_document())}


def _person(actor: Actor) -> UUID:
    if actor.kind is not ActorKind.PERSON or actor.id is None:
        raise ScopeMissing("Only people sign.")
    return actor.id
