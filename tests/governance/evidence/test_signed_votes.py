"""Signed votes in a bundle: the verifier alone says which vote its person signed, also when everything else was forged
with all of the server's secrets."""

from base64 import b64encode
from collections.abc import Callable
from copy import deepcopy
from typing import Any
from uuid import UUID

import pytest
from django.db import transaction
from django.utils import timezone

from attempts.lifecycle.services.transition import transition_apply
from attempts.reviews.models import Review, ReviewVote
from attempts.reviews.selectors.reviews import review_lock
from attempts.reviews.services.decide import record_review, review_end
from attempts.reviews.states import ReviewStatus
from governance.ledger.services import person_commitment
from governance.people.models import User
from reasoncodes.base.actors import Actor, ActorKind
from reasoncodes.base.tenancy import every_tenant
from sdk import holdpoint_verify as verifier
from tests.attempts.reviews.support import Clinic, do
from tests.attempts.reviews.test_signed_votes import signed
from tests.authenticator import SoftKey, register
from tests.cast import Cast
from tests.governance.evidence import synthetic
from tests.governance.evidence.support import built, files_of, rows, stored

# Sealing sees committed entries only.
real_transactions = pytest.mark.django_db(transaction=True)


def released(cast: Cast, key: SoftKey, **clinic: Any) -> Review:
    """Held, and approved by Rita with her passkey."""
    register(cast.reviewer, key)
    review = Clinic(cast, **({"signature": "passkey"} | clinic)).hold()
    assert signed(cast.session(cast.reviewer), review, key).status_code == 200
    return review


@real_transactions
@pytest.mark.parametrize("kind", ["ES256", "EdDSA", "RS256"])
def test_a_signed_vote_is_checked_offline_and_the_bundle_says_since_when_its_key_is_registered(
    kind: str, cast: Cast
) -> None:
    review = released(cast, SoftKey(kind))
    data = stored(built(cast, UUID(str(review.attempt_id))))
    report = verifier.verify(data)
    assert report.faults == []
    (vote,) = report.votes
    assert (vote["signed"], vote["required"], vote["verdict"]) == (True, True, "approve")
    entries = verifier.read_canonical_json(files_of(data)[verifier.ENTRIES])
    registered = next(entry for entry in entries if entry["action"] == "passkey.registered")
    assert (vote["passkey_registered_by"], vote["passkey_registered_at"]) == (registered["id"], registered["at"])
    assert "passkey registered" in files_of(data)["report.html"].decode()


@real_transactions
def test_an_unsigned_vote_where_nobody_asked_is_shown_as_unsigned_and_the_bundle_is_valid(cast: Cast) -> None:
    review = Clinic(cast).hold()
    assert do(cast.session(cast.reviewer), review, "approve").status_code == 200
    data = stored(built(cast, UUID(str(review.attempt_id))))
    report = verifier.verify(data)
    assert report.faults == []
    assert [(vote["signed"], vote["required"]) for vote in report.votes] == [(False, False)]
    assert "unsigned" in files_of(data)["report.html"].decode()


def test_a_bundle_from_before_signatures_is_still_valid() -> None:
    old = {"id": "1", "review_id": "2", "voter_ref": synthetic.PERSON, "on_behalf_of_ref": "", "verdict": "approve"}
    old |= {"action_digest": "d", "note_sha256": "", "reason_code": "", "at": synthetic.AT}
    said = {"vote": "1", "verdict": "approve", "action_digest": "d", "on_behalf_of": None, "note_sha256": None}
    data = synthetic.bundle(
        synthetic.content(votes=verifier.canonical([old])),
        [synthetic.entry(1, "review.voted", said, subject_id="2")],
    )
    report = verifier.verify(data)
    assert (report.faults, report.votes[0]["signed"]) == ([], False)


def forge(review: Review, voter: User, **more: Any) -> ReviewVote:
    """A process with all secrets casts a vote in somebody's name: the row, its ledger entry, the end of the review."""
    actor, at = Actor(ActorKind.PERSON, voter.id, frozenset({review.organization_id})), timezone.now()
    with every_tenant(), transaction.atomic():
        locked = review_lock(review_id=review.id)
        vote = ReviewVote(
            review=locked.review,
            voter_ref=person_commitment(user_id=voter.id),
            verdict="approve",
            action_digest=review.action_digest,
            at=at,
        )
        vote.save()
        told = {"vote": str(vote.id), "verdict": "approve", "action_digest": vote.action_digest}
        told |= {"on_behalf_of": None, "note_sha256": None, "approvals": 1, "approvals_required": 1} | more
        record_review(locked.review, "review.voted", actor=actor, at=at, payload=told)
        review_end(locked.review, ReviewStatus.APPROVED, actor=actor, at=at, payload={"approvals": 1})
        assert locked.attempt is not None
        transition_apply(locked.attempt, "approve", actor=actor, at=at, payload={"review": str(review.id)})
    return vote


@real_transactions
def test_a_vote_forged_with_all_secrets_is_named_by_the_bundle_that_the_forgers_own_server_seals(cast: Cast) -> None:
    review = Clinic(cast, signature="passkey").hold()
    register(cast.reviewer, SoftKey())
    vote = forge(review, cast.reviewer)
    data = stored(built(cast, UUID(str(review.attempt_id))))  # built and sealed: nothing else is wrong with it
    report = verifier.verify(data)
    assert not report.valid
    (fault,) = report.faults
    assert fault.startswith(f"vote {vote.id}: it is not signed by its person")
    assert report.not_signed == [fault]
    assert "unsigned" in files_of(data)["report.html"].decode()


@real_transactions
def test_what_was_released_by_a_forged_vote_is_not_executed(cast: Cast) -> None:
    review = Clinic(cast, signature="passkey").hold()
    forge(review, cast.reviewer)
    lease = cast.api("attempts:execute").post(f"/api/v1/attempts/{review.attempt_id}/lease", {}, format="json")
    assert lease.status_code in (403, 409), lease.content


# -- a bundle taken apart, changed, and sealed again by somebody who has every key of the server -----------------------
Change = Callable[[dict[str, Any], list[dict[str, Any]]], None]


def resealed(data: bytes, change: Change) -> bytes:
    """`change` gets the vote and the entries; everything is then hashed, anchored and signed again."""
    files = files_of(data)
    votes = rows(data, "votes")
    entries = [
        {name: value for name, value in entry.items() if name not in ("position", "proof")}
        for entry in verifier.read_canonical_json(files[verifier.ENTRIES])[:-1]
    ]
    change(votes[-1], entries)
    content = {name: files[name] for name in verifier.CONTENT} | {"votes.json": verifier.canonical(votes)}
    for entry in entries:
        nonce = bytes.fromhex(entry["nonce"])
        entry["payload_sha256"] = verifier.payload_sha256(entry["payload"], nonce).hex()
        entry["sha256"] = verifier.entry_sha256(entry).hex()
    anchor = verifier.read_canonical_json(files[verifier.ENTRIES])[-1]
    said = anchor["payload"]
    said = verifier.anchor_payload(content, entries, organization=said["organization"], subject=said["subject"])
    last = {name: value for name, value in anchor.items() if name not in ("position", "proof")} | {"payload": said}
    last["payload_sha256"] = verifier.payload_sha256(said, bytes.fromhex(last["nonce"])).hex()
    last["sha256"] = verifier.entry_sha256(last).hex()
    proven, checkpoint = synthetic.proven([*entries, last])
    return verifier.bundle_write(content, proven, checkpoint, synthetic.PUBLIC)


def named(entries: list[dict[str, Any]], action: str) -> dict[str, Any]:
    return next(entry for entry in entries if entry["action"] == action)


def told_again(vote: dict[str, Any], entries: list[dict[str, Any]]) -> None:
    """The forger also writes the hash of the changed signature into the ledger."""
    digest = verifier.sha256(verifier.canonical(vote["signature"])).hex()
    named(entries, "review.voted")["payload"]["signature_sha256"] = digest


def without_signature(vote: dict[str, Any], entries: list[dict[str, Any]]) -> None:
    vote["signature"] = None
    del named(entries, "review.voted")["payload"]["signature_sha256"]


def other_verdict(vote: dict[str, Any], entries: list[dict[str, Any]]) -> None:
    vote["verdict"] = named(entries, "review.voted")["payload"]["verdict"] = "reject"


def other_digest(vote: dict[str, Any], entries: list[dict[str, Any]]) -> None:
    vote["action_digest"] = named(entries, "review.voted")["payload"]["action_digest"] = "0" * 64


def other_person(vote: dict[str, Any], entries: list[dict[str, Any]]) -> None:
    voted = named(entries, "review.voted")
    vote["voter_ref"] = voted["actor_ref"] = "f" * 64


def other_nonce(vote: dict[str, Any], entries: list[dict[str, Any]]) -> None:
    vote["signature"]["nonce"] = "0" * 64
    told_again(vote, entries)


def own_key(vote: dict[str, Any], entries: list[dict[str, Any]]) -> None:
    """Signed with the forger's own key, under the person's registered credential id."""
    forger = SoftKey(credential_id=b"x" * 32)
    challenge = verifier.vote_challenge(
        vote["review_id"], vote["action_digest"], vote["verdict"], vote["signature"]["nonce"]
    )
    made = forger.sign(challenge)
    vote["signature"] |= {"signature": _text(made.signature), "client_data_json": _text(made.client_data_json)}
    vote["signature"] |= {"authenticator_data": _text(made.authenticator_data)}
    vote["signature"]["public_key"] = forger.registered("").key.text
    told_again(vote, entries)


def key_of_another_person(vote: dict[str, Any], entries: list[dict[str, Any]]) -> None:
    named(entries, "passkey.registered")["payload"]["person"] = "e" * 64


def registered_by_an_operator(vote: dict[str, Any], entries: list[dict[str, Any]]) -> None:
    named(entries, "passkey.registered")["actor_ref"] = "e" * 64


def registered_afterwards(vote: dict[str, Any], entries: list[dict[str, Any]]) -> None:
    entries.append(entries.pop(entries.index(named(entries, "passkey.registered"))))


def never_registered(vote: dict[str, Any], entries: list[dict[str, Any]]) -> None:
    entries.remove(named(entries, "passkey.registered"))


def removed_before(vote: dict[str, Any], entries: list[dict[str, Any]]) -> None:
    registered = named(entries, "passkey.registered")
    ended = deepcopy(registered) | {"action": "passkey.removed", "id": str(UUID(int=77))}
    entries.insert(entries.index(registered) + 1, ended)


def _text(data: bytes) -> str:
    return b64encode(data).decode()


ATTACKS: dict[str, tuple[Change, str]] = {
    "no signature": (without_signature, "it has no signature"),
    "other verdict": (other_verdict, "challenge does not fit"),
    "other action": (other_digest, "challenge does not fit"),
    "other person": (other_person, "registered to somebody else"),
    "other nonce": (other_nonce, "challenge does not fit"),
    "own key": (own_key, "not the registered one"),
    "another's key": (key_of_another_person, "registered to somebody else"),
    "registered by another": (registered_by_an_operator, "registered to somebody else"),
    "registered later": (registered_afterwards, "registered after the vote"),
    "never registered": (never_registered, "no ledger entry registers"),
    "removed before": (removed_before, "removed before the vote"),
}


@real_transactions
def test_every_forgery_in_a_ledger_that_was_signed_again_names_the_vote(cast: Cast) -> None:
    review = released(cast, SoftKey())
    data = stored(built(cast, UUID(str(review.attempt_id))))
    assert verifier.verify(resealed(data, lambda vote, entries: None)).faults == []
    (vote,) = rows(data, "votes")
    for name, (change, words) in ATTACKS.items():
        report = verifier.verify(resealed(data, change))
        (fault,) = report.not_signed or [""]
        assert fault.startswith(f"vote {vote['id']}: it is not signed by its person"), (name, report.faults)
        assert words in fault, (name, fault)


@real_transactions
@pytest.mark.parametrize("part", ["credential_id", "authenticator_data", "client_data_json", "signature"])
def test_a_flipped_bit_in_any_part_of_the_assertion_is_named_in_a_ledger_that_was_signed_again(
    part: str, cast: Cast
) -> None:
    review = released(cast, SoftKey())
    data = stored(built(cast, UUID(str(review.attempt_id))))

    def flip(vote: dict[str, Any], entries: list[dict[str, Any]]) -> None:
        raw = bytearray(verifier._base64(vote["signature"][part]))
        raw[len(raw) // 2] ^= 1
        vote["signature"][part] = _text(bytes(raw))
        told_again(vote, entries)

    report = verifier.verify(resealed(data, flip))
    assert len(report.not_signed) == 1
    assert "does not fit" in report.not_signed[0]
